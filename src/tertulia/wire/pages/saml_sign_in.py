"""Signing in with SAML 2, started here or, if the settings allow it, at the provider, and signing
out on either side."""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from tertulia.domain.accounts import signing_out
from tertulia.identity.provider import LOGOUT_TOKEN_SECONDS, NotProven, ProviderDown
from tertulia.identity.saml import METADATA_TYPE, RESPONSE_SECONDS, SamlLogout, SamlName
from tertulia.model.identities import ProvenIdentity
from tertulia.model.sessions import LIFETIME
from tertulia.service.provider_methods import SamlMethod
from tertulia.wire.http import cookies
from tertulia.wire.http.authentication import require_own_page
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import client_network, cookie_name
from tertulia.wire.pages.form_flow import LOGIN, Page, PageRequest, route_maker
from tertulia.wire.pages.proven import finish_proven, not_proven, provider_down
from tertulia.wire.pages.providers import CALLBACK_SECONDS, LOGOUTS
from tertulia.wire.pages.sign_in_attempt import SignInAttempt, expired, sealed, unsealed
from tertulia.wire.pages.sign_in_flow import SignInFlow, needs_browser, requested_flow, to_browser

ANSWER_SECONDS: Final = 60
"""How long the browser may take to fetch the page after the response."""
MAX_SESSION: Final = 200
"""Longest ID of a session at the provider that is stored, in characters."""
_COOKIE: Final = "tertulia_signed_in_"
"""The cookie with the provider's name for the person who signed in with this browser, encrypted."""


class _CheckedAnswer(Struct, frozen=True, array_like=True, tag="SAML answer"):
    """The content of the provider's response, which the browser passes on, encrypted."""

    method: str
    request_id: str
    identity: ProvenIdentity
    name: SamlName
    at: int


def saml_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """Return the routes of all SAML methods."""
    methods = [item for item in node.config.sign_in if isinstance(item, SamlMethod)]
    return tuple(route for method in methods for route in _Pages(node, method).routes)


class _Pages:
    def __init__(self, node: HttpNode, method: SamlMethod) -> None:
        self._method = method
        self._provider = node.providers.saml(method)
        self._logouts = node.limits.limiters.limiter("provider logouts", LOGOUTS, CALLBACK_SECONDS)
        route = route_maker(node, "saml")
        path = method.path
        self.routes = (
            route(path, self._page(self._start), counted=False),
            route(f"{path}/acs", self._page(self._answer), counted=False, own_pages=False),
            route(f"{path}/metadata", self._page(self._metadata), counted=False),
            route(f"{path}/end", self._page(self._end), counted=False),
            route(f"{path}/logout", self._page(self._logout), counted=False, own_pages=False),
        )

    def _page(self, show: Callable[[PageRequest], Awaitable[Response]]) -> Page:
        async def answer(page: PageRequest) -> Response:
            try:
                return await show(page)
            except ProviderDown as error:
                return provider_down(page, self._method, error)

        return answer

    async def _metadata(self, _: PageRequest) -> Response:
        return Response(await self._provider.metadata(), media_type=METADATA_TYPE)

    async def _start(self, page: PageRequest) -> Response:
        """Redirect the browser to the provider."""
        flow = requested_flow(page)
        if needs_browser(page, flow):
            return to_browser(page)
        request_id, url = await self._provider.request()
        SignInAttempt.begin(page, self._method, flow, request_id)
        return _redirect(url)

    async def _answer(self, page: PageRequest) -> Response:
        return await (self._received(page) if page.is_post else self._finished(page))

    async def _received(self, page: PageRequest) -> Response:
        """Check the response that the browser brings from the provider. It has no cookies,
        because another site's page sent it, so a second request checks which browser started the
        sign-in."""
        node, method = page.node, self._method
        try:
            answer = await self._provider.answer(page.value("SAMLResponse"))
        except NotProven as error:
            page.count_unknown()
            return not_proven(page, method, str(error))
        once = f"{method.name} {answer.assertion_id}"
        if not await node.uses_first("SAML assertions", once, RESPONSE_SECONDS):
            return not_proven(page, method, "the assertion was used before")
        checked = _CheckedAnswer(
            method.name, answer.request_id, answer.identity, answer.name, int(node.clock())
        )
        return page.go(f"{method.path}/acs?{urlencode({'answer': sealed(page, checked)})}")

    async def _finished(self, page: PageRequest) -> Response:
        """Sign in the person in the checked response."""
        node, method = page.node, self._method
        sent = page.value("answer")
        answer = unsealed(page, sent, _CheckedAnswer)
        is_recent = answer is not None and node.clock() - answer.at <= ANSWER_SECONDS
        if answer is None or answer.method != method.name or not is_recent:
            return expired(page, method)
        if not await node.uses_first("SAML answers", sent, ANSWER_SECONDS):
            return expired(page, method)
        flow = SignInFlow()
        if answer.request_id:
            attempt = SignInAttempt.end(page, method, answer.request_id)
            if attempt is None:
                return expired(page, method)
            flow = attempt.flow
        elif not method.provider_starts:
            return not_proven(page, method, "it began at the provider; provider_starts is false")
        flow = msgspec.structs.replace(flow, provider_session=answer.name.session[:MAX_SESSION])
        self._set_cookie(page, sealed(page, answer.name), LIFETIME)
        return await finish_proven(page, method, answer.identity, flow)

    # Signing out

    async def _end(self, page: PageRequest) -> Response:
        """Redirect a browser that is signed out here to the provider, to sign out there too."""
        require_own_page(page.node.config, page.request)  # Another site must not sign people out.
        cookie = cookie_name(page.node.config, _COOKIE + self._method.name)
        name = unsealed(page, page.request.cookies.get(cookie, ""), SamlName)
        url = "" if name is None else await self._provider.logout_url(name)
        self._set_cookie(page, "", 0)
        return _redirect(url) if url else page.go(LOGIN)

    async def _logout(self, page: PageRequest) -> Response:
        """End sessions named in a provider's request that the browser brings, and send back a
        response; or receive the provider's response to a request of `_end`."""
        node, method = page.node, self._method
        self._logouts.require(client_network(page.request))
        sent = page.request.query_params
        if "SAMLResponse" in sent or page.value("SAMLResponse"):
            return page.go(LOGIN)
        if len(sent) != len(sent.multi_items()):
            return not_proven(page, method, "the logout request has a parameter twice")
        try:
            if page.is_post:
                there = await self._provider.logged_out_by_form(page.sent)
            else:
                there = await self._provider.logged_out(page.request.url.query, sent)
        except NotProven as error:
            return not_proven(page, method, str(error))
        message = f"{method.name} {there.message_id}"
        if await node.uses_first("logout tokens", message, LOGOUT_TOKEN_SECONDS):
            await self._end_sessions(node, there)
        return _redirect(there.url) if there.url else page.go(LOGIN)

    async def _end_sessions(self, node: HttpNode, there: SamlLogout) -> None:
        for session in there.sessions or ("",):
            await node.log.submit(
                None,
                signing_out.end_of_provider,
                self._method.name,
                there.subject,
                session[:MAX_SESSION],
            )

    def _set_cookie(self, page: PageRequest, value: str, seconds: int) -> None:
        name = _COOKIE + self._method.name
        cookies.add_cookie(page.node.config, page.request, name, value, seconds)


def _redirect(url: str) -> Response:
    return RedirectResponse(url, status_code=302, headers={"Cache-Control": "no-store"})
