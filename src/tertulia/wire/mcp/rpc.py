"""JSON-RPC 2.0 messages and MCP protocol versions. Each request body has one message."""

import base64
import binascii
import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.datastructures import Headers

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

Id = str | int
_NULL_BYTE: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""A null byte as a JSON escape whose backslash isn't itself escaped."""


class RpcError(Exception):
    """A message gets an error response. `str(error)` is for the client's developer."""

    def __init__(
        self, code: int, sentence: str, *, status: int = 400, data: Any = None, id: Id | None = None
    ) -> None:
        """`status` is the HTTP status, and `id` the message's ID if known."""
        super().__init__(sentence)
        self.code = code
        self.status = status
        self.data = data
        self.id = id


class RpcRequest(Struct, frozen=True):
    """A message that expects a response."""

    id: Id
    method: str
    params: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        """Return the message's `_meta`. Raises RpcError if it isn't an object."""
        meta = self.params.get("_meta", {})
        if not isinstance(meta, dict):
            raise RpcError(INVALID_PARAMS, "'_meta' must be an object.", id=self.id)
        return meta


class RpcNotification(Struct, frozen=True):
    """A message that expects no response."""

    method: str


def read(body: bytes) -> RpcRequest | RpcNotification:
    """Parse the message in a request body. Raises RpcError if it isn't valid."""
    try:
        message = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise RpcError(PARSE_ERROR, "The body isn't valid JSON.") from None
    if isinstance(message, list):
        raise RpcError(INVALID_REQUEST, "Batches aren't supported. Send a single message.")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "The body isn't a JSON-RPC 2.0 message.")
    message_id = message.get("id")
    known = message_id if isinstance(message_id, str | int) else None
    if isinstance(message_id, bool) or ("id" in message and known is None):
        raise RpcError(INVALID_REQUEST, "A message's ID must be a string or an integer.")
    method, params = message.get("method"), message.get("params", {})
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "Only requests and notifications are accepted.", id=known)
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "'params' must be an object.", id=known)
    if _NULL_BYTE.search(body):
        raise RpcError(INVALID_PARAMS, "The message contains a null byte.", id=known)
    return RpcNotification(method) if known is None else RpcRequest(known, method, params)


_encoder: Final = msgspec.json.Encoder()


def result(message_id: Id, value: Mapping[str, Any]) -> bytes:
    """Encode the response to a request."""
    return _encoder.encode({"jsonrpc": "2.0", "id": message_id, "result": value})


def error(code: int, sentence: str, *, data: Any = None, message_id: Id | None = None) -> bytes:
    """Encode an error response."""
    fields: dict[str, Any] = {"code": code, "message": sentence}
    if data is not None:
        fields["data"] = data
    return _encoder.encode({"jsonrpc": "2.0", "id": message_id, "error": fields})


PRESENT: Final = ("2026-07-28",)
WITH_HANDSHAKE: Final = ("2025-11-25", "2025-06-18")
SUPPORTED: Final = (*PRESENT, *WITH_HANDSHAKE)
VERSION_HEADER: Final = "mcp-protocol-version"
INITIALIZE: Final = "initialize"

_META: Final = "io.modelcontextprotocol/"
SERVER_INFO: Final = f"{_META}serverInfo"
_VERSION: Final = f"{_META}protocolVersion"
_CAPABILITIES: Final = f"{_META}clientCapabilities"
_ENCODED: Final = ("=?base64?", "?=")
"""The prefix and suffix of header values in base64."""


class Era(Enum):
    """The protocol generations, which differ in their requests and responses."""

    PRESENT = auto()
    HANDSHAKE = auto()


def era_of(headers: Headers, request: RpcRequest) -> Era:
    """Return the request's protocol generation.

    Raises RpcError if the headers contradict the body, or the version isn't supported.
    """
    if request.method == INITIALIZE:
        return Era.HANDSHAKE
    version = header_of(headers, VERSION_HEADER, request.id)
    if version is None:
        raise _mismatch(f"The MCP-Protocol-Version header is missing. {_supported()}.", request.id)
    if version in WITH_HANDSHAKE:
        return Era.HANDSHAKE
    in_meta = request.meta.get(_VERSION)
    if in_meta is None and version in PRESENT:
        raise RpcError(INVALID_PARAMS, f"'_meta' doesn't contain {_VERSION}.", id=request.id)
    if in_meta is not None and in_meta != version:
        raise _mismatch("MCP-Protocol-Version doesn't match '_meta'.", request.id)
    require_supported(version, request.id)
    if not isinstance(request.meta.get(_CAPABILITIES), dict):
        raise RpcError(INVALID_PARAMS, f"'_meta' doesn't contain {_CAPABILITIES}.", id=request.id)
    _require_same(headers, "mcp-method", request.method, request.id)
    if request.method == "tools/call":
        _require_same(headers, "mcp-name", request.params.get("name"), request.id)
    return Era.PRESENT


def require_supported(version: str, message_id: Id | None = None) -> None:
    """Raise RpcError if the protocol version isn't supported."""
    if version not in SUPPORTED:
        raise RpcError(
            UNSUPPORTED_VERSION,
            f"This server doesn't support this protocol version. {_supported()}.",
            data={"supported": list(SUPPORTED), "requested": version[:100]},
            id=message_id,
        )


def negotiated(requested: object) -> str:
    """Return the version for a handshake's response: the requested one if it's supported, else the
    newest."""
    return (
        requested
        if isinstance(requested, str) and requested in WITH_HANDSHAKE
        else WITH_HANDSHAKE[0]
    )


def header_of(headers: Headers, name: str, message_id: Id | None = None) -> str | None:
    """Return the header's value, or None. Raises RpcError if it was sent more than once."""
    values = headers.getlist(name)
    if len(values) > 1:
        raise _mismatch(f"The {name} header was sent more than once.", message_id)
    return values[0].strip() if values else None


def _require_same(headers: Headers, name: str, expected: Any, message_id: Id) -> None:
    value = header_of(headers, name, message_id)
    if value is None:
        raise _mismatch(f"The {name} header is missing.", message_id)
    begin, end = _ENCODED
    if value.startswith(begin) and value.endswith(end):
        try:
            encoded = value[len(begin) : -len(end)]
            value = base64.b64decode(encoded, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise _mismatch(f"The {name} header isn't valid.", message_id) from None
    if value != expected:
        raise _mismatch(f"The {name} header doesn't match the body.", message_id)


def _mismatch(sentence: str, message_id: Id | None) -> RpcError:
    return RpcError(HEADER_MISMATCH, sentence, id=message_id)


def _supported() -> str:
    return f"The server supports {', '.join(SUPPORTED)}"
