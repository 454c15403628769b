"""From an HTTP request to a handler's call, and from what it answers to a response."""

import base64
import binascii
import hmac
import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia.model.errors import (
    AccountDeactivated,
    NotAuthenticated,
    Refused,
    Unavailable,
    WrongApiKey,
)
from tertulia.model.users import BotKind, User
from tertulia.vault import digest
from tertulia.wire.call import Call, Node, Upload
from tertulia.wire.errors import (
    BadAuthorization,
    BadBody,
    BodyTooLarge,
    MethodNotAllowed,
    NotFound,
    told,
)
from tertulia.wire.parameters import decode
from tertulia.wire.routing import Access, Route

logger = logging.getLogger("tertulia.http")

PREFIX = "/api/v1"
MIB = 1024 * 1024
_MAX_FIELDS = 1000
_SUCCESS = b'{"result":"success","msg":""'
_encoder = msgspec.json.Encoder()
_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS",
}


class JsonResponse(Response):
    """A response whose body is JSON already."""

    media_type = "application/json"


def success(answer: Any, ignored: list[str]) -> bytes:
    """The body of a success response: an answer's fields beside the common ones."""
    encoded = answer if isinstance(answer, msgspec.Raw) else _encoder.encode(answer)
    fields = bytes(encoded)
    body = _SUCCESS + (b"," + fields[1:] if len(fields) > 2 else b"}")
    if ignored:
        body = body[:-1] + b',"ignored_parameters_unsupported":' + _encoder.encode(ignored) + b"}"
    return body


def failure(error: Exception) -> JsonResponse:
    """The response that tells an error."""
    status, fields, headers = told(error)
    body = _encoder.encode({"result": "error", **fields})
    return JsonResponse(body, status_code=status, headers=headers)


