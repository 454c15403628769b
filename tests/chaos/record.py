"""The requests of clients, their outcomes, and the invariants that must hold at the end."""

import enum
import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tertulia.delivery.queue import numbering_from

_NUMBERING = numbering_from(0)
"""The numbering of all queues, which start from an almost empty log."""


class Outcome(enum.Enum):
    """The outcome of a request, as its client learned it."""

    DONE = "done"
    REFUSED = "nothing was done"
    """The server refused the request, or asked to retry later."""
    UNKNOWN = "unknown"
    """There was no response, or it said that the outcome is unknown."""


@dataclass(eq=False)
class Attempt:
    """A request to change something."""

    what: str
    subject: Hashable
    """The object of the request. Attempts of one kind on one object are made one after another."""
    value: Any
    """The new value, unique for the subject unless a value is set again."""
    node: int
    began: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    outcome: Outcome = Outcome.UNKNOWN
    answer: str = ""
    """The response, for error messages."""
    result: Any = None
    """The new object in the response."""

    def __str__(self) -> str:
        return (
            f"{self.what} of {self.subject!r} to {self.value!r} at node {self.node}"
            f" ({self.outcome.value}: {self.answer[:200]})"
        )


class Record:
    """All attempts and events."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.violations: list[str] = []
        self.entries: dict[int, int] = {}
        """The log entry of each message, as the first client learned it."""
        self.events = 0
        self.refusals: defaultdict[str, int] = defaultdict(int)

    def fail(self, text: str) -> None:
        """Record a violation."""
        self.violations.append(text)

    def count(self, outcome: Outcome) -> int:
        return sum(attempt.outcome is outcome for attempt in self.attempts)

    def brought(self, message_id: int, event_id: int, who: str) -> None:
        """Record that a client got the message in this event."""
        entry = _NUMBERING.seq_of(event_id)
        known = self.entries.setdefault(message_id, entry)
        if known != entry:
            self.fail(f"{who} heard of message {message_id} in entry {entry}, others in {known}")

    def order(self) -> list[str]:
        """Violations of the order of messages, which is the same for all clients."""
        by_entry = sorted(self.entries, key=lambda message_id: self.entries[message_id])
        if by_entry != sorted(self.entries):
            return ["the entries of the log bring messages in another order than their IDs"]
        return []


def once(attempts: Sequence[Attempt], found: Iterable[Any]) -> list[str]:
    """Violations where each attempt adds its value to the result: acknowledged attempts must appear
    exactly once, failed ones never, and unknown ones at most once."""
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
    """Violations where each attempt sets a value, one after another: the result must be the last
    acknowledged value, or that of an unknown attempt, which may have been applied late."""
    done = [attempt.value for attempt in attempts if attempt.outcome is Outcome.DONE]
    allowed = [done[-1] if done else initial]
    allowed += [attempt.value for attempt in attempts if attempt.outcome is Outcome.UNKNOWN]
    if found in allowed:
        return []
    tried = "; ".join(str(attempt) for attempt in attempts[-4:])
    return [f"it is {found!r} instead of {allowed[0]!r}, after {tried}"]


@dataclass(eq=False)
class Revocation:
    """A permission that was revoked."""

    what: str
    acknowledged: float = 0.0
    """When the response arrived."""


@dataclass(eq=False)
class Probe:
    """A use of a permission that may have been revoked."""

    revocation: Revocation
    node: int
    sent: float
    answered: float
    is_write: bool
    """Whether it changes something. Changes are decided at the end of the log, at any node."""


def stale(probes: Iterable[Probe], bound: float) -> list[str]:
    """Violations among these successful uses: reads that began later than the bound after the
    revocation, and changes that began at any time after it."""
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
