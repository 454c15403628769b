"""Signing in people that a reverse proxy names in headers."""

from functools import partial
from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from tertulia.model.identities import ProvenIdentity
from tertulia.service.directory_methods import HeaderMethod
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.peers import is_from_proxy, peer_of
from tertulia.wire.pages.form_flow import PageRequest, route_maker
from tertulia.wire.pages.proven import finish_proven, not_proven
from tertulia.wire.pages.sign_in_flow import needs_browser, requested_flow, to_browser

MAX_GROUPS: Final = 500


def header_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """A route for each method of this kind."""
    methods = [method for method in node.config.sign_in if isinstance(method, HeaderMethod)]
    route = route_maker(node, "header")
    return tuple(
        route(method.path, partial(_sign_in, method=method), counted=False) for method in methods
    )


async def _sign_in(page: PageRequest, method: HeaderMethod) -> Response:
    flow = requested_flow(page)
    if needs_browser(page, flow):
        return to_browser(page)
    try:
        proven = proven_by_headers(page, method)
    except ValueError as error:
        return not_proven(page, method, str(error), peer_of(page.request))
    return await finish_proven(page, method, proven, flow)


def proven_by_headers(page: PageRequest, method: HeaderMethod) -> ProvenIdentity:
    """Return the person named in the request's headers. Raises ValueError, with a reason for the
    operator."""
    if not is_from_proxy(page.node.config, page.request):
        raise ValueError("proxy_trusted doesn't list the address that sent the headers")
    named = _value(page, method.user_header)
    if not named:
        raise ValueError(f"the proxy sent no header {method.user_header}")
    groups = _value(page, method.groups_header).split(method.groups_separator, MAX_GROUPS)
    return ProvenIdentity(
        method=method.name,
        subject=named,
        address=_value(page, method.address_header),
        # The operator controls the proxy, so its addresses are trusted.
        is_address_verified=True,
        full_name=_value(page, method.name_header),
        # Without the header, the person has no groups: some proxies leave out empty headers.
        groups=frozenset(filter(None, map(str.strip, groups))),
    )


def _value(page: PageRequest, name: str) -> str:
    """Return a header. Raises ValueError if it was sent twice, because one may come from a
    client."""
    raw = name.lower().encode()
    values = [value for item, value in page.request.scope["headers"] if item == raw]
    if len(values) > 1:
        raise ValueError(f"the header {name} was sent more than once")
    # Proxies send names in UTF-8, although HTTP doesn't define an encoding.
    return values[0].decode("utf-8", "replace").strip() if values else ""