class Endpoint:
    """All methods of one path."""

    def __init__(self, node: Node, routes: Mapping[str, Route]) -> None:
        self._node = node
        self._routes = routes

    async def handle(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        if method == "OPTIONS":
            return Response(status_code=204)
        route = self._routes.get(method)
        if route is None:
            return failure(MethodNotAllowed(list(self._routes)))
        try:
            return JsonResponse(await self._answer(request, route))
        except (Refused, Unavailable) as refusal:
            return failure(refusal)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            logger.exception("%s %s failed", request.method, route.path)
            return failure(error)

    async def _answer(self, request: Request, route: Route) -> bytes:
        node = self._node
        generation = node.log.generation
        # The body is taken in any case: a client that is still sending hears no answer.
        sent, uploads = await _parameters(request, node.config.max_body_mib * MIB)
        if route.dev and not node.config.dev:
            raise Refused("Endpoint not available in production.")
        user = None
        if route.access is not Access.ANYONE:
            user = self._authenticated(request, route)
        request.state.user = user
        call = Call(
            node=node,
            user_id=user.id if user else None,
            client=_client(request.headers, sent),
            host=f"{request.url.scheme}://{request.url.netloc}",
            uploads=tuple(uploads),
            request=request,
        )
        params, ignored = decode(route.params, sent, _path(request))
        answer = await route.handler(call, params)
        # What the answer shows may be ahead of the disk by a moment.
        # (Where a command was carried out since, it saw the state that counts.)
        await node.log.settled(generation if route.method == "GET" else None)
        return success(answer, [name for name in ignored if name not in _ALWAYS_KNOWN])

    def _authenticated(self, request: Request, route: Route) -> User | None:
        header = request.headers.get("authorization")
        if header is None and route.access is Access.SPECTATOR:
            if self._node.state.realm.enable_spectator_access:
                return None
            raise NotAuthenticated("Not logged in: API authentication or user session required")
        user = authenticate(self._node, header)
        if (
            user.bot is not None
            and user.bot.kind is BotKind.INCOMING_WEBHOOK
            and not route.webhooks
        ):
            raise Refused("This API is not available to incoming webhook bots.")
        return user


_ALWAYS_KNOWN = frozenset({"client"})


def authenticate(node: Node, header: str | None) -> User:
    """The account that an Authorization header stands for.

    Raises NotAuthenticated, BadAuthorization, WrongApiKey, AccountDeactivated.
    """
    if not header:
        raise NotAuthenticated("Missing authorization header for basic auth")
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        raise BadAuthorization("This endpoint requires HTTP basic authentication.")
    try:
        email, colon, api_key = (
            base64.b64decode(rest.strip(), validate=True).decode().partition(":")
        )
    except (binascii.Error, UnicodeDecodeError):
        raise NotAuthenticated("Invalid authorization header for basic auth") from None
    if not colon:
        raise NotAuthenticated("Invalid authorization header for basic auth")
    state = node.state
    hashed = digest(api_key)
    user_id = state.user_by_key_digest.get(hashed)
    if user_id is None or not hmac.compare_digest(state.credentials[user_id].key_digest, hashed):
        raise WrongApiKey("Invalid API key")
    user = state.users[user_id]
    named = email.strip().casefold()
    dummy = named.startswith(f"user{user_id}@")
    if named != user.address.casefold() and not dummy:
        raise WrongApiKey("Invalid API key")
    if not user.is_active:
        raise AccountDeactivated("Account is deactivated")
    return user


def _client(headers: Headers, sent: Mapping[str, str]) -> str:
    """The program's name: that of its User-Agent up to the first slash."""
    name = sent.get("client") or headers.get("user-agent", "").partition("/")[0]
    return name.replace("\0", "").strip()[:30] or "Unspecified"


async def _parameters(request: Request, limit: int) -> tuple[dict[str, str], list[Upload]]:
    """Query and form as text by name; of the same name in both, the form's."""
    sent: dict[str, str] = {}
    raw_query = request.scope["query_string"]
    if raw_query:
        sent.update(_urlencoded(raw_query))
    uploads: list[Upload] = []
    if request.method in {"GET", "HEAD"}:
        return sent, uploads
    body = await _body(request, limit)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        fields, uploads = await _multipart(request.headers, body)
        sent.update(fields)
    elif body and kind in {"application/x-www-form-urlencoded", ""}:
        sent.update(_urlencoded(body))
    elif body.strip():
        raise BadBody(f"A body of type {kind[:100]} is not understood: send a form.")
    return sent, uploads


async def _body(request: Request, limit: int) -> bytes:
    """The whole body. One beyond the limit is read and dropped, so that the client, which sends
    before it listens, hears that it was too large."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
        else:
            chunks.clear()
        if size > limit + 256 * MIB:
            break
    if size > limit:
        raise BodyTooLarge(limit // MIB)
    return b"".join(chunks)


def _urlencoded(raw: bytes) -> dict[str, str]:
    try:
        return dict(
            parse_qsl(
                raw.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=_MAX_FIELDS,
            )
        )
    except UnicodeDecodeError:
        raise BadBody("The parameters are not valid UTF-8.") from None
    except ValueError:
        raise BadBody(f"More than {_MAX_FIELDS} parameters are not taken.") from None


async def _multipart(headers: Headers, body: bytes) -> tuple[dict[str, str], list[Upload]]:
    async def stream() -> Any:
        yield body

    try:
        form = await MultiPartParser(
            headers, stream(), max_fields=_MAX_FIELDS, max_part_size=max(len(body), 1)
        ).parse()
    except (MultiPartException, KeyError, UnicodeDecodeError):
        raise BadBody("The body is not a valid multipart form.") from None
    fields: dict[str, str] = {}
    uploads: list[Upload] = []
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            uploads.append(
                Upload(value.filename or "", value.content_type or "", await value.read())
            )
        else:
            fields[name] = value
    await form.close()
    return fields, uploads


def assembled(node: Node, routes: Iterable[Route], pages: Iterable[BaseRoute]) -> ASGIApp:
    """The ASGI application: the table of endpoints, and pages outside of it."""
    by_path: dict[str, dict[str, Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, {})[route.method] = route
    endpoints: list[BaseRoute] = [
        StarletteRoute(PREFIX + path, Endpoint(node, methods).handle, methods=_EVERY_METHOD)
        for path, methods in by_path.items()
    ]

    async def not_found(_request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code == 405:
            return failure(MethodNotAllowed(["GET"]))
        return failure(NotFound())

    app = Starlette(
        routes=[*endpoints, *pages],
        exception_handlers={404: not_found, 405: not_found},
    )
    app.router.redirect_slashes = False
    return Journal(app)


_EVERY_METHOD = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


class Journal:
    """Writes one line for each request, and adds the headers that all responses have."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        scope.setdefault("state", {})
        status = 0
        extra = _HEADERS_API if scope["path"].startswith("/api/") else _HEADERS

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            user = scope["state"].get("user")
            logger.info(
                "request",
                extra={
                    "fields": {
                        "method": scope["method"],
                        "path": scope["path"],
                        "user": user.id if user else "-",
                        "status": status,
                        "ms": round((time.perf_counter() - began) * 1000, 1),
                    }
                },
            )


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


_HEADERS = _encoded({"X-Content-Type-Options": "nosniff"})
_HEADERS_API = _HEADERS + _encoded({**_CORS, "Cache-Control": "no-store"})


def _path(request: Request) -> dict[str, str]:
    """The parts of the URL as they were written."""
    return {name: str(value) for name, value in request.path_params.items()}
