"""The organization's own emoji."""

import re
import secrets
from typing import Annotated, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tertulia import pictures
from tertulia.domain.organization import emoji
from tertulia.model.errors import BadImage, Refused
from tertulia.store.files import Files
from tertulia.wire.api.objects.reactions import CustomEmojiObject, custom_emoji
from tertulia.wire.http.caching import unless_known
from tertulia.wire.http.call import Call
from tertulia.wire.http.content_policies import PICTURE
from tertulia.wire.http.forms import MIB
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.parameters import Params, Path
from tertulia.wire.http.routing import Answer

MAX_MIB: Final = 5
SIZE: Final = 64
"""Pixels of each side."""
_FILES: Final = "emoji"
_MEDIA_TYPES: Final = {"png": "image/png", "gif": "image/gif"}
_FILE: Final = re.compile(r"[0-9a-f]{32}\.(png|gif)")
_YEAR_SECONDS: Final = 365 * 86400


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
        raise Refused("An emoji is made of one file.")
    content = call.uploads[0].content
    if len(content) > MAX_MIB * MIB:
        raise Refused(f"The picture is larger than {MAX_MIB} MiB.")
    try:
        still = await pictures.squared(content, SIZE)
        moving = await pictures.animated(content, SIZE)
    except pictures.BadPicture as error:
        raise BadImage(str(error)) from None
    files = call.node.files
    written: list[str] = []
    try:
        written.append(await kept(files, still.content, "png"))
        if moving is not None:
            written.append(await kept(files, moving.content, "gif"))
        new = emoji.NewEmoji(
            name=name, file=written[-1], still=written[0] if moving is not None else ""
        )
        await call.submit(emoji.add, new)
    except Refused:
        for file in written:
            await files.delete(f"{_FILES}/{file}")
        raise
    return Answer()


async def kept(files: Files, picture: bytes, ending: str) -> str:
    """Keep an emoji's picture of `SIZE` pixels; the name of its file."""
    file = f"{secrets.token_hex(16)}.{ending}"
    await files.put(f"{_FILES}/{file}", picture)
    return file


async def deactivate_custom_emoji(call: Call, params: NamedEmoji) -> Answer:
    """Offer an emoji no more. Reactions with it stay."""
    await call.submit(emoji.deactivate, params.emoji_name)
    return Answer()


def emoji_pages(node: HttpNode) -> tuple[Route, ...]:
    """Where the pictures are. Anybody may fetch one who knows its name, which cannot be guessed."""
    headers = {
        "Cache-Control": f"public, max-age={_YEAR_SECONDS}, immutable",
        "Content-Security-Policy": PICTURE,
        "Access-Control-Allow-Origin": "*",
    }

    async def picture(request: Request) -> Response:
        file: str = request.path_params["file"]
        content = None
        if _FILE.fullmatch(file) and request.path_params["realm_id"] == node.state.realm.id:
            content = await node.files.read(f"{_FILES}/{file}")
        if content is None:
            return Response("There is no such emoji.\n", 404, media_type="text/plain")
        return unless_known(request, content, _MEDIA_TYPES[file.rpartition(".")[2]], headers)

    return (Route("/user_avatars/{realm_id:int}/emoji/images/{file}", picture),)
