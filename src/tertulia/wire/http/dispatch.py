"""From an HTTP request to a handler's call, and from what it answers to a response."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia.model.errors import NotAuthenticated, Refused, Unavailable
from tertulia.model.sessions import Session
from tertulia.model.users import BotKind, User
from tertulia.service import links
from tertulia.service.config import Config
from tertulia.store.uploads import ArrivedFile
from tertulia.wire.http import content_policies
from tertulia.wire.http.authentication import WEBSITE, authenticated, require_open
from tertulia.wire.http.call import Call, Upload
from tertulia.wire.http.errors import MethodNotAllowed, NotFound, error_response
from tertulia.wire.http.file_bodies import drained, received_file
from tertulia.wire.http.forms import MIB, received
from tertulia.wire.http.fragments import FragmentedAnswer, Part, body_of, compress_fragments
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.parameters import decode
from tertulia.wire.http.paths import Paths
from tertulia.wire.http.rate_limits import EXPOSED, rate_headers
from tertulia.wire.http.routing import Access, Redirect, Route
from tertulia.wire.http.session_cookies import SessionCookies

logger = logging.getLogger("tertulia.http")

STRANGERS_BODY = 256 * 1024
"""Bytes of a body from somebody without an account."""
PREFIX = "/api/v1"
POLLS = f"{PREFIX}/events"
"""Where clients wait for events."""
_SUCCESS_TOLD = b'{"result":"success"'
SUCCESS = _SUCCESS_TOLD + b',"msg":""'
"""How every successful answer begins that says nothing of itself."""
_encoder = msgspec.json.Encoder()
_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS",
    "Access-Control-Expose-Headers": EXPOSED,
}


class JsonResponse(Response):
    """A response whose body is JSON already."""

    media_type = "application/json"


def success(answer: Any, ignored: list[str]) -> list[Part]:
    """The body of a success response: an answer's fields beside the common ones."""
    # What the request said stands by itself: see decision 0016.
    told = b',"ignored_parameters_unsupported":' + _encoder.encode(ignored) if ignored else b""
    if isinstance(answer, FragmentedAnswer):
        return [SUCCESS, *answer.parts, told + b"}"]
    encoded = answer if isinstance(answer, msgspec.Raw) else _encoder.encode(answer)
    fields = bytes(encoded)
    # What an answer says of itself in words stands in place of the empty `msg`.
    begins = SUCCESS if not fields.startswith(b'{"msg":') else _SUCCESS_TOLD
    return [begins + (b"," + fields[1:-1] if len(fields) > 2 else b""), told + b"}"]


class Failure(JsonResponse):
    """A response that tells an error. `code` is what programs know it by."""

    code = ""


def failure(error: Exception) -> Failure:
    """The response that tells an error."""
    status, fields, headers = error_response(error)
    body = _encoder.encode({"result": "error", **fields})
    response = Failure(body, status_code=status, headers=headers)
    response.code = fields["code"]
    return response


class Endpoint:
    """All methods of one path."""

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
                raise Refused("Only development servers answer this.")
            user = self._admitted(request, route)
        except Refused:
            # The body is taken in any case: a client that is still sending hears no answer.
            if request.method not in {"GET", "HEAD"}:
                await drained(request)
            raise
        limit = node.config.max_body_mib * MIB
        seen, generation = node.state.seq, node.log.generation
        sent, uploads = await received(
            request, limit if user is not None else min(limit, STRANGERS_BODY)
        )
        if node.state.seq != seen:
            self._authenticated(request, route)  # It took a while, and they may be gone.
        try:
            return await self._handled(request, route, user, sent, uploads=tuple(uploads))
        except Unavailable:
            # That somebody else's change could not be written need not concern who only asks.
            is_question = route.method == "GET" and not route.polls
            if not is_question or not await node.log.was_reloaded(generation):
                raise
        return await self._handled(request, route, self._authenticated(request, route), sent)

    async def _answer_file(self, request: Request, route: Route) -> Response:
        """Nobody's file is written before it is known who sends it."""
        node = self._node
        try:
            user = self._admitted(request, route)
        except Refused:
            await drained(request)
            raise
        limit = node.config.max_file_upload_size_mib * MIB
        async with received_file(request, node.uploads, limit) as (sent, file):
            return await self._handled(request, route, user, sent, file=file)

    def _admitted(self, request: Request, route: Route) -> User | None:
        return self._node.rates.admitted(
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
    ) -> Response:
        node = self._node
        generation = node.log.generation
        session: Session | None = getattr(request.state, "session", None)
        call = Call(
            node=node,
            user_id=user.id if user else None,
            client=_client(WEBSITE if session else request.headers.get("user-agent", ""), sent),
            uploads=uploads,
            file=file,
            request=request,
            session_id=session.id if session else None,
        )
        params, ignored = decode(route.params, sent, request.path_params)
        answer = await route.handler(call, params)
        # What the answer shows may be ahead of the disk by a moment.
        # (Where a command was carried out since, it saw the state that counts.)
        await node.log.settled(generation if route.method == "GET" else None)
        if isinstance(answer, Redirect):
            return RedirectResponse(answer.address, status_code=302)
        passed_over = [*ignored, *call.ignored]
        parts = success(answer, [name for name in passed_over if name not in _ALWAYS_KNOWN])
        accepted = request.headers.get("accept-encoding", "") if route.packs else None
        await compress_fragments(parts, accepted)
        body, headers = body_of(parts, accepted)
        return JsonResponse(body, headers=headers)

    def _authenticated(self, request: Request, route: Route) -> User | None:
        if route.access is Access.ANYONE:
            return None
        user = authenticated(self._node, request)
        if user is None and not (route.access is Access.SPECTATOR and self._node.admits_spectators):
            require_open(self._node)
            raise NotAuthenticated("This needs an account: sign in first.")
        if (
            user is not None
            and user.bot is not None
            and user.bot.kind is BotKind.INCOMING_WEBHOOK
            and not route.webhooks
        ):
            raise Refused("An incoming webhook bot sends messages and does nothing else.")
        return user


