"""`/mcp`, MCP over HTTP.

Each request has one message and gets one response. Sessions and streams aren't used, because the
server never sends anything unasked.
"""

import logging
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tertulia.domain.accounts import access_keys
from tertulia.model.access_keys import AccessKey
from tertulia.model.errors import Refused, Unavailable, WrongApiKey
from tertulia.model.users import User
from tertulia.service.agent import Agent
from tertulia.service.config import Config
from tertulia.wire.http.authentication import agent_of, record_refused_key
from tertulia.wire.http.errors import MethodNotAllowed, error_response
from tertulia.wire.http.forms import drained, whole_body
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import site_of
from tertulia.wire.mcp import rpc
from tertulia.wire.mcp.rpc import (
    INTERNAL_ERROR,
    VERSION_HEADER,
    RpcError,
    RpcNotification,
    era_of,
    header_of,
    require_supported,
)
from tertulia.wire.mcp.tool import ToolCall

logger = logging.getLogger("tertulia.http")

PATH: Final = "/mcp"
MAX_BODY: Final = 256 * 1024
"""Largest request body, in bytes: enough for the longest message in the longest JSON encoding."""
_JSON: Final = "application/json"
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""All methods are routed here, so that unsupported ones get a proper error."""
_HEADERS: Final = {"Cache-Control": "no-store"}


class _HttpError(Refused):
    """An error in the HTTP request, as opposed to the message."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def agent_pages(node: HttpNode) -> list[BaseRoute]:
    """Return the MCP endpoint, or an empty list if agents are turned off."""
    return [Route(PATH, _Endpoint(node).respond, methods=_METHODS)] if node.config.agents else []


class _Endpoint:
    def __init__(self, node: HttpNode) -> None:
        self._node = node

    async def respond(self, request: Request) -> Response:
        try:
            return await self._respond(request)
        except RpcError as error:
            request.state.code = str(error.code)
            body = rpc.error(error.code, str(error), data=error.data, message_id=error.id)
            return Response(body, error.status, headers=_HEADERS, media_type=_JSON)
        except ClientDisconnect:
            return Response(status_code=499)
        except _HttpError as error:
            return self._failure(request, error, error.status)
        except (Refused, Unavailable) as error:
            return self._failure(request, error)
        except Exception as error:
            logger.exception("%s %s failed", request.method, PATH)
            return self._failure(request, error)

    def _failure(self, request: Request, error: Exception, status: int | None = None) -> Response:
        """Return an error with an HTTP status, and the same error as JSON-RPC."""
        usual_status, fields, headers = error_response(error)
        status = status or usual_status
        request.state.code = fields["code"]
        if status == 401:
            details = "" if "WWW-Authenticate" in headers else ', error="invalid_token"'
            headers["WWW-Authenticate"] = f'Bearer realm="tertulia"{details}'
        # JSON-RPC reserves a separate range of codes.
        code = INTERNAL_ERROR if status == 500 else status
        body = rpc.error(code, fields["msg"], data={"code": fields["code"]})
        return Response(body, status, headers={**_HEADERS, **headers}, media_type=_JSON)

    async def _respond(self, request: Request) -> Response:
        node = self._node
        try:
            key = self._authenticate(request)
        except (Refused, Unavailable) as refusal:
            if isinstance(refusal, WrongApiKey):
                record_refused_key(node, request)
            # A client that is still sending doesn't read the response.
            if request.method not in {"GET", "HEAD"}:
                await drained(request)
            raise
        message = rpc.read(await whole_body(request, MAX_BODY))
        access_keys.current_key(node.state, key.id)  # The key may have been revoked since.
        if isinstance(message, RpcNotification):
            # No defined notification concerns a server without sessions.
            version = header_of(request.headers, VERSION_HEADER)
            if version is not None:
                require_supported(version)
            return Response(status_code=202, headers=_HEADERS)
        era = era_of(request.headers, message)
        agent = Agent(node=node, user_id=key.user_id, key_id=key.id)
        call = ToolCall(agent, site_of(node.config, request))
        from tertulia.wire.mcp.methods import respond  # Imports all tools, so only if used.

        result = await respond(era, message, call)
        # The response may contain changes that are not on disk yet.
        await node.log.durability.settled()
        body = rpc.result(message.id, result)
        return Response(body, headers=_HEADERS, media_type=_JSON)

    def _authenticate(self, request: Request) -> AccessKey:
        """Authenticate the agent, count the request toward its owner's rate limit, and check the
        headers."""
        node = self._node
        _require_own_origin(node.config, request)
        if request.method != "POST":
            raise MethodNotAllowed(["POST"])
        keys: list[AccessKey] = []

        def owner() -> User:
            keys.append(agent_of(node, request))
            return node.state.users[keys[0].user_id]

        node.request_limits.admitted(request, owner)
        _require_json(request)
        return keys[0]


def _require_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _JSON:
        raise _HttpError(415, "The request body must be JSON. Send it as application/json.")
    accepted = request.headers.get("accept", "*/*").lower()
    if not any(item in accepted for item in (_JSON, "application/*", "*/*")):
        raise _HttpError(406, "The response is JSON. Accept application/json.")


def _require_own_origin(config: Config, request: Request) -> None:
    """Refuse requests from other websites, including DNS rebinding."""
    origin = request.headers.get("origin")
    if origin is None:
        return
    try:
        sent, host = urlsplit(origin), urlsplit(f"//{request.headers.get('host', '')}")
        if config.external_url:
            is_own = sent.netloc.lower() == urlsplit(config.external_url).netloc.lower()
        else:
            # Anyone can make a host name resolve to this server, so if its name isn't known, only
            # IP addresses are accepted.
            is_own = sent.netloc.lower() == host.netloc.lower() and _is_fixed(sent.hostname or "")
    except ValueError:
        is_own = False
    if not is_own:
        raise _HttpError(403, "The request comes from a page on another server.")


def _is_fixed(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
