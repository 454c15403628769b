"""The pictures of the organization's own emoji."""

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tertulia.service.files import custom_emoji
from tertulia.wire.http.caching import unless_known
from tertulia.wire.http.content_policies import PICTURE
from tertulia.wire.http.node import HttpNode

_MEDIA_TYPES: Final = {"png": "image/png", "gif": "image/gif"}
_FILE: Final = re.compile(r"[0-9a-f]{32}\.(png|gif)")
_YEAR_SECONDS: Final = 365 * 86400


def emoji_pages(node: HttpNode) -> tuple[Route, ...]:
    """The routes to pictures of emoji. Names cannot be guessed, and no credentials are needed."""
    headers = {
        "Cache-Control": f"public, max-age={_YEAR_SECONDS}, immutable",
        "Content-Security-Policy": PICTURE,
        "Access-Control-Allow-Origin": "*",
    }

    async def picture(request: Request) -> Response:
        file: str = request.path_params["file"]
        content = None
        if _FILE.fullmatch(file) and request.path_params["realm_id"] == node.state.realm.id:
            content = await node.files.read(custom_emoji.place(file))
        if content is None:
            return Response("This emoji doesn't exist.\n", 404, media_type="text/plain")
        return unless_known(request, content, _MEDIA_TYPES[file.rpartition(".")[2]], headers)

    return (Route("/user_avatars/{realm_id:int}/emoji/images/{file}", picture),)
