"""`/scim/v2`: authentication with the setting `scim_token`, routing, and errors in SCIM's
format."""

import hmac
import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tertulia.domain.accounts.users import first_owner
from tertulia.domain.organization.imports import require_moved
from tertulia.model.errors import LastOfKind, NotAuthenticated, Refused, Unavailable
from tertulia.wire.http import audit
from tertulia.wire.http.authentication import require_open
from tertulia.wire.http.errors import MethodNotAllowed, error_response
from tertulia.wire.http.forms import FORM_BYTES, drained, whole_body
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.rate_limits import read_for
from tertulia.wire.http.request_head import site_of
from tertulia.wire.scim.call import ScimAnswer, ScimCall, ScimRefused

logger = logging.getLogger("tertulia.http")

PREFIX: Final = "/scim/v2"
ERROR: Final = "urn:ietf:params:scim:api:messages:2.0:Error"
_JSON: Final = "application/scim+json"
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_WRITES: Final = frozenset({"POST", "PUT", "PATCH"})


def scim_pages(node: HttpNode) -> list[BaseRoute]:
    """The SCIM endpoint; empty without `scim_token`."""
    if not node.config.scim_token:
        return []
    return [Route(PREFIX + "/{path:path}", _Endpoint(node).respond, methods=_METHODS)]


class _Endpoint:
    def __init__(self, node: HttpNode) -> None:
        self._node = node

    async def respond(self, request: Request) -> Response:
        try:
            answer = await self._respond(request)
        except ClientDisconnect:
            return Response(status_code=499)
        except (Refused, Unavailable) as error:
            return self._failure(request, error)
        except Exception as error:
            logger.exception("%s %s failed", request.method, PREFIX)
            return self._failure(request, error)
        if answer.content is None:
            return Response(status_code=204)
        headers = {}
        if answer.status == 201:
            headers["Location"] = answer.content["meta"]["location"]
        return _json(answer.content, answer.status, headers)

    def _failure(self, request: Request, error: Exception) -> Response:
        status, fields, headers = error_response(error)
        request.state.code = fields["code"]
        kind = "invalidValue" if status == 400 else ""
        if isinstance(error, ScimRefused):
            status, kind = error.status, error.kind
        elif isinstance(error, LastOfKind):
            status, kind = 403, ""
        if status == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="tertulia"'
        content = {"schemas": [ERROR], "status": str(status), "detail": fields["msg"]}
        if kind:
            content["scimType"] = kind
        return _json(content, status, headers)

    async def _respond(self, request: Request) -> ScimAnswer:
        node = self._node
        try:
            self._authenticate(request)
        except (Refused, Unavailable):
            # A client that is still sending doesn't read the response.
            if request.method not in {"GET", "HEAD"}:
                await drained(request)
            raise
        method = "GET" if request.method == "HEAD" else request.method
        content = await whole_body(request, FORM_BYTES)
        require_open(node)
        if method != "GET":
            require_moved(node.state)
        from tertulia.wire.scim.routes import handler_of  # Imported only if used.

        name, _, resource_id = request.path_params["path"].partition("/")
        handlers = handler_of(name, is_one=bool(resource_id))
        if method not in handlers:
            raise MethodNotAllowed(list(handlers))
        call = ScimCall(
            node=node,
            user_id=first_owner(node.state),
            base=site_of(node.config, request) + PREFIX,
            query=request.query_params,
            body=_object(content) if method in _WRITES else {},
        )
        generation = node.log.durability.generation
        answer = await handlers[method](call, resource_id)
        # The response may contain changes that are not on disk yet.
        await node.log.durability.settled(generation if method == "GET" else None)
        return answer

    def _authenticate(self, request: Request) -> None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        expected = self._node.config.scim_token.encode()
        is_right = hmac.compare_digest(token.strip().encode(), expected)
        if scheme.lower() != "bearer" or not is_right:
            self._node.request_limits.count(request, None)
            audit.record(request, "sign_in_failed", details={"method": "scim"})
            raise NotAuthenticated("This requires the token in the setting scim_token.")
        request.state.is_directory = True
        read_for(request, None)


def _json(content: Any, status: int, headers: Mapping[str, str]) -> Response:
    body = msgspec.json.encode(content)
    return Response(body, status, {**headers, "Cache-Control": "no-store"}, _JSON)


def _object(content: bytes) -> Mapping[str, Any]:
    try:
        decoded = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        raise ScimRefused(400, "The body must be a JSON object.", "invalidSyntax")
    return decoded
