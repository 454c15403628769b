"""Pages that open calls, and that connect Zoom accounts."""

import hmac
import logging
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.domain.accounts import call_accounts
from tertulia.model.errors import Refused, TooOften, Unavailable
from tertulia.model.users import User
from tertulia.outbound.http_responses import NotFetched
from tertulia.service.calls import bigbluebutton, hosted, zoom
from tertulia.service.calls.zoom import ZoomRefused
from tertulia.service.credentials import VaultError
from tertulia.wire.api.calls import sealed_tokens
from tertulia.wire.http import cookies
from tertulia.wire.http.authentication import authenticated
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import cookie_name
from tertulia.wire.pages.form_flow import LOGIN, Link, note_page
from tertulia.wire.pages.html import ENGLISH

logger = logging.getLogger("tertulia.calls")

_STATE: Final = "zoom_state"
_STATE_SECONDS: Final = 600
_MAX_CODE: Final = 2000

Shown = Callable[[Request, User], Awaitable[Response]]


def call_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes to these pages."""
    pages = _Pages(node)
    return (
        Route(bigbluebutton.JOIN, pages.for_users(pages.join_bigbluebutton)),
        Route(hosted.JOIN, pages.for_users(pages.join_hosted)),
        Route(zoom.REGISTER, pages.for_users(pages.register_zoom)),
        Route(zoom.COMPLETE, pages.for_users(pages.complete_zoom)),
    )


class _Pages:
    def __init__(self, node: HttpNode) -> None:
        self._node = node

    def for_users(self, show: Shown) -> Callable[[Request], Awaitable[Response]]:
        """Return a page for signed-in people. Others are asked to sign in first."""

        async def page(request: Request) -> Response:
            node = self._node
            try:
                user = node.request_limits.admitted(request, lambda: authenticated(node, request))
            except TooOften as error:
                return self._note(str(error), 429)
            except Refused:
                user = None
            if user is None:
                back = f"{request.url.path}?{request.url.query}"
                return RedirectResponse(f"{LOGIN}?next={quote(back, safe='/')}", status_code=302)
            try:
                return await show(request, user)
            except Unavailable as error:
                return self._note(str(error), 503)

        return page

    async def join_bigbluebutton(self, request: Request, user: User) -> Response:
        """Redirect to the call."""
        node, call = self._node, None
        if bigbluebutton.is_offered(node.config):
            ticket = request.query_params.get("call", "")
            call = bigbluebutton.call_of(node.vault, ticket, node.clock())
        if call is None:
            return self._no_call()
        try:
            await bigbluebutton.open_call(node.operator_web, node.config, call)
        except NotFetched as error:
            logger.warning("could not reach the BigBlueButton server: %s", error)
            return self._note("The video call server isn't responding. Try again later.", 502)
        return _away(bigbluebutton.address_for(node.config, call, user))

    async def join_hosted(self, request: Request, user: User) -> Response:
        """Redirect to the call, with a token for the person."""
        node, call = self._node, None
        if hosted.is_offered(node.config):
            ticket = request.query_params.get("call", "")
            call = hosted.call_of(node.vault, ticket, node.clock())
        if call is None:
            return self._no_call()
        return _away(hosted.address_for(node.config, call, user, node.clock()))

    async def register_zoom(self, request: Request, user: User) -> Response:
        """Redirect the browser to Zoom, to allow this server to create meetings."""
        config = self._node.config
        if not zoom.is_offered(config):
            return self._note("Zoom isn't set up on this server.", 404)
        state = zoom.new_state()
        kept = self._node.vault.sealed(f"{user.id} {state}")
        cookies.add_cookie(config, request, _STATE, kept, _STATE_SECONDS)
        return _away(zoom.authorization_url(config, state))

    async def complete_zoom(self, request: Request, user: User) -> Response:
        """Connect the Zoom account of a person who comes back from Zoom."""
        node, config = self._node, self._node.config
        if not zoom.is_offered(config):
            return self._note("Zoom isn't set up on this server.", 404)
        try:
            kept = node.vault.unsealed(request.cookies.get(cookie_name(config, _STATE), ""))
        except VaultError:
            kept = ""
        cookies.add_cookie(config, request, _STATE, "", 0)
        answered = f"{user.id} {request.query_params.get('state', '')}"
        if not hmac.compare_digest(kept.encode(), answered.encode()):
            return self._note("This page has expired. Start again.", 400)
        code = request.query_params.get("code", "")
        if not code or len(code) > _MAX_CODE:
            return self._note("Your Zoom account wasn't connected.", 403)
        try:
            tokens = await zoom.connect(node.operator_web, config, code, node.clock())
        except ZoomRefused:
            return self._note("Zoom didn't accept the connection. Start again.", 403)
        except NotFetched as error:
            logger.warning("could not connect a Zoom account: %s", error)
            return self._note("Zoom isn't responding as expected. Try again later.", 502)
        stored = sealed_tokens(node.vault.sealed, tokens)
        await node.log.submit(user.id, call_accounts.connect, stored)
        await node.log.durability.settled()
        return self._note("Your Zoom account is connected. You can close this page.", 200)

    def _no_call(self) -> Response:
        return self._note("This link doesn't open a call, or the call has ended.", 404)

    def _note(self, text: str, status: int) -> Response:
        back = Link(path="/", words="Back")
        return note_page(self._node, ENGLISH, "Video call", text, status=status, back=back)


def _away(address: str) -> Response:
    return RedirectResponse(address, status_code=302, headers={"Cache-Control": "no-store"})
