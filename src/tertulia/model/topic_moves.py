"""Moves of more messages than one entry of the log moves."""

from msgspec import Struct

from tertulia.model.channels import topic_key
from tertulia.model.messages import Propagation


class TopicMove(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A move that was allowed as a whole and is made in pieces, the newest messages first."""

    id: int
    user_id: int
    anchor_id: int
    """The message by which it was requested."""
    channel_id: int
    topic: str
    new_channel_id: int
    new_topic: str
    propagation: Propagation
    ranges: tuple[tuple[int, int], ...]
    """Of the topic's messages, those with after < id <= until of one of these, ascending. Where it
    `respells`, those that are left."""
    count: int
    """Messages when it began."""
    is_whole: bool
    """Whether these were all of the topic."""
    tell_old: bool = False
    tell_new: bool = True
    has_begun: bool = False
    """Whether the newest of its messages have been moved."""
    joins: bool = False
    """Whether the new topic already had messages when the move began."""

    @property
    def last_id(self) -> int:
        """The newest of its messages when it began."""
        return self.ranges[-1][1]

    @property
    def respells(self) -> bool:
        """Whether the messages stay in their topic, which they spell in another way afterwards."""
        here = (self.channel_id, topic_key(self.topic))
        return here == (self.new_channel_id, topic_key(self.new_topic))

    def before(self, message_id: int) -> tuple[tuple[int, int], ...]:
        """The part of the ranges with lower IDs."""
        return tuple(
            (after, min(until, message_id - 1))
            for after, until in self.ranges
            if after < message_id - 1
        )
