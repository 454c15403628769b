"""Edits, moves and deletions of messages."""

from msgspec import Struct

from tertulia.model.changes.base import Change
from tertulia.model.channels import Topic
from tertulia.model.messages import Flag, Message, Propagation, Submessage
from tertulia.model.ranges import IdRanges
from tertulia.model.reactions import Reaction

Groups = tuple[tuple[IdRanges, tuple[int, ...]], ...]
"""Pairs of some of the messages and the users they concern, ascending."""


class MessageEdited(Change, frozen=True, tag="message_edited"):
    """A message has new content. `message` is as it is now.

    `mentioned` and `unmentioned` are the mentions that users gained and lost by it. `flags` are
    the sparse flags of all who have some afterwards, and `read_by` those who had marked it as
    read. `rendering_only` says that only the HTML is new. The log keeps no copy of what the message
    says or said: read back from it, `message` has the content of now; `gone` says that it has
    been deleted since, and `moved_to` in which other channel it is now. `attached` and `detached`
    are the uploaded files that it links only now, and not any more. `awaits_previews` says that it
    links pages whose previews are to be fetched; otherwise it awaits none any more.
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
    """The pages that a message links have no previews to show, and it awaits none any more."""

    message_id: int


class Arrival(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A moved message, with everything that users get who could not read it before.

    Of what people wrote the log has no copy: read back from it, `message` and the contents of
    `submessages` are as they are now. `message` is None when it has been deleted since, and
    `moved_to` is in which other channel it is now. `reactions` are as they were at the move, and
    `flags` the sparse flags then of those to whom it is new.
    """

    message_id: int
    message: Message | None = None
    moved_to: int | None = None
    reactions: tuple[Reaction, ...] = ()
    submessages: tuple[Submessage, ...] = ()
    flags: dict[int, Flag] = {}


class MessagesMoved(Change, frozen=True, tag="messages_moved"):
    """Messages of one topic are in another one, perhaps of another channel.

    `topic` and `new_topic` are spelled as in `anchor_id`, the message that was asked about, before
    and after; `flags` and `read_by` are that message's, as in `MessageEdited`. `topics` are the
    topics as they are then, `emptied` those without messages (channel and key), and
    `first_message_ids` the new beginnings of channels. The others are some of the messages, and
    the users whom they concern: `lost`, who could read them and cannot any more, and lose their
    sparse flags on them (each user is named once); `marked_read` and `recorded`, for whom they
    count as read, and who keep a record of them, so that unread is what was, and nothing else.

    In another channel it does not follow from who was subscribed who received a message: none
    mentions everybody by a mark of its own there, and `mentioned` are those whom some did, with
    the IDs of these, as far as they can still read them.
    """

    message_ids: tuple[int, ...]
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
    """Whether the anchor mentions everybody who received it, where it is then."""
    new_to: Groups = ()
    """Subscribers of the new channel who could not read them in the old one, and can now."""
    arrivals: tuple[Arrival, ...] = ()
    """The newest of the messages, ascending, where they are new to somebody."""

    @property
    def changes_channel(self) -> bool:
        return self.channel_id != self.new_channel_id

    @property
    def changes_topic(self) -> bool:
        return self.topic != self.new_topic


class MessagesDeleted(Change, frozen=True, tag="messages_deleted"):
    """Messages of one conversation are gone.

    `topics`, `emptied` and `first_message_ids` are as in `MessagesMoved`; `direct_last_id` is the
    newest message that a direct conversation has then. `holders` are the users who had a sparse
    flag on some of them, with the IDs of these; `detached` the uploaded files that they linked.
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
