"""Signing in with an identity provider: the redirect to it, the callback, and signing out."""

import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from tertulia.domain.accounts import signing_out
from tertulia.identity.provider import (
    LOGOUT_TOKEN_SECONDS,
    AuthorizationRequest,
    NotProven,
    ProviderDown,
)
from tertulia.identity.providers import Providers
from tertulia.service.sign_in_methods import SignInMethod
from tertulia.wire.http.authentication import require_own_page
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import client_network
from tertulia.wire.pages.form_flow import LOGIN, Link, Page, PageRequest, route_maker, to_sign_in
from tertulia.wire.pages.proven import finish_proven, not_proven, provider_down
from tertulia.wire.pages.sign_in_attempt import ATTEMPT_SECONDS, SignInAttempt, expired
from tertulia.wire.pages.sign_in_flow import SignInFlow, needs_browser, requested_flow, to_browser

logger = logging.getLogger("tertulia.sign_in")

CALLBACKS: Final = 300
CALLBACK_SECONDS: Final = 600.0
"""The period of the limit `CALLBACKS` of failed callbacks from one network."""
LOGOUTS: Final = 3000
"""The most logout tokens from one network in that period."""
_ANSWER: Final = ("code", "state", "iss", "error", "error_description", "user")
"""The parameters that a provider may send with the browser."""
_MAX_ANSWER: Final = 4000
"""Longest value of such a parameter, in characters."""


def provider_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes to sign-in methods."""
    pages = _Pages(node, node.providers)
    route = route_maker(node, "providers")
    return (
        route("/sign-in/{name}", pages.page(_Pages.start), counted=False),
        route(
            "/sign-in/{name}/callback", pages.page(_Pages.callback), counted=False, own_pages=False
        ),
        route("/sign-in/{name}/end", pages.page(_Pages.end), counted=False),
        route("/sign-in/{name}/logout", pages.page(_Pages.logout), counted=False, own_pages=False),
    )


class _Pages:
    def __init__(self, node: HttpNode, providers: Providers) -> None:
        self._providers = providers
        limiter = node.limits.limiters.limiter
        self._answers = limiter("provider answers", CALLBACKS, CALLBACK_SECONDS)
        self._logouts = limiter("provider logouts", LOGOUTS, CALLBACK_SECONDS)

    def page(
        self, show: "Callable[[_Pages, PageRequest, SignInMethod], Awaitable[Response]]"
    ) -> Page:
        """Return the page for the method in the path."""

        async def answer(page: PageRequest) -> Response:
            method = page.node.config.sign_in_method(page.request.path_params["name"])
            if method is None or not method.IS_REDIRECTING:
                return page.note(
                    page.say("not_found"),
                    page.say("method_unknown"),
                    status=404,
                    back=to_sign_in(page.say),
                )
            try:
                return await show(self, page, method)
            except ProviderDown as error:
                return provider_down(page, method, error)

        return answer

    async def start(self, page: PageRequest, method: SignInMethod) -> Response:
        """Redirect the browser to the provider."""
        flow = requested_flow(page)
        if needs_browser(page, flow):
            return to_browser(page)
        attempt = SignInAttempt.begin(page, method, flow, secrets.token_urlsafe(24))
        url = await self._providers[method].url(_request(page, method, attempt))
        return RedirectResponse(url, status_code=302, headers={"Cache-Control": "no-store"})

    async def callback(self, page: PageRequest, method: SignInMethod) -> Response:
        """Sign in the person who comes back from the provider."""
        answer = {name: page.value(name) for name in _ANSWER if page.value(name)}
        if any(len(value) > _MAX_ANSWER for value in answer.values()):
            return not_proven(page, method, "the answer is too long")
        if page.is_post:
            # The browser sends its cookies only with a GET if the request comes from another site.
            return page.go(f"{method.path}/callback?{urlencode(answer)}")
        network = client_network(page.request)
        self._answers.require(network)
        attempt = SignInAttempt.end(page, method, answer.get("state", ""))
        if attempt is None or not await page.node.uses_first(
            "sign-in states", attempt.state, ATTEMPT_SECONDS
        ):
            return expired(page, method)
        if "error" in answer:
            if answer["error"] in {"access_denied", "user_cancelled_authorize"}:
                return self._cancelled(page, method, attempt.flow)
            reason = f"{answer['error'][:100]}: {answer.get('error_description', '')[:300]}"
            return not_proven(page, method, reason)
        try:
            request = _request(page, method, attempt)
            there = await self._providers[method].signed_in(request, answer)
        except NotProven as error:
            return not_proven(page, method, str(error))
        self._answers.forgive(network)
        flow = msgspec.structs.replace(attempt.flow, provider_session=there.session[:200])
        return await finish_proven(page, method, there.identity, flow)

    async def end(self, page: PageRequest, method: SignInMethod) -> Response:
        """Redirect a browser that is signed out here to the provider, to sign out there too."""
        require_own_page(page.node.config, page.request)  # Another site must not sign people out.
        url = await self._providers[method].logout_url(page.site + LOGIN)
        if not url:
            return page.go(LOGIN)
        return RedirectResponse(url, status_code=302, headers={"Cache-Control": "no-store"})

    async def logout(self, page: PageRequest, method: SignInMethod) -> Response:
        """End sessions that a provider's logout token names (OpenID Connect Back-Channel
        Logout)."""
        self._logouts.require(client_network(page.request))
        headers = {"Cache-Control": "no-store"}
        try:
            there = await self._providers[method].logged_out(page.value("logout_token"))
        except NotProven as error:
            logger.warning("refused a logout token of %s: %s", method.name, error)
            return Response(status_code=400, headers=headers)
        token = f"{method.name} {there.token_id}"
        if await page.node.uses_first("logout tokens", token, LOGOUT_TOKEN_SECONDS):
            await page.node.log.submit(
                None, signing_out.end_of_provider, method.name, there.subject, there.session
            )
        return Response(status_code=200, headers=headers)

    # Failed sign-ins

    def _cancelled(self, page: PageRequest, method: SignInMethod, flow: SignInFlow) -> Response:
        return page.note(
            page.say("sign_in_cancelled"),
            page.say("sign_in_cancelled_text", title=method.label),
            status=403,
            back=Link(path=flow.with_path(LOGIN), words=page.say("try_again")),
        )


def _request(
    page: PageRequest, method: SignInMethod, attempt: SignInAttempt
) -> AuthorizationRequest:
    return AuthorizationRequest(
        state=attempt.state,
        nonce=attempt.nonce,
        verifier=attempt.verifier,
        # Each method has its own callback URL, so that their responses can't be mixed up.
        redirect_url=f"{page.node.config.external_url}{method.path}/callback",
    )
