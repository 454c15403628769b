"""Routing requests to endpoints and pages, and calling an endpoint's handler."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute
from starlette.routing import Route as PathRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from tertulia.domain.accounts.access_keys import NOTHING
from tertulia.domain.organization.imports import require_moved
from tertulia.model.errors import (
    FilesUnavailable,
    NotAuthenticated,
    OutcomeUnknown,
    Refused,
    Unavailable,
    WrongApiKey,
)
from tertulia.model.users import BotKind, User
from tertulia.store.uploads import ArrivedFile
from tertulia.wire.http.adoption import adopts_key_of
from tertulia.wire.http.audit import RequestOrigin
from tertulia.wire.http.authentication import (
    WEBSITE,
    access_key_in,
    authenticated,
    owner_of_key,
    record_refused_key,
    require_open,
    session_in,
)
from tertulia.wire.http.cookies import SessionCookies
from tertulia.wire.http.errors import MethodNotAllowed, NotFound
from tertulia.wire.http.forms import MIB, Upload, drained, received, received_file, received_payload
from tertulia.wire.http.node import HttpNode, RequestLog, SlowRequests
from tertulia.wire.http.parameters import call_endpoint, decode
from tertulia.wire.http.request_head import BROWSER_PREFIX, PREFIX, Paths, header
from tertulia.wire.http.responses import (
    Failure,
    JsonResponse,
    body_of,
    compress_fragments,
    failure,
    plain,
    success,
)
from tertulia.wire.http.routing import (
    EVENT_STREAM,
    Access,
    ApiResponse,
    Call,
    EventStream,
    Redirect,
    Route,
)

logger = logging.getLogger("tertulia.http")

ANONYMOUS_BODY = 256 * 1024
"""Largest body of anonymous requests, in bytes."""


class Endpoint:
    """All methods of one path, as an ASGI application."""

    def __init__(self, node: HttpNode, routes: Mapping[str, Route]) -> None:
        self._node = node
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._response(request)
        if isinstance(response, Failure):
            request.state.code = response.code
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        if method == "OPTIONS":
            return Response(status_code=204)
        route = self._routes.get(method)
        if route is None:
            return failure(MethodNotAllowed(list(self._routes)))
        try:
            return await self._answer(request, route)
        except (Refused, Unavailable) as refusal:
            return failure(refusal)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            logger.exception("%s %s failed", request.method, route.path)
            return failure(error)

    async def _answer(self, request: Request, route: Route) -> Response:
        if route.file:
            return await self._answer_file(request, route)
        node = self._node
        try:
            if route.dev and not node.config.dev:
                raise Refused("This endpoint is available only on development servers.")
            user = await self._admitted(request, route)
            _require_allowed(node, route)
        except (Refused, Unavailable):
            # Read the body anyway: a client that is still sending doesn't read the response.
            if request.method not in {"GET", "HEAD"}:
                await drained(request)
            raise
        limit = node.config.max_body_mib * MIB
        if route.body_bytes is not None:
            limit = min(limit, route.body_bytes)
        seen, generation = node.state.seq, node.log.durability.generation
        uploads: Sequence[Upload] = ()
        body = b""
        if route.payload:
            sent, body = await received_payload(request, limit)
        else:
            sent, uploads = await received(
                request, limit if user is not None else min(limit, ANONYMOUS_BODY)
            )
        if node.state.seq != seen:
            self._authenticated(request, route)  # Rights may have been revoked since.
        try:
            return await self._handled(
                request, route, user, sent, uploads=tuple(uploads), body=body
            )
        except Unavailable:
            # A failed commit of another request doesn't invalidate a read.
            is_question = route.method == "GET" and not route.polls
            if not is_question or not await node.log.durability.was_reloaded(generation):
                raise
        return await self._handled(request, route, self._authenticated(request, route), sent)

    async def _answer_file(self, request: Request, route: Route) -> Response:
        """Authenticate the sender before the file is received."""
        node = self._node
        try:
            user = await self._admitted(request, route)
            _require_allowed(node, route)
        except (Refused, Unavailable):
            await drained(request)
            raise
        limit = node.config.max_file_upload_size_mib * MIB
        async with received_file(request, node.uploads, limit) as (sent, file):
            node.log.store.hear_gathered()
            self._authenticated(request, route)  # Rights may have been revoked since.
            return await self._handled(request, route, user, sent, file=file)

    async def _admitted(self, request: Request, route: Route) -> User | None:
        try:
            return self._counted(request, route)
        except WrongApiKey:
            if not await adopts_key_of(self._node, request):
                record_refused_key(self._node, request)
                raise
        return self._counted(request, route)

    def _counted(self, request: Request, route: Route) -> User | None:
        return self._node.request_limits.admitted(
            request, lambda: self._authenticated(request, route), polls=route.polls
        )

    async def _handled(
        self,
        request: Request,
        route: Route,
        user: User | None,
        sent: Mapping[str, str],
        *,
        uploads: tuple[Upload, ...] = (),
        file: ArrivedFile | None = None,
        body: bytes = b"",
    ) -> Response:
        node = self._node
        generation = node.log.durability.generation
        session, key = session_in(request.scope), access_key_in(request.scope)
        agent = WEBSITE if session else header(request.scope["headers"], b"user-agent") or ""
        call = Call(
            node=node,
            user_id=user.id if user else None,
            key_id=key.id if key else None,
            needs=route.needs if key else NOTHING,
            client=_client(agent, sent),
            uploads=uploads,
            file=file,
            body=body,
            answer_headers={},
            request=request,
            session_id=session.id if session else None,
        )
        values, ignored = decode(route.handler, sent, request.path_params)
        answer = await call_endpoint(route.handler, call, values) or ApiResponse()
        # The response may show changes that aren't on disk yet. (A command has used the committed
        # state.)
        try:
            await node.log.durability.settled(generation if route.method == "GET" else None)
        except Unavailable:
            if route.method == "GET":
                raise
            # The command may have been committed before the failed commit.
            raise OutcomeUnknown from None
        if isinstance(answer, EventStream):
            # Proxies then pass it on immediately.
            unbuffered = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            return StreamingResponse(answer.events, 200, unbuffered, EVENT_STREAM)
        if isinstance(answer, Redirect):
            return RedirectResponse(answer.address, status_code=302)
        if call.answer_headers:
            return JsonResponse(plain(success(answer, [])), headers=call.answer_headers)
        passed_over = [name for name in (*ignored, *call.ignored) if name not in _ALWAYS_KNOWN]
        parts = success(answer, passed_over)
        if not route.compresses:
            return JsonResponse(plain(parts))
        accepted = header(request.scope["headers"], b"accept-encoding") or ""
        await compress_fragments(parts, accepted)
        body, headers = body_of(parts, accepted)
        return JsonResponse(body, headers=headers)

    def _authenticated(self, request: Request, route: Route) -> User | None:
        if route.access is Access.ANYONE:
            return None
        key = request.query_params.get("api_key") if route.payload else None
        if key:
            user: User | None = owner_of_key(self._node, request, key)
        else:
            user = authenticated(self._node, request, route.needs)
        if user is None and not (route.access is Access.SPECTATOR and self._node.admits_spectators):
            require_open(self._node)
            raise NotAuthenticated("You need to sign in to do this.")
        if (
            user is not None
            and user.bot is not None
            and user.bot.kind is BotKind.INCOMING_WEBHOOK
            and not route.webhooks
        ):
            raise Refused("Incoming webhook bots can only send messages.")
        return user


_WHILE_MOVING = frozenset(
    {
        *("/register", "/events", "/messages/render", "/users/me/presence"),
        *("/sessions", "/sessions/confirm", "/sessions/{session_id:int}"),
    }
)


def _require_allowed(node: HttpNode, route: Route) -> None:
    """Raise Refused for writing requests while the organization is moving to this server."""
    is_harmless = route.access is Access.ANYONE or route.path in _WHILE_MOVING
    if route.method != "GET" and not is_harmless:
        require_moved(node.state)


_ALWAYS_KNOWN = frozenset({"client", "api_key"})


def _client(agent: str, sent: Mapping[str, str]) -> str:
    """Return the client's name: the `client` parameter, or the User-Agent up to the first slash."""
    name = sent.get("client") or agent.partition("/")[0]
    return "".join(filter(str.isprintable, name)).strip()[:30] or "Unspecified"


