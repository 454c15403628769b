"""Which revision of the protocol a request is of, and what its headers must say.

Of the present one, each request says all about itself. Those before it began with a handshake, in
which client and server agreed on a revision; the server keeps nothing of it, and takes any request
that names one of them.
"""

import base64
import binascii
from enum import Enum, auto
from typing import Any, Final

from starlette.datastructures import Headers

from tertulia.wire.mcp.rpc import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    UNSUPPORTED_VERSION,
    Id,
    Request,
    RpcError,
)

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
