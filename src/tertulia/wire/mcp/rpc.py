"""JSON-RPC 2.0, as far as MCP uses it: one message in a request's body, and one answer."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

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
