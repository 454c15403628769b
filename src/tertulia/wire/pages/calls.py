"""Joining a video call, from a link in a message."""

import logging
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.model.errors import Refused, TooOften
from tertulia.outbound.http_client import NotFetched
from tertulia.service import video_calls
from tertulia.wire.http.authentication import authenticated
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import LOGIN, Link, note_page
from tertulia.wire.pages.speaking import ENGLISH

logger = logging.getLogger("tertulia.calls")


def call_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The page of a node that leads to a call."""

    async def join(request: Request) -> Response:
        """A redirect to the call, for people of the organization."""
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
            await video_calls.opened(node.config, call)
        except NotFetched as error:
            logger.warning("the BigBlueButton server could not be asked: %s", error)
            return _note(node, "The video call server isn't responding. Try again later.", 502)
        address = video_calls.address_for(node.config, call, user)
        return RedirectResponse(address, status_code=302, headers={"Cache-Control": "no-store"})

    return (Route(video_calls.JOIN, join),)


def _note(node: HttpNode, said: str, status: int) -> Response:
    return note_page(
        node, ENGLISH, "Video call", said, status=status, back=Link(path="/", words="Back")
    )
