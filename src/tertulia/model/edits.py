"""Moves of more messages than one entry of the log moves."""

from msgspec import Struct
from pyroaring import BitMap

from tertulia.model.change import Change
from tertulia.model.channels import Topic, topic_key
from tertulia.model.messages import Flag, Message, Propagation, Submessage
from tertulia.model.ranges import IdRanges
from tertulia.model.reactions import Reaction


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


Groups = tuple[tuple[IdRanges, tuple[int, ...]], ...]
"""Pairs of some of the messages and the users they concern, ascending."""


class MessageEdited(Change, frozen=True, tag="message_edited"):
    """A message has new content. `message` is the edited message.

    `mentioned` and `unmentioned` are the flags for mentions that users gained and lost. `flags` are
    the sparse flags of all users who have some afterwards, and `read_by` the users who had read it.
    `rendering_only` means that only the HTML is new. `attached` and `detached` are the uploaded
    files that it newly links, and those that it links no more. `awaits_previews` means that it
    links pages whose previews are to be fetched; otherwise none are pending any more.

    The log has no copy of any content. Of an entry that is read from the database, `message` has
    the present content, `gone` means that it was deleted since, and `moved_to` is the channel that
    it was moved to since.
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
    """The pages that a message links have no previews; none are pending any more."""

    message_id: int


class Arrival(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A moved message, with everything that is sent to users who could not read it before.

    `reactions` are those at the time of the move, and `flags` the sparse flags, at that time, of
    users to whom it is new. The log has no copy of any content: of an entry that is read from the
    database, `message` and the contents of `submessages` are the present ones, and `message` is
    None if it was deleted since.
    """

    message_id: int
    message: Message | None = None
    reactions: tuple[Reaction, ...] = ()
    submessages: tuple[Submessage, ...] = ()
    flags: dict[int, Flag] = {}


class MessagesMoved(Change, frozen=True, tag="messages_moved"):
    """Messages of one topic were moved to another topic, perhaps of another channel.

    `anchor_id` is the message by which the move was requested. `topic` and `new_topic` are spelled
    as in it before and after; `flags` and `read_by` are the anchor's, as in `MessageEdited`.
    `topics` are the topics afterwards, `emptied` those left without messages (channel and key), and
    `first_message_ids` the new first messages of channels.

    `Groups` are messages with the users whom they concern. `lost`: users who cannot read them any
    more, and lose their sparse flags on them (each user is named once). `marked_read`: users for
    whom they become read. `recorded`: users who get a record of them. By these two, exactly the
    messages that were unread before are unread afterwards.

    In another channel, the subscriptions do not say who received a moved message. So it does not
    mention everybody there by a flag of its own; `mentioned` are the users whom it did mention,
    with the IDs of these messages, if they can still read them.

    `moved_on` is not in the log. Of an entry that is read from the database, it has the messages
    that are not in the new channel any more, as serialized bitmaps, by the channel that they were
    moved to since, or None if they were deleted.
    """

    message_ids: tuple[int, ...]
    """Empty where `whole_topic` has them."""
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
    """Whether the anchor, after the move, mentions everybody who received it."""
    new_to: Groups = ()
    """Subscribers of the new channel who could not read them in the old one."""
    arrivals: tuple[Arrival, ...] = ()
    """The newest of the messages that are new to somebody, ascending."""
    to_public_history: bool = False
    """Whether the messages moved to another channel whose subscribers can read all of it."""
    moved_on: tuple[tuple[int | None, bytes], ...] = ()
    whole_topic: bytes = b""
    """Of a topic that is renamed with all of its messages these, as a serialized bitmap."""

    @property
    def renames(self) -> bool:
        """Whether a topic with all of its messages has another name, which no other topic had."""
        return bool(self.whole_topic)

    @property
    def ids(self) -> BitMap:
        """The messages."""
        return BitMap.deserialize(self.whole_topic) if self.renames else BitMap(self.message_ids)

    @property
    def changes_channel(self) -> bool:
        return self.channel_id != self.new_channel_id

    @property
    def changes_topic(self) -> bool:
        return self.topic != self.new_topic


class TopicMoveStarted(Change, frozen=True, tag="topic_move_started"):
    """Moving many messages was requested and allowed: `MessagesMoved` follow, until it ends. It is
    written again when it has begun; and a move that only respells its topic, with what is left."""

    move: TopicMove


class TopicMoveEnded(Change, frozen=True, tag="topic_move_ended"):
    """All messages of such a move have been moved."""

    move_id: int


class MessagesDeleted(Change, frozen=True, tag="messages_deleted"):
    """Messages of one conversation were deleted.

    `topics`, `emptied` and `first_message_ids` are as in `MessagesMoved`; `direct_last_id` is the
    newest message of the direct conversation afterwards. `holders` are the users who had sparse
    flags on some of them, with the IDs of these; `detached` are the uploaded files that they
    linked.
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
