"""Redirects from common URLs of other services."""

import struct
from functools import cache
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.service import links
from tertulia.wire.api.documentation import PAGE as API_PAGE
from tertulia.wire.pages.form_flow import LOGIN, LOGOUT
from tertulia.wire.pages.help import HELP
from tertulia.wire.pages.public import ICON, packaged, static
from tertulia.wire.pages.sign_in_flow import HOME

_JOIN: Final = links.JOIN.rstrip("/")
_RESET: Final = links.RESET.rstrip("/")
_REDIRECTS: Final = {
    "/accounts/login": LOGIN,
    "/accounts/logout": LOGOUT,
    "/accounts/home": _JOIN,
    "/accounts/register": _JOIN,
    "/accounts/password/reset": _RESET,
    "/register": _JOIN,
    "/signup": _JOIN,
    "/reset-password": _RESET,
    "/apps": f"{HELP}/apps",
    "/desktop_home": HOME,
    "/integrations": f"{HELP}/integrations",
    "/policies": f"{HELP}/privacy",
}
"""Redirects, which also apply with a trailing slash."""
_WITHOUT_SLASH: Final = (LOGOUT, _JOIN, _RESET, API_PAGE)
"""Pages that redirect from their URL with a trailing slash."""


@cache
def common_urls() -> tuple[BaseRoute, ...]:
    """The routes to the redirects."""

    async def moved(request: Request) -> Response:
        path = request.url.path
        to = _REDIRECTS.get(path.rstrip("/"), path.rstrip("/"))
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{to}{query}", status_code=302)

    async def documentation(_: Request) -> Response:
        return RedirectResponse(API_PAGE, status_code=302)

    return (
        *(Route(path + end, moved) for path in _REDIRECTS for end in ("", "/")),
        *(Route(f"{path}/", moved) for path in _WITHOUT_SLASH),
        Route(API_PAGE + "/{page}", documentation),
        static("/static/images/favicon/favicon-pms.png", packaged(ICON), "image/png"),
        static("/favicon.ico", _favicon, "image/vnd.microsoft.icon"),
    )


@cache
def _favicon() -> bytes:
    """Return an ICO file that contains the PNG icon, for browsers that don't read it from the
    page."""
    picture, side = packaged(ICON)(), 192
    header = struct.pack("<HHH", 0, 1, 1)
    entry = struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(picture), 22)
    return header + entry + picture
