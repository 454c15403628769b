"""Messages, and how they are read."""

from msgspec import Struct

from tertulia.model.changes.base import Change
from tertulia.model.messages import DirectConversation, Flag, Message, Submessage


class MessageSent(Change, frozen=True, tag="message_sent"):
    """A message was sent.

    Who received it follows from who was subscribed, or from the conversation. `flags` are the
    sparse ones by user. `read_by` are those of the others for whom it counts as read, because they
    muted the sender. `widget` is what makes it more than a text. `new_conversation` is the direct
    conversation it began, if it did. `queue_id` and `local_id` are the sender's echo. The log
    keeps no second copy of the content: read back from it, the message has the content of now;
    `gone` says that it has been deleted since, and `moved_to` in which other channel it is now.
    `attachment_ids` are the uploaded files that it links. `awaits_previews` says that it links
    pages whose previews are to be fetched.
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

    @property
    def readers(self) -> tuple[int, ...]:
        """The users for whom it counts as read from the start."""
        return (self.message.sender_id, *self.read_by) if self.read_by_sender else self.read_by


class FlagsChanged(Change, frozen=True, tag="flags_changed"):
    """One reader set or cleared a sparse flag on messages.

    `recorded` are those of them to which the reader had no relation before, and has now.
    """

    user_id: int
    message_ids: tuple[int, ...]
    flag: Flag
    added: bool
    recorded: tuple[int, ...] = ()


class MessagesRead(Change, frozen=True, tag="messages_read"):
    """One reader has read messages. `everything` says that it was all there was to read."""

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

    `recorded` are those to which the reader had no relation before, and has now.
    """

    user_id: int
    messages: tuple[UnreadMessage, ...]
    recorded: tuple[int, ...] = ()
