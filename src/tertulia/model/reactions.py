"""Reactions to messages, and the emoji that the organization made itself."""

from enum import StrEnum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.messages import MessagePlace, Submessage


class EmojiKind(StrEnum):
    """Which list an emoji's code is from."""

    UNICODE = "unicode"
    """Code points: see `tertulia.model.emoji`."""
    CUSTOM = "custom"
    """The ID of one of the organization's."""
    EXTRA = "extra"
    """The name of one that the service itself adds."""


EXTRA_NAMES = frozenset({"zulip"})
"""The emoji that the service adds."""


class Emoji(Struct, frozen=True, kw_only=True):
    """An emoji, by the name that it was called by."""

    kind: EmojiKind
    code: str
    name: str


class Reaction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One person's emoji at a message. Message, person, kind and code are its identity."""

    message_id: int
    user_id: int
    kind: EmojiKind
    code: str
    name: str
    neutral: bool = False
    """Whether its kind was called by the newer, neutral name that it has in requests."""


class CustomEmoji(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An emoji of the organization's own. A deactivated one stays for the reactions it is in."""

    id: int
    name: str
    """Unique among the active ones."""
    file: str
    """The name of its picture among the emoji files."""
    still: str = ""
    """The same of a picture that does not move, where that one does."""
    author_id: int | None = None
    deactivated: bool = False


class ReactionAdded(Change, frozen=True, tag="reaction_added"):
    """Somebody reacted to a message.

    `recorded` means that they had no record of the message before, and have one now. `holders` are
    the users with a record of it although it was not delivered to them. Of an entry that is read
    from the database, `gone` means that the message was deleted since, and `moved_to` is the
    channel that it was moved to since.
    """

    reaction: Reaction
    place: MessagePlace
    recorded: bool = False
    holders: tuple[int, ...] = ()
    gone: bool = False
    moved_to: int | None = None


class ReactionRemoved(Change, frozen=True, tag="reaction_removed"):
    """Somebody removed a reaction of theirs. The other fields are as in `ReactionAdded`."""

    reaction: Reaction
    place: MessagePlace
    holders: tuple[int, ...] = ()
    gone: bool = False
    moved_to: int | None = None


class SubmessageAdded(Change, frozen=True, tag="submessage_added"):
    """Somebody used a message's widget.

    The log has no copy of the content. `gone` and `moved_to` are as in `ReactionAdded`.
    """

    submessage: Submessage
    place: MessagePlace
    holders: tuple[int, ...] = ()
    gone: bool = False
    moved_to: int | None = None


class CustomEmojiAdded(Change, frozen=True, tag="custom_emoji_added"):
    """The organization has a new emoji."""

    emoji: CustomEmoji


class CustomEmojiDeactivated(Change, frozen=True, tag="custom_emoji_deactivated"):
    """A custom emoji was deactivated."""

    emoji_id: int
