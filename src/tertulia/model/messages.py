"""Messages, direct conversations, and readers' flags."""

from enum import Enum, IntFlag
from sys import getsizeof

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.channels import topic_key


class Flag(IntFlag):
    """A reader's flags on a message.

    Being unread is the default and being read is a bit in the reader's bitmap; these are the
    sparse rest, and have a row only where one is set. `RECORD` alone says that the reader has a
    relation to a message that was not delivered to them (starred from the history, say).
    """

    STARRED = 1
    COLLAPSED = 2
    MENTIONED = 4
    CHANNEL_WILDCARD_MENTIONED = 8
    TOPIC_WILDCARD_MENTIONED = 16
    HAS_ALERT_WORD = 32
    RECORD = 64


ANY_MENTION = Flag.MENTIONED | Flag.CHANNEL_WILDCARD_MENTIONED | Flag.TOPIC_WILDCARD_MENTIONED


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A message, in a topic of a channel or in a direct conversation."""

    id: int
    sender_id: int
    sent_at: int
    """UNIX seconds."""
    channel_id: int | None = None
    topic: str = ""
    """Of a channel message; empty for the general chat."""
    direct_id: int | None = None
    """The `DirectConversation`, for direct messages."""
    content: str = ""
    """Markdown source."""
    rendered: str = ""
    """HTML."""
    client: str = ""
    """The sending program's name."""
    has_link: bool = False
    has_image: bool = False
    has_attachment: bool = False
    is_me: bool = False
    """Of the form `/me …`."""
    mentions_all: bool = False
    """Everybody who received it is mentioned by a wildcard: no row says so for each of them."""

    @property
    def text_size(self) -> int:
        """Bytes that its content and HTML take in memory."""
        return getsizeof(self.content) + getsizeof(self.rendered)

    @property
    def conversation(self) -> tuple[int | None, str, int | None]:
        """What the messages of one topic, or of one direct conversation, have in common."""
        return self.channel_id, topic_key(self.topic), self.direct_id


class Propagation(Enum):
    """Which messages of a topic go along when one is moved."""

    ONE = "change_one"
    LATER = "change_later"
    """It and the newer ones."""
    ALL = "change_all"


class MessageEdit(Struct, frozen=True, kw_only=True):
    """One change of a message: what it was before. A field that did not change is None."""

    message_id: int
    seq: int
    """The log's entry that changed it."""
    at: int
    """UNIX seconds."""
    user_id: int | None
    was_content: str | None = None
    was_rendered: str | None = None
    was_topic: str | None = None
    topic: str | None = None
    was_channel_id: int | None = None
    channel_id: int | None = None
    text_omitted: bool = False
    """The content changed, but the page has no room for what it was."""

    @property
    def changed_content(self) -> bool:
        """Whether it changed the content."""
        return self.text_omitted or self.was_content is not None


class MessagePlace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message's ID and conversation: enough to decide who can read it."""

    id: int
    channel_id: int | None = None
    direct_id: int | None = None


def place_of(message: Message) -> MessagePlace:
    """The message's place."""
    return MessagePlace(id=message.id, channel_id=message.channel_id, direct_id=message.direct_id)


Placed = Message | MessagePlace
"""A message, or as much of it as decides who can read it."""


class Submessage(Struct, frozen=True, kw_only=True):
    """A part of a message that is a widget: what it begins with, and what people do with it."""

    id: int
    message_id: int
    sender_id: int
    kind: str
    content: str
    """JSON text."""


class Rendered(Struct, frozen=True, kw_only=True):
    """A message's HTML, and what it refers to."""

    html: str
    mentions: frozenset[int] = frozenset()
    """Users whom it mentions and notifies."""
    mentioned_groups: frozenset[int] = frozenset()
    """Groups whose members it mentions and notifies."""
    mentions_all: bool = False
    mentions_topic: bool = False
    has_link: bool = False
    has_image: bool = False
    pages: tuple[str, ...] = ()
    """Linked pages of which previews shall be fetched, and shown with it."""
    is_me: bool = False


class DirectConversation(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A set of people who wrote to each other. One person alone is notes to oneself."""

    id: int
    members: tuple[int, ...]
    """Ascending; the set is the conversation's identity."""
    last_message_id: int = 0


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


class LinkPreview(Struct, frozen=True, kw_only=True):
    """What a page says about itself; empty where it says nothing."""

    title: str = ""
    description: str = ""
    image: str = ""
    """The address of a picture, somewhere on the web."""


class PendingPreview(Struct, frozen=True, kw_only=True):
    """A message that links pages whose previews are still to be fetched."""

    message_id: int
    seq: int
    """The log's entry by which it says what it says."""
