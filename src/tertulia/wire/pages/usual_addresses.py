"""Common URLs of other services that redirect to ours, and the page that opens video calls."""

import logging
import struct
from functools import cache
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.model.errors import Refused, TooOften
from tertulia.outbound.http_responses import NotFetched
from tertulia.service import links, video_calls
from tertulia.wire.api.documentation import PAGE as API_PAGE
from tertulia.wire.http.authentication import authenticated
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import LOGIN, LOGOUT, Link, note_page
from tertulia.wire.pages.help import HELP
from tertulia.wire.pages.html import ENGLISH
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
def usual_addresses(*, dev: bool = False) -> tuple[BaseRoute, ...]:
    """The routes to the redirects. `dev`: with those for development."""
    redirects = {**_REDIRECTS, "/devlogin": LOGIN} if dev else _REDIRECTS

    async def moved(request: Request) -> Response:
        path = request.url.path
        to = redirects.get(path.rstrip("/"), path.rstrip("/"))
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{to}{query}", status_code=302)

    async def documentation(_: Request) -> Response:
        return RedirectResponse(API_PAGE, status_code=302)

    return (
        *(Route(path + end, moved) for path in redirects for end in ("", "/")),
        *(Route(f"{path}/", moved) for path in _WITHOUT_SLASH),
        Route(API_PAGE + "/{page}", documentation),
        static("/static/images/favicon/favicon-pms.png", packaged(ICON), "image/png"),
        static("/favicon.ico", _favicon, "image/vnd.microsoft.icon"),
    )


@cache
def _favicon() -> bytes:
    """An ICO file that contains the PNG icon, for browsers that don't read the page."""
    picture, side = packaged(ICON)(), 192
    header = struct.pack("<HHH", 0, 1, 1)
    entry = struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(picture), 22)
    return header + entry + picture


logger = logging.getLogger("tertulia.calls")


def call_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The route that opens video calls."""

    async def join(request: Request) -> Response:
        """Redirect signed-in users to the call."""
        try:
            user = node.request_limits.admitted(request, lambda: authenticated(node, request))
        except TooOften as error:
            return _note(node, str(error), 429)
        except Refused:
            user = None
        if user is None:
            back = f"{request.url.path}?{request.url.query}"
            return RedirectResponse(f"{LOGIN}?next={quote(back, safe='/')}", status_code=302)
        call = None
        if video_calls.is_offered(node.config):
            ticket = request.query_params.get("call", "")
            call = video_calls.call_of(node.vault, ticket, node.clock())
        if call is None:
            return _note(node, "This link doesn't open a call, or the call has ended.", 404)
        try:
            await video_calls.open_call(node.config, call)
        except NotFetched as error:
            logger.warning("could not reach the BigBlueButton server: %s", error)
            return _note(node, "The video call server isn't responding. Try again later.", 502)
        address = video_calls.address_for(node.config, call, user)
        return RedirectResponse(address, status_code=302, headers={"Cache-Control": "no-store"})

    return (Route(video_calls.JOIN, join),)


def _note(node: HttpNode, text: str, status: int) -> Response:
    return note_page(
        node, ENGLISH, "Video call", text, status=status, back=Link(path="/", words="Back")
    )
