"""Messages, direct conversations, and readers' flags."""

from enum import Enum, IntFlag
from sys import getsizeof

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.channels import topic_key
from tertulia.model.numbers import UnixSeconds
from tertulia.model.ranges import IdRanges


class Flag(IntFlag):
    """A reader's flags on a message.

    Read messages are in the reader's bitmap; these are the sparse flags, which have a row only if
    one is set. `RECORD` alone means that the reader has a relation to a message that wasn't
    delivered to them (starred from the history, for example).
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
    """A message in a topic of a channel or in a direct conversation."""

    id: int
    sender_id: int
    sent_at: UnixSeconds
    channel_id: int | None = None
    topic: str = ""
    """Empty for the general chat, and for direct messages."""
    direct_id: int | None = None
    """The ID of a direct message's `DirectConversation`."""
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
    """Whether it has the form `/me …`."""
    mentions_all: bool = False
    """Whether a wildcard mentions everyone who received it: they have no rows for that."""

    @property
    def text_size(self) -> int:
        """The size of its content and HTML in memory, in bytes."""
        return getsizeof(self.content) + getsizeof(self.rendered)

    @property
    def conversation(self) -> tuple[int | None, str, int | None]:
        """Identifies the topic or direct conversation."""
        return self.channel_id, topic_key(self.topic), self.direct_id


class Propagation(Enum):
    """The messages of a topic that a move includes."""

    ONE = "change_one"
    LATER = "change_later"
    """The message and newer ones."""
    ALL = "change_all"


class MessageEdit(Struct, frozen=True, kw_only=True):
    """An edit of a message, with the previous values. A field that didn't change is None."""

    message_id: int
    seq: int
    """The log's entry."""
    at: UnixSeconds
    user_id: int | None
    was_content: str | None = None
    was_rendered: str | None = None
    was_topic: str | None = None
    topic: str | None = None
    was_channel_id: int | None = None
    channel_id: int | None = None
    text_omitted: bool = False
    """Whether the content changed, but the previous one was left out to limit the page's size."""

    @property
    def changed_content(self) -> bool:
        return self.text_omitted or self.was_content is not None


class MessagePlace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message's ID and conversation, which decide who can read it."""

    id: int
    channel_id: int | None = None
    direct_id: int | None = None


def place_of(message: Message) -> MessagePlace:
    return MessagePlace(id=message.id, channel_id=message.channel_id, direct_id=message.direct_id)


Placed = Message | MessagePlace
"""The part of a message that decides who can read it."""


class Submessage(Struct, frozen=True, kw_only=True):
    """A part of a widget: its first state, or an action on it."""

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
    """The users whom it mentions and notifies."""
    mentioned_groups: frozenset[int] = frozenset()
    """The groups whose members it mentions and notifies."""
    mentions_all: bool = False
    mentions_topic: bool = False
    has_link: bool = False
    has_image: bool = False
    pages: tuple[str, ...] = ()
    """Linked pages to fetch previews of."""
    is_me: bool = False


class DirectConversation(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A set of people who exchange direct messages; a single person for notes to themselves."""

    id: int
    members: tuple[int, ...]
    """Ascending; identifies the conversation."""
    last_message_id: int = 0


class MessageSent(Change, frozen=True, tag="message_sent"):
    """A message was sent.

    Its recipients follow from the subscriptions or the conversation. `flags` are the sparse flags
    by user. `read_by` are other users for whom it's read from the start, because they muted the
    sender or did what it reports. `widget` is its first submessage. `new_conversation` is the
    direct conversation that it began. `queue_id` and `local_id` identify the request for the
    sender; `request_digest` is a digest of that and of what was sent (empty without them).
    `attachment_ids` are uploaded files that it links. `awaits_previews` means that previews of its
    links are pending.

    The log has no copy of content. In an entry that is read from the database, `message` has the
    present content, `gone` means that it was deleted since, and `moved_to` is the channel that it
    was moved to since.
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
    imported: bool = False

    @property
    def readers(self) -> tuple[int, ...]:
        """The users for whom the message is read from the start."""
        return (self.message.sender_id, *self.read_by) if self.read_by_sender else self.read_by


class FlagsChanged(Change, frozen=True, tag="flags_changed"):
    """A reader set or cleared a sparse flag. `recorded` are messages of which they had no record
    before."""

    user_id: int
    message_ids: tuple[int, ...]
    flag: Flag
    added: bool
    recorded: tuple[int, ...] = ()


class MessagesRead(Change, frozen=True, tag="messages_read"):
    """A reader read messages. `everything` means that none are unread now."""

    user_id: int
    message_ids: tuple[int, ...]
    everything: bool = False


class ReadStateImported(Change, frozen=True, tag="read_state_imported"):
    """Users have read imported messages. `groups` are messages between the two IDs, inclusive, and
    the users who have read them."""

    first_id: int
    last_id: int
    groups: tuple[tuple[IdRanges, tuple[int, ...]], ...]


class UnreadMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data that clients need to show a message as unread."""

    id: int
    channel_id: int | None = None
    topic: str = ""
    others: tuple[int, ...] = ()
    """The other people of a direct conversation."""
    mentioned: bool = False


class MessagesUnread(Change, frozen=True, tag="messages_unread"):
    """A reader marked messages as unread. `recorded` are messages of which they had no record
    before."""

    user_id: int
    messages: tuple[UnreadMessage, ...]
    recorded: tuple[int, ...] = ()


class LinkPreview(Struct, frozen=True, kw_only=True):
    """A page's metadata; empty if it has none."""

    title: str = ""
    description: str = ""
    image: str = ""
    """The URL of an image."""


class PendingPreview(Struct, frozen=True, kw_only=True):
    """A message whose link previews are pending."""

    message_id: int
    seq: int
    """The log's entry with the content that has the links."""
