"""A node as its HTTP interface sees it."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tertulia.log.measures import SECONDS, Histogram
from tertulia.model.errors import Unavailable
from tertulia.service.node import Node
from tertulia.wire.http.fragments import MESSAGE_BYTES, Fragments
from tertulia.wire.http.positions import Positions
from tertulia.wire.http.rate_limits import Limits, RequestLimits, SignInLimits
from tertulia.wire.http.request_measures import RequestMeasures
from tertulia.wire.http.responses import failure


class ServerGauges(Protocol):
    """What an HTTP server knows of itself."""

    @property
    def connections(self) -> int:
        """How many are open."""

    @property
    def in_progress(self) -> int:
        """Requests that are being answered, without polls."""

    @property
    def refused(self) -> int:
        """Requests that were refused because there was too much to do."""


@dataclass(frozen=True, kw_only=True)
class HttpNode(Node):
    """A node, with what the interface keeps from one request to the next."""

    limits: Limits
    request_measures: RequestMeasures = field(default_factory=RequestMeasures)
    loop_lag: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """How much later than wanted the event loop called something."""
    gauges: list[ServerGauges] = field(default_factory=list)
    """Of the HTTP server that answers for this node; none where there is none."""
    fragments: Fragments = field(default_factory=Fragments)
    """What answers are put together of."""
    encoded_messages: Fragments = field(default_factory=lambda: Fragments(MESSAGE_BYTES))
    """Messages as many viewers see them: apart from the others, for there are very many."""

    @property
    def sign_in_limits(self) -> SignInLimits:
        return self.limits.sign_in

    @property
    def request_limits(self) -> RequestLimits:
        return self.limits.requests

    @cached_property
    def positions(self) -> Positions:
        """What requests and answers say of the log's position."""
        return Positions(self.log, self.config)


HEALTH: Final = "/health"
READY: Final = "/ready"
METRICS: Final = "/metrics"


async def problems_of(node: HttpNode) -> list[str]:
    """What keeps the node from its work, each in a sentence for its operator; nothing where all is
    well. Takes some seconds at most."""
    found = await node.log.probed_problems()
    if node.lifecycle.is_draining:
        found.append("The node is shutting down.")
    if node.state.is_empty:
        found.append("No organization has been created yet.")
    return found


def readiness_pages(node: HttpNode) -> list[BaseRoute]:
    """Pages for monitoring."""

    async def health(_: Request) -> Response:
        """The process is alive."""
        return JSONResponse({"status": "alive"})

    async def ready(_: Request) -> Response:
        """The node can do all of its work."""
        problems = await problems_of(node)
        # Failing jobs are tried again, and do not make the node unready. The reason may name hosts
        # or quote messages, so this page leaves it, and the items that are set aside, to the log
        # and `tertulia check`.
        jobs = {name: re.split("[,:]", why)[0] for name, why in node.failing_jobs().items()}
        if problems:
            content = {"status": "not ready", "problems": problems, "jobs": jobs}
            return JSONResponse(content, status_code=503)
        return JSONResponse({"status": "ready", "jobs": jobs})

    return [Route(HEALTH, health), Route(READY, ready)]


def fresh_only(node: HttpNode, app: ASGIApp) -> ASGIApp:
    """The application, which refuses while the node cannot see whether its state is up to date:
    rights may have gone since."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in (HEALTH, READY, METRICS):
            try:
                node.log.require_fresh()
            except Unavailable as error:
                await failure(error)(scope, receive, send)
                return
        await app(scope, receive, send)

    return answer
