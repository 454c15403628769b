"""Signing in with SAML 2, begun here or, if the settings allow it, at the provider."""

import asyncio
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from tertulia.identity.provider import NotProven
from tertulia.identity.saml import METADATA_TYPE, RESPONSE_SECONDS, SamlProvider
from tertulia.model.identities import ProvenIdentity
from tertulia.service.sign_in_methods import SamlMethod
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import PageRequest, route_maker
from tertulia.wire.pages.proven import finish_proven, not_proven
from tertulia.wire.pages.sign_in_attempt import SignInAttempt, expired, sealed, unsealed
from tertulia.wire.pages.sign_in_flow import (
    SignInFlow,
    needs_browser,
    requested_flow,
    to_browser,
)

ANSWER_SECONDS: Final = 60
"""How long the browser may take to fetch the page after the response."""


class _CheckedAnswer(Struct, frozen=True, array_like=True, tag="SAML answer"):
    """What the provider's response says, which the browser brings along, encrypted."""

    method: str
    request_id: str
    identity: ProvenIdentity
    at: int


def saml_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes of each method of this kind."""
    methods = [item for item in node.config.sign_in if isinstance(item, SamlMethod)]
    return tuple(route for method in methods for route in _Pages(node, method).routes)


class _Pages:
    def __init__(self, node: HttpNode, method: SamlMethod) -> None:
        self._method = method
        self._provider = SamlProvider(method, node.config.external_url)
        route = route_maker(node, "saml")
        path = method.path
        self.routes = (
            route(path, self._start, counted=False),
            route(f"{path}/acs", self._answer, counted=False, own_pages=False),
            route(f"{path}/metadata", self._metadata, counted=False),
        )

    async def _metadata(self, _: PageRequest) -> Response:
        content = await asyncio.to_thread(self._provider.metadata)
        return Response(content, media_type=METADATA_TYPE)

    async def _start(self, page: PageRequest) -> Response:
        """Send the browser to the provider."""
        flow = requested_flow(page)
        if needs_browser(page, flow):
            return to_browser(page)
        request_id, url = await asyncio.to_thread(self._provider.request)
        SignInAttempt.begin(page, self._method, flow, request_id)
        return RedirectResponse(url, status_code=302, headers={"Cache-Control": "no-store"})

    async def _answer(self, page: PageRequest) -> Response:
        return await (self._received(page) if page.is_post else self._finished(page))

    async def _received(self, page: PageRequest) -> Response:
        """Check the response that the browser brings from the provider. It comes without cookies,
        because another site's page sent it, so which browser began is checked afterwards."""
        node, method = page.node, self._method
        try:
            answer = await asyncio.to_thread(self._provider.answer, page.value("SAMLResponse"))
        except NotProven as error:
            page.count_unknown()
            return not_proven(page, method, str(error))
        once = f"{method.name} {answer.assertion_id}"
        if not await node.uses_first("SAML assertions", once, RESPONSE_SECONDS):
            return not_proven(page, method, "the assertion was used before")
        checked = _CheckedAnswer(method.name, answer.request_id, answer.identity, int(node.clock()))
        return page.go(f"{method.path}/acs?{urlencode({'answer': sealed(page, checked)})}")

    async def _finished(self, page: PageRequest) -> Response:
        """Sign in the person whom the checked response names."""
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
        return await finish_proven(page, method, answer.identity, flow)
