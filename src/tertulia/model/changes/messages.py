"""Messages, and how they are read."""

from msgspec import Struct

from tertulia.model.changes.base import Change
from tertulia.model.messages import DirectConversation, Flag, Message, Submessage


class MessageSent(Change, frozen=True, tag="message_sent"):
    """A message was sent.

    Its recipients follow from the subscriptions, or from the conversation. `flags` are the sparse
    flags by user. `read_by` are other users for whom it is read from the start, because they muted
    the sender. `widget` is its first submessage. `new_conversation` is the direct conversation that
    began with it, if any. `queue_id` and `local_id` are the sender's echo, and
    `request_digest` identifies what was asked for under these IDs (`request_digest`); it is empty
    without them. `attachment_ids` are the
    uploaded files that it links. `awaits_previews` means that it links pages whose previews are to
    be fetched.

    The log has no copy of the content. Of an entry that is read from the database, `message` has
    the present content, `gone` means that it was deleted since, and `moved_to` is the channel that
    it was moved to since.
    """

    message: Message
    flags: dict[int, Flag] = {}
    read_by_sender: bool = False
    read_by: tuple[int, ...] = ()
    widget: Submessage | None = None
    new_conversation: DirectConversation | None = None
    queue_id: str | None = None
    local_id: str | None = None
    gone: bool = False
    moved_to: int | None = None
    attachment_ids: tuple[int, ...] = ()
    awaits_previews: bool = False
    request_digest: str = ""

    @property
    def readers(self) -> tuple[int, ...]:
        """The users for whom it is read from the start."""
        return (self.message.sender_id, *self.read_by) if self.read_by_sender else self.read_by


class FlagsChanged(Change, frozen=True, tag="flags_changed"):
    """One reader set or cleared a sparse flag on messages.

    `recorded` are those of them on which the reader had no record before, and has one now.
    """

    user_id: int
    message_ids: tuple[int, ...]
    flag: Flag
    added: bool
    recorded: tuple[int, ...] = ()


class MessagesRead(Change, frozen=True, tag="messages_read"):
    """One reader has read messages. `everything` means that none is unread any more."""

    user_id: int
    message_ids: tuple[int, ...]
    everything: bool = False


class UnreadMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a client must know to show a message as unread."""

    id: int
    channel_id: int | None = None
    topic: str = ""
    others: tuple[int, ...] = ()
    """The other people of a direct conversation."""
    mentioned: bool = False


class MessagesUnread(Change, frozen=True, tag="messages_unread"):
    """One reader made messages unread again.

    `recorded` are those on which the reader had no record before, and has one now.
    """

    user_id: int
    messages: tuple[UnreadMessage, ...]
    recorded: tuple[int, ...] = ()
