"""JSON-RPC 2.0, as far as MCP uses it: one message in a request's body, and one answer."""

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
"""Written as JSON: a backslash that is not itself escaped, and the number."""


class RpcError(Exception):
    """A message is answered with an error. `str(error)` is for whoever wrote the client."""

    def __init__(
        self, code: int, sentence: str, *, status: int = 400, data: Any = None, id: Id | None = None
    ) -> None:
        """`status` is of the HTTP response; `id` that of the message, where it is known."""
        super().__init__(sentence)
        self.code = code
        self.status = status
        self.data = data
        self.id = id


class Request(Struct, frozen=True):
    """A message that wants an answer."""

    id: Id
    method: str
    params: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the message says of itself. RpcError for what is no object."""
        found = self.params.get("_meta", {})
        if not isinstance(found, dict):
            raise RpcError(INVALID_PARAMS, "'_meta' must be an object.", id=self.id)
        return found


class Notification(Struct, frozen=True):
    """A message that wants none."""

    method: str


def read(body: bytes) -> Request | Notification:
    """The message in a body. RpcError for anything else."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise RpcError(PARSE_ERROR, "The body isn't valid JSON.") from None
    if isinstance(said, list):
        raise RpcError(INVALID_REQUEST, "Batches aren't supported. Send a single message.")
    if not isinstance(said, dict) or said.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "The body isn't a JSON-RPC 2.0 message.")
    message_id = said.get("id")
    known = message_id if isinstance(message_id, str | int) else None
    if isinstance(message_id, bool) or ("id" in said and known is None):
        raise RpcError(INVALID_REQUEST, "A message's ID must be a string or an integer.")
    method, params = said.get("method"), said.get("params", {})
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "Only requests and notifications are accepted.", id=known)
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "'params' must be an object.", id=known)
    if _NULL_BYTE.search(body):
        raise RpcError(INVALID_PARAMS, "The message contains a null byte.", id=known)
    return Notification(method) if known is None else Request(known, method, params)


_encoder: Final = msgspec.json.Encoder()


def result(message_id: Id, value: Mapping[str, Any]) -> bytes:
    """The answer to a request, as it is sent."""
    return _encoder.encode({"jsonrpc": "2.0", "id": message_id, "result": value})


def error(code: int, sentence: str, *, data: Any = None, message_id: Id | None = None) -> bytes:
    """The error in place of an answer."""
    said: dict[str, Any] = {"code": code, "message": sentence}
    if data is not None:
        said["data"] = data
    return _encoder.encode({"jsonrpc": "2.0", "id": message_id, "error": said})


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
"""What surrounds the value of a header that is no plain text."""


class Era(Enum):
    """How a request is to be answered."""

    PRESENT = auto()
    HANDSHAKE = auto()


def era_of(headers: Headers, request: Request) -> Era:
    """How the request is to be answered. RpcError where its headers and its body do not agree, or
    it is of no revision that is known here."""
    if request.method == INITIALIZE:
        return Era.HANDSHAKE
    version = header_of(headers, VERSION_HEADER, request.id)
    if version is None:
        raise _mismatch(f"The MCP-Protocol-Version header is missing. {_known()}.", request.id)
    if version in WITH_HANDSHAKE:
        return Era.HANDSHAKE
    said = request.meta.get(_VERSION)
    if said is None and version in PRESENT:
        raise RpcError(INVALID_PARAMS, f"'_meta' doesn't contain {_VERSION}.", id=request.id)
    if said is not None and said != version:
        raise _mismatch("MCP-Protocol-Version doesn't match '_meta'.", request.id)
    require_supported(version, request.id)
    if not isinstance(request.meta.get(_CAPABILITIES), dict):
        raise RpcError(INVALID_PARAMS, f"'_meta' doesn't contain {_CAPABILITIES}.", id=request.id)
    _require_same(headers, "mcp-method", request.method, request.id)
    if request.method == "tools/call":
        _require_same(headers, "mcp-name", request.params.get("name"), request.id)
    return Era.PRESENT


def require_supported(version: str, message_id: Id | None = None) -> None:
    """RpcError for a revision that is not known here."""
    if version not in SUPPORTED:
        raise RpcError(
            UNSUPPORTED_VERSION,
            f"This server doesn't support this protocol version. {_known()}.",
            data={"supported": list(SUPPORTED), "requested": version[:100]},
            id=message_id,
        )


def agreed(wanted: object) -> str:
    """The revision that a handshake ends with: what the client wants, or the newest of those."""
    return wanted if isinstance(wanted, str) and wanted in WITH_HANDSHAKE else WITH_HANDSHAKE[0]


def header_of(headers: Headers, name: str, message_id: Id | None = None) -> str | None:
    """The header's value; None where there is none. RpcError where it came more than once."""
    found = headers.getlist(name)
    if len(found) > 1:
        raise _mismatch(f"The {name} header was sent more than once.", message_id)
    return found[0].strip() if found else None


def _require_same(headers: Headers, name: str, said: Any, message_id: Id) -> None:
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
    if value != said:
        raise _mismatch(f"The {name} header doesn't match the body.", message_id)


def _mismatch(sentence: str, message_id: Id | None) -> RpcError:
    return RpcError(HEADER_MISMATCH, sentence, id=message_id)


def _known() -> str:
    return f"The server supports {', '.join(SUPPORTED)}"
