"""Which request goes where: to an endpoint of the API, or to a page outside of it."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as PathRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from tertulia.model.errors import FilesUnavailable
from tertulia.wire.http.endpoint import Endpoint
from tertulia.wire.http.errors import MethodNotAllowed, NotFound
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import Paths
from tertulia.wire.http.request_log import RequestLog
from tertulia.wire.http.request_measures import SlowRequests
from tertulia.wire.http.responses import failure
from tertulia.wire.http.routing import BROWSER_PREFIX, PREFIX, Route
from tertulia.wire.http.session_cookies import SessionCookies


class Methods(NamedTuple):
    """All endpoints of one path."""

    path: str
    """With names in place of what is different in each request."""
    routes: Mapping[str, Route]
    """By method."""


def interface_of(routes: Iterable[Route]) -> Paths[Methods]:
    """The table of endpoints by their paths, for nodes to share."""
    by_path: dict[str, dict[str, Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, {})[route.method] = route
    return Paths(
        PREFIX,
        {path: Methods(PREFIX + path.replace(":int}", "}"), own) for path, own in by_path.items()},
    )


def dispatcher(
    node: HttpNode,
    interface: Paths[Methods],
    pages: Iterable[BaseRoute],
    guard: Callable[[ASGIApp], ASGIApp],
    error_page: Callable[[Request, int], Response],
) -> ASGIApp:
    """The ASGI application: the interface, and pages outside of it, behind what may refuse
    all of it. `error_page` is what browsers are shown outside of the interface, for an HTTP
    status."""

    async def not_found(request: Request, error: Exception) -> Response:
        if _is_browsing(request):
            status = error.status_code if isinstance(error, HTTPException) else 404
            return error_page(request, status)
        if isinstance(error, HTTPException) and error.status_code == 405:
            return failure(MethodNotAllowed(["GET", "HEAD"]))
        return failure(NotFound())

    async def files_away(request: Request, error: Exception) -> Response:
        answer = failure(error)
        return error_page(request, answer.status_code) if _is_browsing(request) else answer

    pages = list(pages)
    node.request_measures.know(
        PREFIX, interface.paths, (page.path for page in pages if isinstance(page, PathRoute))
    )
    others = Starlette(
        routes=pages,
        exception_handlers={404: not_found, 405: not_found, FilesUnavailable: files_away},
    )
    others.router.redirect_slashes = False

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith(BROWSER_PREFIX):
            path = f"{PREFIX}/{path.removeprefix(BROWSER_PREFIX)}"
        found = interface.find(path) if scope["type"] == "http" else None
        if found is None:
            await others(scope, receive, send)
            return
        methods, scope["path_params"] = found
        scope["state"]["route"] = methods.path
        await Endpoint(node, methods.routes)(scope, receive, send)

    slow = SlowRequests(
        node.config.slow_request_ms,
        node.membership.slow_requests,
        node.loop_lag,
        node.request_measures,
        node.clock,
    )
    guarded = guard(SessionCookies(node, answer))
    return RequestLog(guarded, node.config, node.request_measures, slow)


def _is_browsing(request: Request) -> bool:
    """Whether somebody looks at a page, and no program asks the interface for something."""
    path = request.url.path
    is_interface = path.startswith((f"{PREFIX}/", BROWSER_PREFIX))
    accepted = request.headers.get("accept", "")
    return request.method in {"GET", "HEAD"} and "text/html" in accepted and not is_interface
