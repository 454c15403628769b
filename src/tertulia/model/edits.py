"""Changes that edit, move, and delete messages."""

from msgspec import Struct
from pyroaring import BitMap

from tertulia.model.change import Change
from tertulia.model.channels import Topic, topic_key
from tertulia.model.messages import Flag, Message, Propagation, Submessage
from tertulia.model.ranges import IdRanges
from tertulia.model.reactions import Reaction


class TopicMove(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A move that was allowed as a whole, and happens in batches, newest messages first."""

    id: int
    user_id: int
    anchor_id: int
    """The message that was named in the request."""
    channel_id: int
    topic: str
    new_channel_id: int
    new_topic: str
    propagation: Propagation
    ranges: tuple[tuple[int, int], ...]
    """Ranges of the topic's messages with after < id <= until, ascending. If it `respells` them,
    the ranges of those that are left."""
    count: int
    """The number of messages when the move began."""
    is_whole: bool
    """Whether the move includes all messages of the topic."""
    tell_old: bool = False
    tell_new: bool = True
    has_begun: bool = False
    """Whether the newest messages have been moved."""
    joins: bool = False
    """Whether the new topic had messages when the move began."""

    @property
    def last_id(self) -> int:
        """The newest message when the move began."""
        return self.ranges[-1][1]

    @property
    def respells(self) -> bool:
        """Whether the messages stay in their topic, and only its spelling changes."""
        place = (self.channel_id, topic_key(self.topic))
        return place == (self.new_channel_id, topic_key(self.new_topic))

    def before(self, message_id: int) -> tuple[tuple[int, int], ...]:
        """Return the part of the ranges with lower IDs."""
        return tuple(
            (after, min(until, message_id - 1))
            for after, until in self.ranges
            if after < message_id - 1
        )


Groups = tuple[tuple[IdRanges, tuple[int, ...]], ...]
"""Pairs of messages and the users whom they concern, ascending."""


class MessageEdited(Change, frozen=True, tag="message_edited"):
    """A message was edited; `message` is the result.

    `mentioned` and `unmentioned` are mention flags that users gained and lost. `flags` are all
    sparse flags afterwards, and `read_by` the users who had read it. `rendering_only` means that
    only the HTML changed. `attached` and `detached` are uploaded files that it newly links or no
    longer links. `awaits_previews` means that previews of its links are pending; otherwise none
    are.

    The log has no copy of content. In an entry that is read from the database, `message` has the
    present content, `gone` means that it was deleted since, and `moved_to` is the channel that it
    was moved to since.
    """

    message: Message
    was_content: str = ""
    was_rendered: str = ""
    mentioned: dict[int, Flag] = {}
    unmentioned: dict[int, Flag] = {}
    flags: dict[int, Flag] = {}
    read_by: tuple[int, ...] = ()
    rendering_only: bool = False
    gone: bool = False
    moved_to: int | None = None
    attached: tuple[int, ...] = ()
    detached: tuple[int, ...] = ()
    awaits_previews: bool = False


class PreviewsGivenUp(Change, frozen=True, tag="previews_given_up"):
    """Previews for a message are no longer pending."""

    message_id: int


class Arrival(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A moved message, with everything that users need who couldn't read it before.

    `reactions` and `flags` (of users to whom it's new) are those at the time of the move. In an
    entry that is read from the database, `message` and the contents of `submessages` are the
    present ones; `message` is None if it was deleted since.
    """

    message_id: int
    message: Message | None = None
    reactions: tuple[Reaction, ...] = ()
    submessages: tuple[Submessage, ...] = ()
    flags: dict[int, Flag] = {}


class MessagesMoved(Change, frozen=True, tag="messages_moved"):
    """Messages of one topic were moved to another topic, perhaps in another channel.

    `anchor_id` is the message by which the move was requested; `topic` and `new_topic` are spelled
    as in it, and `flags` and `read_by` are its own, as in `MessageEdited`. `topics` are the topics
    afterwards, `emptied` those without messages (channel and key), and `first_message_ids` the new
    first messages of channels.

    `Groups` are messages with users. `lost`: users who can no longer read them, and lose their
    sparse flags on them (each user once). `marked_read`: users for whom they become read.
    `recorded`: users who get a record of them. These two keep exactly those messages unread that
    were unread before.

    In another channel, subscriptions don't say who received a moved message, so a wildcard in it
    mentions nobody there. `mentioned` are users whom it did mention, with the IDs of these
    messages, if they can still read them.

    `moved_on` isn't in the log. In an entry that is read from the database, it has messages that
    have left the new channel since, as serialized bitmaps by their channel, or None if they were
    deleted.
    """

    message_ids: tuple[int, ...]
    """Empty if `whole_topic` has them."""
    anchor_id: int
    channel_id: int
    topic: str
    new_channel_id: int
    new_topic: str
    propagation: Propagation
    topics: tuple[Topic, ...] = ()
    emptied: tuple[tuple[int, str], ...] = ()
    first_message_ids: dict[int, int | None] = {}
    lost: Groups = ()
    marked_read: Groups = ()
    recorded: Groups = ()
    flags: dict[int, Flag] = {}
    read_by: tuple[int, ...] = ()
    mentioned: Groups = ()
    mentions_all: bool = False
    """Whether the anchor mentions everyone who received it, after the move."""
    new_to: Groups = ()
    """Subscribers of the new channel who couldn't read the messages in the old one."""
    arrivals: tuple[Arrival, ...] = ()
    """The newest messages that are new to someone, ascending."""
    to_public_history: bool = False
    """Whether the messages moved to another channel whose subscribers can read its whole
    history."""
    moved_on: tuple[tuple[int | None, bytes], ...] = ()
    whole_topic: bytes = b""
    """All messages of a renamed topic, as a serialized bitmap."""

    @property
    def renames(self) -> bool:
        """Whether a whole topic got a name that no other topic had."""
        return bool(self.whole_topic)

    @property
    def ids(self) -> BitMap:
        return BitMap.deserialize(self.whole_topic) if self.renames else BitMap(self.message_ids)

    @property
    def changes_channel(self) -> bool:
        return self.channel_id != self.new_channel_id

    @property
    def changes_topic(self) -> bool:
        return self.topic != self.new_topic


class TopicMoveStarted(Change, frozen=True, tag="topic_move_started"):
    """A move of many messages was allowed: `MessagesMoved` follow until it ends. Written again when
    it has begun, and with the rest by a move that only respells its topic."""

    move: TopicMove


class TopicMoveEnded(Change, frozen=True, tag="topic_move_ended"):
    move_id: int


class MessagesDeleted(Change, frozen=True, tag="messages_deleted"):
    """Messages of one conversation were deleted.

    `topics`, `emptied` and `first_message_ids` are as in `MessagesMoved`; `direct_last_id` is the
    newest message of the direct conversation afterwards. `holders` are users who had sparse flags
    on them, with the message IDs; `detached` are uploaded files that they linked.
    """

    message_ids: tuple[int, ...]
    channel_id: int | None = None
    topic: str = ""
    direct_id: int | None = None
    topics: tuple[Topic, ...] = ()
    emptied: tuple[tuple[int, str], ...] = ()
    first_message_ids: dict[int, int | None] = {}
    direct_last_id: int = 0
    holders: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()
    detached: tuple[int, ...] = ()
