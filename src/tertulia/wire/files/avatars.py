"""Pictures of accounts, as browsers and apps fetch them."""

import asyncio
import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tertulia import pictures
from tertulia.service.files.avatars import MEDIUM_SIZE, SIZE
from tertulia.wire.api.objects.users import AVATARS_PATH, DRAWN_PATH
from tertulia.wire.http.caching import unless_known
from tertulia.wire.http.content_policies import PICTURE
from tertulia.wire.http.errors import NotFound
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.responses import failure

_YEAR_SECONDS: Final = 31_536_000
_HEADERS: Final = {
    "Content-Security-Policy": PICTURE,
    "Access-Control-Allow-Origin": "*",
}


def avatar_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """Where the pictures are. Whoever knows an address may see its picture."""

    async def uploaded(request: Request) -> Response:
        """An uploaded picture. Another picture has another name."""
        name = request.path_params["name"]
        if not re.fullmatch(r"[0-9a-f]{40}(-medium)?", name):
            return failure(NotFound())
        content = await node.files.read(f"avatars/{name}.png")
        if content is None:
            return failure(NotFound())
        return _picture(request, content, f"public, max-age={_YEAR_SECONDS}, immutable")

    async def drawn(request: Request) -> Response:
        """The default picture, drawn from its address alone."""
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
