"""Whether the node can do its work: what /health and /ready say, and what is refused when it
cannot."""

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tertulia.model.errors import Unavailable
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.responses import failure

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
