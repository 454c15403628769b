"""The interface's own description: as an OpenAPI document, and as a page to read."""

import hashlib
from functools import cache
from importlib import resources
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.wire.http import PREFIX
from tertulia.wire.openapi import document
from tertulia.wire.openapi_page import rendered

DOCUMENT: Final = f"{PREFIX}/openapi.json"
PAGE: Final = "/api"
STYLES: Final = "/api/style.css"
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)


@cache
def _document() -> bytes:
    return msgspec.json.encode(document())


@cache
def _page() -> bytes:
    return rendered(document(), styles=STYLES, source=DOCUMENT).encode()


@cache
def _styles() -> bytes:
    return resources.files("tertulia.wire").joinpath("assets/api.css").read_bytes()


async def _get_document(request: Request) -> Response:
    """The OpenAPI document."""
    return _unless_known(request, _document(), "application/json")


async def _get_page(request: Request) -> Response:
    """The same for people."""
    return _unless_known(request, _page(), "text/html")


async def _get_styles(request: Request) -> Response:
    """The page's stylesheet."""
    return _unless_known(request, _styles(), "text/css")


async def _to_page(_: Request) -> Response:
    """As long as there is nothing else to see at the root."""
    return RedirectResponse(PAGE, status_code=307)


def _unless_known(request: Request, content: bytes, media_type: str) -> Response:
    """The content, or 304 where the client says that it has it."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {
        "ETag": tag,
        "Cache-Control": "no-cache",
        "Content-Security-Policy": _POLICY,
        "Referrer-Policy": "no-referrer",
    }
    known = [one.strip() for one in request.headers.get("if-none-match", "").split(",")]
    if tag in [one.removeprefix("W/") for one in known] or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


PAGES: Final[tuple[BaseRoute, ...]] = (
    Route(DOCUMENT, _get_document),
    Route(PAGE, _get_page),
    Route(STYLES, _get_styles),
    Route("/", _to_page),
)
