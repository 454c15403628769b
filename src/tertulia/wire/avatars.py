"""Pictures of accounts: taken in, and given out."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tertulia import pictures
from tertulia.model.errors import BadImage, Refused
from tertulia.pictures import BadPicture
from tertulia.store.files import Files
from tertulia.wire.caching import unless_known
from tertulia.wire.call import Call, Node
from tertulia.wire.errors import NotFound
from tertulia.wire.forms import MIB
from tertulia.wire.http import failure
from tertulia.wire.objects.users import AVATARS_PATH, DRAWN_PATH
from tertulia.wire.policies import PICTURE

MAX_PICTURE_MIB: Final = 5
"""Largest avatar, icon, and logo."""
SIZE: Final = 100
MEDIUM_SIZE: Final = 500
_YEAR_SECONDS: Final = 31_536_000
_HEADERS: Final = {
    "Content-Security-Policy": PICTURE,
    "Access-Control-Allow-Origin": "*",
}


def sent_picture(call: Call) -> bytes:
    """The one file that came with the request. Refused unless there is one, and not too large."""
    if len(call.uploads) != 1:
        raise Refused("Send one picture.")
    content = call.uploads[0].content
    if len(content) > MAX_PICTURE_MIB * MIB:
        raise Refused(f"A picture has at most {MAX_PICTURE_MIB} MiB.")
    return content


async def taken_in(call: Call) -> str:
    """Keep the one picture that came with the request, in both its sizes; the name that it has
    now. BadImage for what is no picture; Refused unless there is one, and not too large."""
    content = sent_picture(call)
    try:
        small = await pictures.squared(content, SIZE)
        medium = await pictures.squared(content, MEDIUM_SIZE)
    except BadPicture as error:
        raise BadImage(str(error)) from None
    return await kept(call.node.files, small.content, medium.content)


async def kept(files: Files, small: bytes, medium: bytes) -> str:
    """Keep a picture, as PNGs of `SIZE` and of `MEDIUM_SIZE` pixels; the name that it has now."""
    name = secrets.token_hex(20)
    await files.put(_place(name, medium=False), small)
    await files.put(_place(name, medium=True), medium)
    return name


async def taken_in_if_sent(call: Call) -> str:
    """The same for a request that may come without one: empty then."""
    return await taken_in(call) if call.uploads else ""


@asynccontextmanager
async def thrown_away_on_failure(files: Files, name: str) -> AsyncIterator[None]:
    """Delete the picture of that name, if there is one, where what is done with it fails."""
    try:
        yield
    except BaseException:
        await thrown_away(files, name)
        raise


async def thrown_away(files: Files, name: str) -> None:
    """Delete the picture of that name, if there is one."""
    if name:
        await files.delete(_place(name, medium=False))
        await files.delete(_place(name, medium=True))


def _place(name: str, *, medium: bool) -> str:
    return f"avatars/{name}{'-medium' if medium else ''}.png"


def avatar_pages(node: Node) -> tuple[BaseRoute, ...]:
    """Where the pictures are. Whoever knows an address may see its picture."""

    async def uploaded(request: Request) -> Response:
        """A picture that somebody uploaded. Its name is of this picture alone."""
        name = request.path_params["name"]
        if not re.fullmatch(r"[0-9a-f]{40}(-medium)?", name):
            return failure(NotFound())
        content = await node.files.read(f"avatars/{name}.png")
        if content is None:
            return failure(NotFound())
        return _picture(request, content, f"public, max-age={_YEAR_SECONDS}, immutable")

    async def drawn(request: Request) -> Response:
        """The picture of somebody who has none: it says no more than its address."""
        found = re.fullmatch(
            r"(\d{1,16})(?:-([A-Z0-9]{1,2}))?(-medium)?", request.path_params["name"]
        )
        if found is None:
            return failure(NotFound())
        size = MEDIUM_SIZE if found[3] else SIZE
        content = await asyncio.to_thread(pictures.drawn, int(found[1]), found[2] or "", size)
        return _picture(request, content, "public, max-age=86400")

    return (
        Route(AVATARS_PATH + "/{name}.png", uploaded),
        Route(DRAWN_PATH + "/{name}.png", drawn),
    )


def _picture(request: Request, content: bytes, cache_control: str) -> Response:
    return unless_known(request, content, "image/png", {**_HEADERS, "Cache-Control": cache_control})
