"""The API documentation: the OpenAPI document and a page for people."""

from functools import cache
from importlib import resources
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tertulia.wire.http.request_head import PREFIX
from tertulia.wire.http.responses import unless_known

DOCUMENT: Final = f"{PREFIX}/openapi.json"
PAGE: Final = "/api"
STYLES: Final = "/api/style.css"
_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; font-src 'self'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}


@cache
def _document() -> bytes:
    from tertulia.wire.api.openapi import document  # Rarely requested, so loaded late.

    return msgspec.json.encode(document())


@cache
def _page() -> bytes:
    from tertulia.wire.api.openapi import document
    from tertulia.wire.api.openapi.page import rendered

    return rendered(document(), styles=STYLES, source=DOCUMENT).encode()


@cache
def _styles() -> bytes:
    assets = resources.files("tertulia.wire").joinpath("assets")
    names = ("tokens.css", "fonts.css", "api.css")
    return b"\n".join(assets.joinpath(name).read_bytes() for name in names)


async def _get_document(request: Request) -> Response:
    return unless_known(request, _document(), "application/json", _HEADERS)


async def _get_page(request: Request) -> Response:
    return unless_known(request, _page(), "text/html", _HEADERS)


async def _get_styles(request: Request) -> Response:
    return unless_known(request, _styles(), "text/css", _HEADERS)


PAGES: Final[tuple[BaseRoute, ...]] = (
    Route(DOCUMENT, _get_document),
    Route(PAGE, _get_page),
    Route(STYLES, _get_styles),
)