_ALWAYS_KNOWN = frozenset({"client"})


def _client(agent: str, sent: Mapping[str, str]) -> str:
    """The program's name: that of its User-Agent up to the first slash, or what it says itself."""
    name = sent.get("client") or agent.partition("/")[0]
    return "".join(filter(str.isprintable, name)).strip()[:30] or "Unspecified"


def assembled(
    node: HttpNode,
    routes: Iterable[Route],
    pages: Iterable[BaseRoute],
    guarded: Callable[[ASGIApp], ASGIApp],
) -> ASGIApp:
    """The ASGI application: the table of endpoints, and pages outside of it, behind what may refuse
    all of it."""
    by_path: dict[str, dict[str, Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, {})[route.method] = route
    endpoints = Paths(PREFIX, {path: Endpoint(node, own) for path, own in by_path.items()})

    async def not_found(_request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code == 405:
            return failure(MethodNotAllowed(["GET", "HEAD"]))
        return failure(NotFound())

    others = Starlette(routes=list(pages), exception_handlers={404: not_found, 405: not_found})
    others.router.redirect_slashes = False

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        found = endpoints.find(scope["path"]) if scope["type"] == "http" else None
        if found is None:
            await others(scope, receive, send)
            return
        endpoint, scope["path_params"] = found
        await endpoint(scope, receive, send)

    return Journal(guarded(SessionCookies(node, answer)), node.config)


class Journal:
    """Writes one line for each request, and adds the headers that all responses have."""

    def __init__(self, app: ASGIApp, config: Config) -> None:
        self._app = app
        secure = []
        if config.is_https and config.hsts_seconds:
            secure = _encoded({"Strict-Transport-Security": f"max-age={config.hsts_seconds}"})
        self._of_api, self._of_others = HEADERS_API + secure, _HEADERS + secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        scope.setdefault("state", {})
        status = 0
        extra = self._of_api if scope["path"].startswith("/api/") else self._of_others

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(header for header in extra if header[0] not in own),
                    *rate_headers(scope["state"]),
                ]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except ClientDisconnect:
            status = 499
        except asyncio.CancelledError:
            # The server ends, and has waited for this request as long as it does for any.
            if status:
                raise
            await failure(Unavailable("The server is stopping."))(scope, receive, sending)
        finally:
            user, code = scope["state"].get("user"), scope["state"].get("code", "")
            note(scope["method"], scope["path"], user.id if user else None, status, began, code)


def note(
    method: str, path: str, user_id: int | None, status: int, began: float, code: str = ""
) -> None:
    """Write the line of a request that is answered. It `began` by `time.perf_counter`. `code` is of
    what was refused: the status alone does not tell a missing right from what makes no sense.

    Polls that succeed are for those who search for a mistake: a busy organization has thousands
    of them each second.
    """
    level = logging.DEBUG if (method, path, status) == ("GET", POLLS, 200) else logging.INFO
    if logger.isEnabledFor(level):
        fields = {
            "method": method,
            "path": _told_path(path),
            "user": "-" if user_id is None else user_id,
            "status": status,
            "ms": round((time.perf_counter() - began) * 1000, 1),
        }
        if code:
            fields["code"] = code
        logger.log(level, "request", extra={"fields": fields})


def _told_path(path: str) -> str:
    """The path without what opens something to whoever knows it."""
    return next((f"{before}…" for before in links.PATHS if path.startswith(before)), path)


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


_HEADERS = _encoded(
    {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": content_policies.NOTHING}
)
HEADERS_API = _HEADERS + _encoded({**_CORS, "Cache-Control": "no-store"})
