"""Reactions, submessages, and custom emoji."""

from enum import StrEnum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.messages import MessagePlace, Submessage


class EmojiKind(StrEnum):
    """The list that contains an emoji's code."""

    UNICODE = "unicode"
    """The code points; see `tertulia.model.emoji`."""
    CUSTOM = "custom"
    """The ID of a custom emoji."""
    EXTRA = "extra"
    """The name of an emoji that the server adds."""


EXTRA_NAMES = frozenset({"zulip"})
"""The names of emoji that the server adds."""


class Emoji(Struct, frozen=True, kw_only=True):
    kind: EmojiKind
    code: str
    name: str


class Reaction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reaction. Message, user, kind, and code identify it."""

    message_id: int
    user_id: int
    kind: EmojiKind
    code: str
    name: str
    neutral: bool = False
    """Whether the request used the neutral name of the emoji's kind."""


class CustomEmoji(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A custom emoji. Deactivated ones remain for existing reactions."""

    id: int
    name: str
    """Unique among active ones."""
    file: str
    """The name of its image file."""
    still: str = ""
    """The name of a still image, if the emoji is animated."""
    author_id: int | None = None
    deactivated: bool = False


class ReactionAdded(Change, frozen=True, tag="reaction_added"):
    """A user reacted to a message.

    `recorded` means that they had no record of the message before. `holders` are users with a
    record of it although it wasn't delivered to them. In an entry that is read from the database,
    `gone` means that the message was deleted since, and `moved_to` is the channel that it was moved
    to since.
    """

    reaction: Reaction
    place: MessagePlace
    recorded: bool = False
    holders: tuple[int, ...] = ()
    gone: bool = False
    moved_to: int | None = None


class ReactionRemoved(Change, frozen=True, tag="reaction_removed"):
    """A user removed a reaction. The other fields are as in `ReactionAdded`."""

    reaction: Reaction
    place: MessagePlace
    holders: tuple[int, ...] = ()
    gone: bool = False
    moved_to: int | None = None


class SubmessageAdded(Change, frozen=True, tag="submessage_added"):
    """A user acted on a widget.

    The log has no copy of content. `gone` and `moved_to` are as in `ReactionAdded`.
    """

    submessage: Submessage
    place: MessagePlace
    holders: tuple[int, ...] = ()
    gone: bool = False
    moved_to: int | None = None


class CustomEmojiAdded(Change, frozen=True, tag="custom_emoji_added"):
    emoji: CustomEmoji


class CustomEmojiDeactivated(Change, frozen=True, tag="custom_emoji_deactivated"):
    emoji_id: int
