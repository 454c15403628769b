"""Custom emoji."""

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.domain.organization import emoji as emoji
from tertulia.markup.addresses import custom_address
from tertulia.model.changes import CustomEmojiAdded, CustomEmojiDeactivated
from tertulia.model.emoji import names_by_code
from tertulia.model.reactions import CustomEmoji, EmojiKind
from tertulia.service.files.pictures import MAX_EMOJI_MIB, add_emoji
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.pictures import sent_picture
from tertulia.wire.api.projection import C, Projection, Projections, projected
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import TextPath
from tertulia.wire.http.routing import ApiResponse, Call

REACTION_TYPES: Final[Mapping[str, EmojiKind]] = {
    "unicode_emoji": EmojiKind.UNICODE,
    "realm_emoji": EmojiKind.CUSTOM,
    "zulip_extra_emoji": EmojiKind.EXTRA,
    "service_extra_emoji": EmojiKind.EXTRA,
}
"""The kind of emoji by its type in the API."""

NEUTRAL_TYPE: Final = "service_extra_emoji"

TYPE_OF: Final = {
    EmojiKind.UNICODE: "unicode_emoji",
    EmojiKind.CUSTOM: "realm_emoji",
    EmojiKind.EXTRA: "zulip_extra_emoji",
}


class CustomEmojiObject(Struct, kw_only=True):
    """A custom emoji. `still_url` has the still image of an animated emoji."""

    id: str
    name: str
    source_url: str
    still_url: str | None
    deactivated: bool
    author_id: int | None


def emoji_address(state: State, file: str) -> str:
    """Return the URL of an emoji's image, relative to the organization's URL."""
    return custom_address(state.realm.id, file)


def custom_emoji_object(state: State, emoji: CustomEmoji) -> CustomEmojiObject:
    return CustomEmojiObject(
        id=str(emoji.id),
        name=emoji.name,
        source_url=emoji_address(state, emoji.file),
        still_url=emoji_address(state, emoji.still) if emoji.still else None,
        deactivated=emoji.deactivated,
        author_id=emoji.author_id,
    )


def custom_emoji(state: State) -> dict[str, CustomEmojiObject]:
    """Return all custom emoji by ID, including deactivated ones."""
    return {
        str(emoji.id): custom_emoji_object(state, emoji)
        for emoji in sorted(state.custom_emoji, key=lambda emoji: emoji.id)
    }


class EmojiUpdateEvent(Event, kw_only=True, tag="realm_emoji"):
    """The custom emoji changed. Contains all of them by ID."""

    op: str = "update"
    realm_emoji: dict[str, CustomEmojiObject]


class EmojiAddEvent(Event, kw_only=True, tag="realm_emoji"):
    """A custom emoji was added."""

    op: str = "add"
    emoji: CustomEmojiObject


class EmojiUpdate(Struct, kw_only=True):
    """The changed fields of an emoji."""

    deactivated: bool


class EmojiUpdateOneEvent(Event, kw_only=True, tag="realm_emoji"):
    """A custom emoji changed."""

    op: str = "update_one"
    emoji_id: str
    data: EmojiUpdate


def _emoji_changed(of: type[C], event: Callable[[State, C], Event]) -> Projection[C]:
    """Send the changed emoji to clients with the capability for it, and all custom emoji to
    others."""
    return projected(
        of,
        lambda _, __, viewer: viewer.registration.capabilities.individual_emoji_changes,
        lambda context, change, individually: (
            event(context.state, change)
            if individually
            else EmojiUpdateEvent(realm_emoji=custom_emoji(context.state)),
        ),
    )


class CustomEmojiResponse(ApiResponse, kw_only=True):
    """The custom emoji by ID, including deactivated ones."""

    emoji: dict[str, CustomEmojiObject]


async def get_custom_emoji(call: Call) -> CustomEmojiResponse:
    """Get the organization's custom emoji."""
    return CustomEmojiResponse(emoji=custom_emoji(call.state))


async def add_custom_emoji(call: Call, emoji_name: TextPath) -> None:
    """Add a custom emoji. Upload its image as the request's only file. In its name, spaces become
    underscores, and letters lowercase."""
    name = emoji_name.strip().replace(" ", "_").lower()
    call.consider(emoji.check_new, name)
    await add_emoji(call, name, sent_picture(call, MAX_EMOJI_MIB))


async def deactivate_custom_emoji(call: Caller, emoji_name: TextPath) -> None:
    """Deactivate a custom emoji. Existing reactions keep it."""
    await call.submit(emoji.deactivate, emoji_name)


EMOJI_PATH: Final = "/static/emoji.json"


@cache
def emoji_data() -> bytes:
    """The names of every Unicode emoji by code, as JSON."""
    return msgspec.json.encode({"code_to_names": names_by_code()})


@cache
def emoji_url() -> str:
    """The path of `emoji_data`, with a version that changes with its content."""
    return f"{EMOJI_PATH}?version={hashlib.sha256(emoji_data()).hexdigest()[:16]}"


SECTIONS: Final[Sections] = {
    ("realm_emoji",): lambda context: {"realm_emoji": custom_emoji(context.state)}
}


PROJECTIONS: Final[Projections] = (
    _emoji_changed(
        CustomEmojiAdded,
        lambda state, change: EmojiAddEvent(emoji=custom_emoji_object(state, change.emoji)),
    ),
    _emoji_changed(
        CustomEmojiDeactivated,
        lambda _, change: EmojiUpdateOneEvent(
            emoji_id=str(change.emoji_id), data=EmojiUpdate(deactivated=True)
        ),
    ),
)
