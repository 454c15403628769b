"""Custom emoji on the wire."""

import hashlib
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct

from tertulia.domain.organization import emoji as emoji
from tertulia.markup.addresses import custom_address
from tertulia.model.changes import CustomEmojiAdded, CustomEmojiDeactivated
from tertulia.model.emoji import names_by_code
from tertulia.model.errors import Refused
from tertulia.model.reactions import CustomEmoji, EmojiKind
from tertulia.service.caller import Caller
from tertulia.service.files.pictures import MAX_EMOJI_MIB, add_emoji
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import C, ForEverybody, ProjectionContext, Projections, Viewer
from tertulia.wire.api.section import Sections
from tertulia.wire.http.forms import MIB
from tertulia.wire.http.parameters import Params, Path
from tertulia.wire.http.routing import ApiResponse, Call

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


class CustomEmojiObject(Struct, kw_only=True):
    """An emoji of the organization's own. `still_url` is there where the picture moves."""

    id: str
    name: str
    source_url: str
    still_url: str | None
    deactivated: bool
    author_id: int | None


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


class EmojiUpdateEvent(Event, kw_only=True, tag="realm_emoji"):
    """The organization's emoji are others now: all of them, by ID."""

    op: str = "update"
    realm_emoji: dict[str, CustomEmojiObject]


class EmojiAddEvent(Event, kw_only=True, tag="realm_emoji"):
    """There is a new emoji."""

    op: str = "add"
    emoji: CustomEmojiObject


class EmojiNews(Struct, kw_only=True):
    """What is new about an emoji."""

    deactivated: bool


class EmojiUpdateOneEvent(Event, kw_only=True, tag="realm_emoji"):
    """One emoji has changed."""

    op: str = "update_one"
    emoji_id: str
    data: EmojiNews


class _EmojiProjection(ForEverybody[C]):
    """One emoji by itself for clients that take them singly, all emoji for those that do not."""

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable:
        return viewer.registration.capabilities.individual_emoji_changes


class CustomEmojiAddedProjection(_EmojiProjection[CustomEmojiAdded]):
    """A new emoji."""

    of = CustomEmojiAdded

    def events(
        self, context: ProjectionContext, change: CustomEmojiAdded, view: Any
    ) -> Iterable[Event]:
        if view:
            yield EmojiAddEvent(emoji=custom_emoji_object(context.state, change.emoji))
        else:
            yield EmojiUpdateEvent(realm_emoji=custom_emoji(context.state))


class CustomEmojiDeactivatedProjection(_EmojiProjection[CustomEmojiDeactivated]):
    """An emoji that is not offered any more."""

    of = CustomEmojiDeactivated

    def events(
        self, context: ProjectionContext, change: CustomEmojiDeactivated, view: Any
    ) -> Iterable[Event]:
        if view:
            yield EmojiUpdateOneEvent(
                emoji_id=str(change.emoji_id), data=EmojiNews(deactivated=True)
            )
        else:
            yield EmojiUpdateEvent(realm_emoji=custom_emoji(context.state))


class GetEmoji(Params, kw_only=True, frozen=True):
    """All emoji of the organization's own."""


class CustomEmojiMap(ApiResponse, kw_only=True):
    """The organization's emoji by ID, the deactivated ones too."""

    emoji: dict[str, CustomEmojiObject]


async def get_custom_emoji(call: Call, params: GetEmoji) -> CustomEmojiMap:
    """The organization's own emoji."""
    return CustomEmojiMap(emoji=custom_emoji(call.state))


class NamedEmoji(Params, kw_only=True, frozen=True):
    """An emoji by its name."""

    emoji_name: Annotated[str, Path()]


async def add_custom_emoji(call: Call, params: NamedEmoji) -> ApiResponse:
    """Add an emoji. Its picture is the one file of the request."""
    name = params.emoji_name
    call.consider(emoji.check_new, name)
    if len(call.uploads) != 1:
        raise Refused("Upload exactly one file for the emoji.")
    content = call.uploads[0].content
    if len(content) > MAX_EMOJI_MIB * MIB:
        raise Refused(
            f"The image is larger than the {MAX_EMOJI_MIB} MiB limit. Upload a smaller one."
        )
    await add_emoji(call, name, content)
    return ApiResponse()


async def deactivate_custom_emoji(call: Caller, params: NamedEmoji) -> ApiResponse:
    """Offer an emoji no more. Reactions with it stay."""
    await call.submit(emoji.deactivate, params.emoji_name)
    return ApiResponse()


EMOJI_PATH: Final = "/static/emoji.json"


@cache
def emoji_data() -> bytes:
    """The names of every Unicode emoji by its code, as JSON."""
    return msgspec.json.encode({"code_to_names": names_by_code()})


@cache
def emoji_url() -> str:
    """Where the file is, below the organization's address. Another content is elsewhere."""
    return f"{EMOJI_PATH}?version={hashlib.sha256(emoji_data()).hexdigest()[:16]}"


SECTIONS: Final[Sections] = {
    ("realm_emoji",): lambda context: {"realm_emoji": custom_emoji(context.state)}
}


PROJECTIONS: Final[Projections] = (
    CustomEmojiAddedProjection(),
    CustomEmojiDeactivatedProjection(),
)
