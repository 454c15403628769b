"""Acknowledged and received messages, and whether they match.

Event IDs come from one log: an event in two queues has the same ID in both. So a client has to
receive exactly the messages whose event is in a range where it had a queue and was in the channel.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

FOREVER = 1 << 62
SHOWN = 20
"""The most violations of one kind that are shown in full."""


@dataclass
class Watch:
    """One queue of a client, from its registration to its end."""

    user_id: int
    start: int
    """The last event before the registration."""
    end: int = FOREVER
    """The last event that the client got."""
    received: "array[int]" = field(default_factory=lambda: array("q"))
    """IDs of messages in the order in which they arrived."""
    stays: dict[int, list[list[int]]] = field(default_factory=dict)
    """The ranges of events, excluding both ends, in which the client was in a place, by place."""

    def enter(self, place: int, event_id: int) -> None:
        """Record that the client is in the channel from this event on."""
        self.stays.setdefault(place, []).append([event_id, FOREVER])

    def leave(self, place: int, event_id: int) -> None:
        """Record that the client isn't in the channel after this event."""
        for stay in self.stays.get(place, ()):
            if stay[1] == FOREVER:
                stay[1] = event_id


@dataclass
class Record:
    """The messages that were acknowledged, and the data to check their delivery. A place is a
    channel's ID, or a person's as a negative number: direct messages are in the places of their
    readers."""

    acknowledged: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The places of each acknowledged message."""
    event_of: dict[int, int] = field(default_factory=dict)
    """The event that brought each message."""
    excused: set[int] = field(default_factory=set)
    """Messages that were deleted or moved to another channel. Late clients may miss them."""
    watches: list[Watch] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    failed: int = 0

    def fail(self, text: str) -> None:
        """Record a violation."""
        self.failed += 1
        if len(self.failures) < 10 * SHOWN:
            self.failures.append(text[:600])

    def brought(self, message_id: int, event_id: int) -> None:
        """Record that an event brought a message."""
        if self.event_of.setdefault(message_id, event_id) != event_id:
            self.fail(
                f"message {message_id} came by events {self.event_of[message_id]}, {event_id}"
            )

    def judge(self) -> int:
        """Compare received with acknowledged messages. Return the number of required deliveries."""
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
        results = sorted(message_ids)
        if results:
            self.fail(f"{what} {len(results)} messages: {results[:8]}")