class Methods(NamedTuple):
    """The endpoints of one path."""

    path: str
    """The pattern, with names for the variable parts."""
    routes: Mapping[str, Route]


def endpoints_by_path(routes: Iterable[Route]) -> Paths[Methods]:
    """Return the endpoints by path. All nodes of a process share the result."""
    by_path: dict[str, dict[str, Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, {})[route.method] = route
    return Paths(
        PREFIX,
        {
            path: Methods(PREFIX + path.replace(":int}", "}"), routes)
            for path, routes in by_path.items()
        },
    )


def dispatcher(
    node: HttpNode,
    interface: Paths[Methods],
    pages: Iterable[BaseRoute],
    guard: Callable[[ASGIApp], ASGIApp],
    error_page: Callable[[Request, int], Response],
) -> ASGIApp:
    """Return the ASGI application: the API and all other pages, behind `guard`, which may refuse
    any request. `error_page` renders an HTTP status for browsers outside the API."""

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
    node.request_measures.set_paths(
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
        match = interface.find(path) if scope["type"] == "http" else None
        if match is None:
            await others(scope, receive, send)
            return
        methods, scope["path_params"] = match
        scope["state"]["route"] = methods.path
        await Endpoint(node, methods.routes)(scope, receive, send)

    async def from_client(scope: Scope, receive: Receive, send: Send) -> None:
        with RequestOrigin(scope, node.audit):
            await answer(scope, receive, send)

    slow = SlowRequests(
        node.config.slow_request_ms,
        node.membership.slow_requests,
        node.loop_lag,
        node.request_measures,
        node.clock,
    )
    guarded = guard(SessionCookies(node, from_client))
    return RequestLog(guarded, node.config, node.request_measures, slow)


def _is_browsing(request: Request) -> bool:
    """Return whether a person is opening a page, as opposed to a program calling the API."""
    path = request.url.path
    is_interface = path.startswith((f"{PREFIX}/", BROWSER_PREFIX))
    accepted = request.headers.get("accept", "")
    return request.method in {"GET", "HEAD"} and "text/html" in accepted and not is_interface
