"""`/metrics`, for Prometheus: for this machine, and for whom the operator lists."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.service.config import Config
from tertulia.wire.http.client_address import client_address
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.readiness import METRICS
from tertulia.wire.metrics.families import OfNode, families_of
from tertulia.wire.metrics.siblings import families_of_siblings
from tertulia.wire.protocol.trusted_addresses import is_listed, is_loopback

_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_PASSED_ON: Final = frozenset(
    {"x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"}
)
"""Headers by which a request shows that a proxy passed it on: then it comes from elsewhere,
whatever address it has."""


def metrics_page(node: HttpNode) -> list[BaseRoute]:
    """The page of a node."""
    may_read = readers(node.config)

    async def metrics(request: Request) -> Response:
        """What the node measures, as Prometheus reads it."""
        if not may_read(request):
            return PlainTextResponse(
                "The setting metrics_allowed does not list this address.\n",
                status_code=403,
            )
        found = [await families_of(node), *await families_of_siblings(node)]
        headers = {"Content-Type": _TYPE, "Cache-Control": "no-store"}
        return Response(await asyncio.to_thread(_exposed, found), headers=headers)

    return [Route(METRICS, metrics)]


def _exposed(found: Sequence[OfNode]) -> bytes:
    from tertulia.wire.metrics.exposition import exposed  # Many servers are never asked.

    return exposed(found)


def readers(config: Config) -> Callable[[Request], bool]:
    """Whether a request may read the metrics."""
    is_allowed = is_listed(config.metrics_allowed)

    def may_read(request: Request) -> bool:
        address = client_address(request)
        if is_allowed(address):
            return True
        # Without an address it came by the path of a socket on this machine.
        is_own = request.client is None or is_loopback(address)
        return is_own and _PASSED_ON.isdisjoint(request.headers.keys())

    return may_read
