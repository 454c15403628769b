"""What clients asked for and what became of it, and what must hold of that in the end."""

import enum
import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tertulia.delivery import event_ids

_NUMBERING = event_ids.counted_from(0)
"""Of all queues: a log of so few entries has one from which they count."""


class Outcome(enum.Enum):
    """What a client was told of its request."""

    DONE = "done"
    REFUSED = "nothing was done"
    """By a refusal, or "not now"."""
    UNKNOWN = "unknown"
    """Nothing was heard, or that it is not known."""


@dataclass(eq=False)
class Attempt:
    """A request that was to change something."""

    what: str
    subject: Hashable
    """What of: attempts of one kind at one subject are made one after another."""
    value: Any
    """What it is to be: unique among those of the subject, unless a value is set again."""
    node: int
    began: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    outcome: Outcome = Outcome.UNKNOWN
    answer: str = ""
    """What was heard, for people."""
    result: Any = None
    """What the answer says that was made."""

    def __str__(self) -> str:
        return (
            f"{self.what} of {self.subject!r} to {self.value!r} at node {self.node}"
            f" ({self.outcome.value}: {self.answer[:200]})"
        )


class Record:
    """All attempts, and all events."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.violations: list[str] = []
        self.entries: dict[int, int] = {}
        """The entry of the log that brought a message, as the first client heard of it."""
        self.events = 0
        self.refusals: defaultdict[str, int] = defaultdict(int)

    def fail(self, text: str) -> None:
        """Something must not be."""
        self.violations.append(text)

    def count(self, outcome: Outcome) -> int:
        return sum(attempt.outcome is outcome for attempt in self.attempts)

    def brought(self, message_id: int, event_id: int, who: str) -> None:
        """A client heard of the message by that event."""
        entry = _NUMBERING.seq_of(event_id)
        known = self.entries.setdefault(message_id, entry)
        if known != entry:
            self.fail(f"{who} heard of message {message_id} in entry {entry}, others in {known}")

    def order(self) -> list[str]:
        """What is wrong with the order of messages, of which there is one for all."""
        by_entry = sorted(self.entries, key=lambda message_id: self.entries[message_id])
        if by_entry != sorted(self.entries):
            return ["the entries of the log bring messages in another order than their IDs"]
        return []


def once(attempts: Sequence[Attempt], found: Iterable[Any]) -> list[str]:
    """What is wrong where each attempt adds its value to what is found: what was acknowledged must
    be there exactly once, what was not done not at all, and what is unknown at most once."""
    counts: defaultdict[Any, int] = defaultdict(int)
    for value in found:
        counts[value] += 1
    wrong = []
    for attempt in attempts:
        times = counts.pop(attempt.value, 0)
        least = 1 if attempt.outcome is Outcome.DONE else 0
        most = 0 if attempt.outcome is Outcome.REFUSED else 1
        if not least <= times <= most:
            wrong.append(f"{attempt}: it is there {times} times")
    wrong += [
        f"{value!r} is there {times} times, and nobody did it" for value, times in counts.items()
    ]
    return wrong


def last(attempts: Sequence[Attempt], found: Any, initial: Any) -> list[str]:
    """What is wrong where each attempt sets a value, one after another. It must be what was last
    acknowledged, or what may have been done since or late: an unknown one may have come late."""
    done = [attempt.value for attempt in attempts if attempt.outcome is Outcome.DONE]
    allowed = [done[-1] if done else initial]
    allowed += [attempt.value for attempt in attempts if attempt.outcome is Outcome.UNKNOWN]
    if found in allowed:
        return []
    tried = "; ".join(str(attempt) for attempt in attempts[-4:])
    return [f"it is {found!r} instead of {allowed[0]!r}, after {tried}"]


@dataclass(eq=False)
class Revocation:
    """A right that was taken away."""

    what: str
    acknowledged: float = 0.0
    """When the answer was there."""


@dataclass(eq=False)
class Probe:
    """A use of a right that may be over."""

    revocation: Revocation
    node: int
    sent: float
    answered: float
    is_write: bool
    """Whether it changes something, which is decided at the log's end wherever it is."""


def stale(probes: Iterable[Probe], bound: float) -> list[str]:
    """What is wrong with these uses, all of which succeeded: those that began later than the bound
    after the right was taken away, or at all after it where they changed something."""
    wrong = []
    for probe in probes:
        late = probe.sent - probe.revocation.acknowledged
        if late > (0 if probe.is_write else bound):
            wrong.append(
                f"{probe.revocation.what}: node {probe.node}"
                f" {'did' if probe.is_write else 'showed'} it still, asked {late:.2f} s after"
                f" that was acknowledged (answered after {probe.answered - probe.sent:.2f} s)"
            )
    return wrong
