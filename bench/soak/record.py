"""What was acknowledged, what was received, and whether the two fit.

The IDs of events are those of one log: whatever a queue is, an event that two queues bring has the
same ID in both. So it is known exactly which messages a client had to get: those whose event lies
in a stretch in which it had a queue and was in the channel.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

FOREVER = 1 << 62
SHOWN = 20
"""Failures of one kind that are told in full."""


@dataclass
class Watch:
    """One queue of one client, from its registration to its end."""

    user_id: int
    start: int
    """The last event before it."""
    end: int = FOREVER
    """The last event that the client had."""
    received: "array[int]" = field(default_factory=lambda: array("q"))
    """Messages, in the order in which they came."""
    stays: dict[int, list[list[int]]] = field(default_factory=dict)
    """By place: the stretches of events, both ends excluded, in which the client was there."""

    def enter(self, place: int, event_id: int) -> None:
        """The client is in the channel from this event on."""
        self.stays.setdefault(place, []).append([event_id, FOREVER])

    def leave(self, place: int, event_id: int) -> None:
        """The client is not in the channel any more."""
        for stay in self.stays.get(place, ()):
            if stay[1] == FOREVER:
                stay[1] = event_id


@dataclass
class Record:
    """Everything that the judgement is made of. A place is a channel's ID, or a person's as a
    negative number: direct messages are in the places of those who read them."""

    acknowledged: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The places of each message that was answered with success."""
    event_of: dict[int, int] = field(default_factory=dict)
    """The event that brought each message."""
    excused: set[int] = field(default_factory=set)
    """Messages that were deleted, or moved to another channel: who was late need not see them."""
    watches: list[Watch] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    failed: int = 0

    def fail(self, text: str) -> None:
        """Something that must not be."""
        self.failed += 1
        if len(self.failures) < 10 * SHOWN:
            self.failures.append(text[:600])

    def brought(self, message_id: int, event_id: int) -> None:
        """An event brought a message to somebody."""
        if self.event_of.setdefault(message_id, event_id) != event_id:
            self.fail(
                f"message {message_id} came by events {self.event_of[message_id]}, {event_id}"
            )

    def judge(self) -> int:
        """Hold what was received against what was acknowledged. Returns how many deliveries had
        to be."""
        logs: dict[int, list[tuple[int, int]]] = {}
        for message_id, places in self.acknowledged.items():
            event_id = self.event_of.get(message_id)
            if event_id is None:
                if message_id not in self.excused:
                    self.fail(f"message {message_id} was acknowledged and came to nobody")
                continue
            for place in places:
                logs.setdefault(place, []).append((event_id, message_id))
        for log in logs.values():
            log.sort()
        return sum(self._judge(watch, logs) for watch in self.watches)

    def _judge(self, watch: Watch, logs: dict[int, list[tuple[int, int]]]) -> int:
        due: set[int] = set()
        for place, stays in watch.stays.items():
            log = logs.get(place, [])
            for since, until in stays:
                first = bisect_right(log, (max(since, watch.start), FOREVER))
                last = min(bisect_left(log, (until, 0)), bisect_right(log, (watch.end, FOREVER)))
                due.update(message_id for _, message_id in log[first:last])
        received = set(watch.received)
        if len(received) != len(watch.received):
            self.fail(f"user {watch.user_id} got messages more than once")
        who = f"user {watch.user_id} (queue from event {watch.start})"
        self._unless_none(f"{who} did not get", due - received - self.excused)
        self._unless_none(f"{who} should not have got", received - due - self.excused)
        return len(due)

    def _unless_none(self, what: str, message_ids: Iterable[int]) -> None:
        found = sorted(message_ids)
        if found:
            self.fail(f"{what} {len(found)} messages: {found[:8]}")
