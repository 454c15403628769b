"""Moves of more messages than one entry of the log moves."""

from msgspec import Struct

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
    """Of the topic's messages, those with after < id <= until of one of these, ascending."""
    count: int
    """Messages when it began."""
    is_whole: bool
    """Whether these were all of the topic."""
    tell_old: bool = False
    tell_new: bool = True

    @property
    def last_id(self) -> int:
        """The newest of its messages when it began."""
        return self.ranges[-1][1]
