"""What recent entries have written, so that a command that read the database before it decides
knows whether what it read is still true (see `Conflict`)."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from itertools import takewhile

from tertulia.model.messages import Message

KEPT = 50_000
"""Things that are remembered. Of those that are forgotten it is only known that they were written
at `floor` or before.

A thing is an ID, or a tuple of at most three IDs and the key of a topic, whose length is bounded
(`domain.names.MAX_TOPIC`): 170 bytes for a message, 280 for a conversation with a usual name, and
never more than 1,000. All of them take 8 to 14 MiB, and at most 50."""


def message_in(thing: Hashable) -> int | None:
    """The message that the thing is, or belongs to as a reaction or a part of a widget does; None
    for a conversation."""
    match thing:
        case int():
            return thing
        case (("reactions" | "submessages"), int(message_id), *_):
            return message_id
        case _:
            return None


def entries_of(message: Message) -> tuple[Hashable, ...]:
    """The things of which one is written to where the message changes, or its topic is renamed
    with all of its messages."""
    channel_id, key, _ = message.conversation
    return message.id, renaming(channel_id, key)


def renaming(channel_id: int | None, key: str) -> Hashable:
    """What is written to where a topic is renamed, in place of each of its messages."""
    return "renamed", channel_id, key


def moving(channel_id: int | None, key: str) -> Hashable:
    """What is written to where messages are moved to a topic or out of it. Unlike the
    conversation, nothing is written to it where messages are sent."""
    return "moved", channel_id, key


class RecentWrites:
    """The newest entry that wrote to each thing: a message by its ID, a conversation by its key,
    what people add to a message by a name, its ID, and more."""

    def __init__(self) -> None:
        self._last: OrderedDict[Hashable, int] = OrderedDict()
        self.floor = 0

    def note(self, things: Iterable[Hashable], seq: int) -> None:
        """The entry writes to these things."""
        for thing in things:
            self._last[thing] = seq
            self._last.move_to_end(thing)
        while len(self._last) > KEPT:
            _, self.floor = self._last.popitem(last=False)

    def since(self, seq: int, things: Iterable[Hashable]) -> bool:
        """Whether one of the things was written to after that entry, as far as is known."""
        if self.floor > seq:
            return True
        return any(self._last.get(thing, 0) > seq for thing in things)

    def after(self, seq: int) -> list[Hashable] | None:
        """All things that were written to after that entry, the last ones first; None where some
        of them are forgotten."""
        if self.floor > seq:
            return None
        newest_first = reversed(self._last.items())
        return [thing for thing, _ in takewhile(lambda written: written[1] > seq, newest_first)]
