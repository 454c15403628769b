"""The organization's own emoji."""

from typing import Annotated

from tertulia.domain.organization import emoji
from tertulia.model.errors import Refused
from tertulia.service.caller import Caller
from tertulia.service.files.custom_emoji import MAX_MIB, add_emoji
from tertulia.wire.api.objects.reactions import CustomEmojiObject, custom_emoji
from tertulia.wire.http.call import Call
from tertulia.wire.http.forms import MIB
from tertulia.wire.http.parameters import Params, Path
from tertulia.wire.http.routing import Answer


class GetEmoji(Params, kw_only=True, frozen=True):
    """All emoji of the organization's own."""


class CustomEmojiMap(Answer, kw_only=True):
    """The organization's emoji by ID, the deactivated ones too."""

    emoji: dict[str, CustomEmojiObject]


async def get_custom_emoji(call: Call, params: GetEmoji) -> CustomEmojiMap:
    """The organization's own emoji."""
    return CustomEmojiMap(emoji=custom_emoji(call.state))


class NamedEmoji(Params, kw_only=True, frozen=True):
    """An emoji by its name."""

    emoji_name: Annotated[str, Path()]


async def add_custom_emoji(call: Call, params: NamedEmoji) -> Answer:
    """Add an emoji. Its picture is the one file of the request."""
    name = params.emoji_name
    call.consider(emoji.allow, name)
    if len(call.uploads) != 1:
        raise Refused("Upload exactly one file for the emoji.")
    content = call.uploads[0].content
    if len(content) > MAX_MIB * MIB:
        raise Refused(f"The image is larger than the {MAX_MIB} MiB limit. Upload a smaller one.")
    await add_emoji(call, name, content)
    return Answer()


async def deactivate_custom_emoji(call: Caller, params: NamedEmoji) -> Answer:
    """Offer an emoji no more. Reactions with it stay."""
    await call.submit(emoji.deactivate, params.emoji_name)
    return Answer()
