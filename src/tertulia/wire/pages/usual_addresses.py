"""Addresses that people, programs and browsers try because they are usual elsewhere."""

import struct
from functools import cache
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.service import links
from tertulia.wire.api.documentation import PAGE as API_PAGE
from tertulia.wire.pages.form_flow import LOGIN
from tertulia.wire.pages.login import LOGOUT
from tertulia.wire.pages.public import ICON, packaged, static

_JOIN: Final = links.JOIN.rstrip("/")
_RESET: Final = links.RESET.rstrip("/")
_ELSEWHERE: Final = {
    "/accounts/login": LOGIN,
    "/accounts/logout": LOGOUT,
    "/accounts/home": _JOIN,
    "/accounts/register": _JOIN,
    "/accounts/password/reset": _RESET,
    "/register": _JOIN,
    "/signup": _JOIN,
    "/reset-password": _RESET,
}
"""What is here at another address: each also with a slash at the end."""
_SLASHED: Final = (LOGIN, LOGOUT, _JOIN, _RESET, API_PAGE)
"""What is here without a slash at the end."""
_ROBOTS: Final = "User-agent: *\nDisallow: /\n"
"""What people say to each other is for people."""


@cache
def usual_addresses() -> tuple[BaseRoute, ...]:
    """The routes."""

    async def moved(request: Request) -> Response:
        path = request.url.path
        to = _ELSEWHERE.get(path.rstrip("/"), path.rstrip("/"))
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{to}{query}", status_code=302)

    async def documentation(_: Request) -> Response:
        return RedirectResponse(API_PAGE, status_code=302)

    async def robots(_: Request) -> Response:
        return PlainTextResponse(_ROBOTS, headers={"Cache-Control": "public, max-age=86400"})

    return (
        *(Route(path + end, moved) for path in _ELSEWHERE for end in ("", "/")),
        *(Route(f"{path}/", moved) for path in _SLASHED),
        Route(API_PAGE + "/{page}", documentation),
        Route("/robots.txt", robots),
        static("/favicon.ico", _favicon, "image/vnd.microsoft.icon"),
    )


@cache
def _favicon() -> bytes:
    """The mark as browsers look for it that do not read the page: an ICO with a PNG in it."""
    picture, side = packaged(ICON)(), 192
    header = struct.pack("<HHH", 0, 1, 1)
    entry = struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(picture), 22)
    return header + entry + picture
