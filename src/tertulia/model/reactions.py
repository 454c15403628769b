"""Reactions to messages, and the emoji that the organization made itself."""

from enum import StrEnum

from msgspec import Struct


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
