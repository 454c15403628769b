"""Signing in with SAML 2, begun here or, if the settings allow it, at the provider."""

import asyncio
import hmac
from typing import Final, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from tertulia.identity.provider import NotProven
from tertulia.identity.saml import METADATA_TYPE, RESPONSE_SECONDS, SamlProvider
from tertulia.model.identities import ProvenIdentity
from tertulia.service.credentials import VaultError
from tertulia.service.sign_in_methods import SamlMethod
from tertulia.wire.http import authentication
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import cookie_name
from tertulia.wire.pages.form_flow import Link, PageRequest, route_maker
from tertulia.wire.pages.proven import finish_proven, not_proven
from tertulia.wire.pages.sign_in_flow import (
    SignInFlow,
    needs_browser,
    requested_flow,
    to_browser,
)

FLOW_SECONDS: Final = 600
"""How long people may take at the provider."""
ANSWER_SECONDS: Final = 60
"""How long the browser may take to fetch the page after the response."""
_COOKIE: Final = "tertulia_sign_in_"

T = TypeVar("T", bound=Struct)


class _SamlRequest(Struct, frozen=True, array_like=True, tag="SAML request"):
    """An attempt to sign in, which the browser keeps, encrypted."""

    method: str
    request_id: str
    flow: SignInFlow
    at: int


class _CheckedAnswer(Struct, frozen=True, array_like=True, tag="SAML answer"):
    """What the provider's response says, which the browser brings along, encrypted."""

    method: str
    request_id: str
    identity: ProvenIdentity
    at: int


def saml_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes of each method of this kind."""
    methods = [one for one in node.config.sign_in if isinstance(one, SamlMethod)]
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
        flow, name = requested_flow(page), self._method.name
        if needs_browser(page, flow):
            return to_browser(page)
        request_id, url = await asyncio.to_thread(self._provider.request)
        begun = _SamlRequest(name, request_id, flow, int(page.node.clock()))
        authentication.add_cookie(
            page.node.config, page.request, _COOKIE + name, _sealed(page, begun), FLOW_SECONDS
        )
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
        return page.go(f"{method.path}/acs?{urlencode({'answer': _sealed(page, checked)})}")

    async def _finished(self, page: PageRequest) -> Response:
        """Sign in the person whom the checked response names."""
        node, method = page.node, self._method
        sent = page.value("answer")
        answer = _opened(page, sent, _CheckedAnswer)
        is_recent = answer is not None and node.clock() - answer.at <= ANSWER_SECONDS
        if answer is None or answer.method != method.name or not is_recent:
            return self._expired(page)
        if not await node.uses_first("SAML answers", sent, ANSWER_SECONDS):
            return self._expired(page)
        flow = SignInFlow()
        if answer.request_id:
            begun = self._begun(page)
            if begun is None or not hmac.compare_digest(
                begun.request_id.encode(), answer.request_id.encode()
            ):
                return self._expired(page)
            flow = begun.flow
        elif not method.provider_starts:
            return not_proven(page, method, "it began at the provider; provider_starts is false")
        authentication.add_cookie(node.config, page.request, _COOKIE + method.name, "", 0)
        return await finish_proven(page, method, answer.identity, flow)

    def _begun(self, page: PageRequest) -> _SamlRequest | None:
        """The attempt that this browser began, if it's recent."""
        name = cookie_name(page.node.config, _COOKIE + self._method.name)
        begun = _opened(page, page.request.cookies.get(name, ""), _SamlRequest)
        if begun is None or begun.method != self._method.name:
            return None
        return begun if page.node.clock() - begun.at <= FLOW_SECONDS else None

    def _expired(self, page: PageRequest) -> Response:
        return page.note(
            page.say("sign_in_over"),
            page.say("sign_in_over_text"),
            status=400,
            back=Link(path=self._method.path, words=page.say("try_again")),
        )


def _sealed(page: PageRequest, record: Struct) -> str:
    return page.node.vault.sealed(msgspec.json.encode(record).decode())


def _opened(page: PageRequest, sealed: str, kind: type[T]) -> T | None:
    """Return what was sealed; None if this server didn't seal it, or sealed something else."""
    try:
        return msgspec.json.decode(page.node.vault.unsealed(sealed) or b"", type=kind)
    except (VaultError, msgspec.DecodeError):
        return None
