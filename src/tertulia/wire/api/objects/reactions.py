"""Reactions, the parts of widgets, and custom emoji on the wire."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tertulia.markup.emoji_addresses import custom_address
from tertulia.model.messages import Submessage
from tertulia.model.reactions import CustomEmoji, EmojiKind, Reaction
from tertulia.model.users import User
from tertulia.state.organization import State
from tertulia.wire.api.objects.users import api_email, unknown_user

REACTION_TYPES: Final[Mapping[str, EmojiKind]] = {
    "unicode_emoji": EmojiKind.UNICODE,
    "realm_emoji": EmojiKind.CUSTOM,
    "zulip_extra_emoji": EmojiKind.EXTRA,
    "service_extra_emoji": EmojiKind.EXTRA,
}
"""What each kind of emoji is called; the last by the name that it has in the specification."""
NEUTRAL_TYPE: Final = "service_extra_emoji"
TYPE_OF: Final = {
    EmojiKind.UNICODE: "unicode_emoji",
    EmojiKind.CUSTOM: "realm_emoji",
    EmojiKind.EXTRA: "zulip_extra_emoji",
}
"""The name of each kind in the API."""


class Reactor(Struct, kw_only=True):
    """Who reacted, for clients that do not look it up by the ID."""

    user_id: int
    email: str
    full_name: str


class ReactionObject(Struct, kw_only=True):
    """Somebody's reaction to a message."""

    emoji_name: str
    emoji_code: str
    reaction_type: str
    user_id: int
    user: Reactor


class SubmessageObject(Struct, kw_only=True):
    """A part of a message's widget. `content` is JSON text."""

    id: int
    message_id: int
    sender_id: int
    msg_type: str
    content: str


class CustomEmojiObject(Struct, kw_only=True):
    """An emoji of the organization's own. `still_url` is there where the picture moves."""

    id: str
    name: str
    source_url: str
    still_url: str | None
    deactivated: bool
    author_id: int | None


def reaction_type(reaction: Reaction) -> str:
    """The kind of its emoji, by the name that its sender used where there are two."""
    return NEUTRAL_TYPE if reaction.neutral else TYPE_OF[reaction.kind]


def reactor(state: State, user: User, host: str, *, sees_user: bool, sees_address: bool) -> Reactor:
    """The account as shown to a viewer who sees it and its address, or does not."""
    if not sees_user:
        shown = unknown_user(user, host, joined_at=state.realm.created_at)
        return Reactor(user_id=user.id, email=shown.email, full_name=shown.full_name)
    return Reactor(
        user_id=user.id,
        email=api_email(state, user, host, sees_address=sees_address),
        full_name=user.full_name,
    )


def reaction_object(reaction: Reaction, by: Reactor) -> ReactionObject:
    """The reaction as it is in a message."""
    return ReactionObject(
        emoji_name=reaction.name,
        emoji_code=reaction.code,
        reaction_type=reaction_type(reaction),
        user_id=reaction.user_id,
        user=by,
    )


def submessage_object(submessage: Submessage) -> SubmessageObject:
    """The submessage as it is in a message."""
    return SubmessageObject(
        id=submessage.id,
        message_id=submessage.message_id,
        sender_id=submessage.sender_id,
        msg_type=submessage.kind,
        content=submessage.content,
    )


def emoji_address(state: State, file: str) -> str:
    """Where an emoji's picture is, below the organization's address."""
    return custom_address(state.realm.id, file)


def custom_emoji_object(state: State, emoji: CustomEmoji) -> CustomEmojiObject:
    """The emoji with the addresses of its pictures."""
    return CustomEmojiObject(
        id=str(emoji.id),
        name=emoji.name,
        source_url=emoji_address(state, emoji.file),
        still_url=emoji_address(state, emoji.still) if emoji.still else None,
        deactivated=emoji.deactivated,
        author_id=emoji.author_id,
    )


def custom_emoji(state: State) -> dict[str, CustomEmojiObject]:
    """All of the organization's emoji by ID, the deactivated ones too."""
    return {
        str(emoji.id): custom_emoji_object(state, emoji)
        for emoji in sorted(state.custom_emoji, key=lambda emoji: emoji.id)
    }
