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


async def problems_of(node: HttpNode) -> list[str]:
    """What keeps the node from its work, each in a sentence for its operator; nothing where all is
    well. Takes some seconds at most."""
    found = await node.log.examined()
    if node.state.is_empty:
        found.append("There is no organization yet.")
    return found


def readiness_pages(node: HttpNode) -> list[BaseRoute]:
    """Pages for those who watch over servers."""

    async def health(_: Request) -> Response:
        """The process is alive."""
        return JSONResponse({"status": "alive"})

    async def ready(_: Request) -> Response:
        """The node can do all of its work."""
        problems = await problems_of(node)
        # They are tried again, and keep nobody from asking. Why they fail may name anything: hosts,
        # or what somebody wrote. That is in the log, and `tertulia check` says it; and which item
        # of them is set aside, which may be a file's name.
        jobs = {name: re.split("[,:]", why)[0] for name, why in node.failing_jobs().items()}
        if problems:
            content = {"status": "not ready", "problems": problems, "jobs": jobs}
            return JSONResponse(content, status_code=503)
        return JSONResponse({"status": "ready", "jobs": jobs})

    return [Route(HEALTH, health), Route(READY, ready)]


def fresh_only(node: HttpNode, app: ASGIApp) -> ASGIApp:
    """The application, which answers nothing while the node cannot see whether what it knows is up
    to date: somebody may have lost the right to it."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in (HEALTH, READY):
            try:
                node.log.require_fresh()
            except Unavailable as error:
                await failure(error)(scope, receive, send)
                return
        await app(scope, receive, send)

    return answer
