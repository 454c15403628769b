"""A node as the HTTP layer sees it, and its health checks."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tertulia.log.health import SECONDS, Histogram
from tertulia.model.errors import Unavailable
from tertulia.service.node import Node
from tertulia.wire.http.fragments import MESSAGE_BYTES, Fragments
from tertulia.wire.http.positions import Positions
from tertulia.wire.http.rate_limits import RateLimits, RequestLimits, SignInLimits
from tertulia.wire.http.request_head import HEALTH, METRICS, READY
from tertulia.wire.http.request_log import RequestMeasures
from tertulia.wire.http.responses import failure


class ServerGauges(Protocol):
    """Figures of an HTTP server."""

    @property
    def connections(self) -> int:
        """The number of open connections."""

    @property
    def in_progress(self) -> int:
        """The number of requests that are being answered, without polls."""

    @property
    def refused(self) -> int:
        """The number of requests refused because of overload."""


@dataclass(frozen=True, kw_only=True)
class HttpNode(Node):
    """A node, with the caches and counters of the HTTP layer."""

    limits: RateLimits
    request_measures: RequestMeasures = field(default_factory=RequestMeasures)
    loop_lag: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """How late the event loop ran a timer."""
    gauges: list[ServerGauges] = field(default_factory=list)
    """The HTTP servers that answer for this node."""
    fragments: Fragments = field(default_factory=Fragments)
    encoded_messages: Fragments = field(default_factory=lambda: Fragments(MESSAGE_BYTES))
    """A separate cache, because messages are many."""

    @property
    def sign_in_limits(self) -> SignInLimits:
        return self.limits.sign_in

    @property
    def request_limits(self) -> RequestLimits:
        return self.limits.requests

    @cached_property
    def positions(self) -> Positions:
        return Positions(self.log, self.config)


async def problems_of(node: HttpNode) -> list[str]:
    """Return what keeps the node from working, one sentence each for the operator. Takes up to
    several seconds."""
    found = await node.log.probed_problems()
    if node.lifecycle.is_draining:
        found.append("The node is shutting down.")
    if node.state.is_empty:
        found.append("No organization has been created yet.")
    return found


def readiness_pages(node: HttpNode) -> list[BaseRoute]:
    """Return the health check pages."""

    async def health(_: Request) -> Response:
        """The process is running."""
        return JSONResponse({"status": "alive"})

    async def ready(_: Request) -> Response:
        """The node can do all of its work."""
        problems = await problems_of(node)
        # Failing jobs are retried and don't make the node unready. Their reasons may name hosts or
        # quote messages, so they, and items that were set aside, are left to the log and `tertulia
        # check`.
        jobs = {name: re.split("[,:]", why)[0] for name, why in node.failing_jobs().items()}
        if problems:
            content = {"status": "not ready", "problems": problems, "jobs": jobs}
            return JSONResponse(content, status_code=503)
        return JSONResponse({"status": "ready", "jobs": jobs})

    return [Route(HEALTH, health), Route(READY, ready)]


def fresh_only(node: HttpNode, app: ASGIApp) -> ASGIApp:
    """Return the application, which refuses requests while the node can't verify that its state is
    current: permissions may have been revoked."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in (HEALTH, READY, METRICS):
            try:
                node.log.require_fresh()
            except Unavailable as error:
                await failure(error)(scope, receive, send)
                return
        await app(scope, receive, send)

    return answer
