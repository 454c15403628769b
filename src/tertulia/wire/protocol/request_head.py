"""Checks of an incoming request's head: its size, and whether it's unambiguous.

If a proxy in front of this server interpreted a request differently, a client could smuggle a
second request past it.
"""

from typing import Final

import httptools

from tertulia.wire.http.errors import BadHttp, HeadTooLarge
from tertulia.wire.http.request_head import is_authority

MAX_HEAD: Final = 64 * 1024
"""Largest request line with headers, and largest framing around a body, in bytes."""
MAX_HEADERS: Final = 256
_FRAMING: Final = frozenset({b"host", b"content-length", b"transfer-encoding"})
"""Headers that determine where a request goes and where it ends."""


class RequestHead:
    """The state of the head that a connection is receiving."""

    __slots__ = ("_has_body", "_headers", "_host", "_size")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Reset the state for a new request."""
        self._size = 0
        self._headers = 0
        self._host: bytes | None = None
        self._has_body = False

    def add_target(self, part: bytes) -> None:
        """Count a part of the target. Raises HeadTooLarge."""
        self._size += len(part)
        if self._size > MAX_HEAD:
            raise HeadTooLarge(MAX_HEAD)

    def add_header(self, name: bytes, value: bytes, parser: httptools.HttpRequestParser) -> None:
        """Check a header with a lowercase name. Raises HeadTooLarge, BadHttp."""
        self._size += len(name) + len(value)
        self._headers += 1
        if self._size > MAX_HEAD or self._headers > MAX_HEADERS:
            raise HeadTooLarge(MAX_HEAD)
        if name in _FRAMING:
            self._add_framing(name, value, parser)

    def require_clear(self, target: bytes, parser: httptools.HttpRequestParser) -> None:
        """Raise BadHttp if another server could interpret the complete head differently."""
        version = parser.get_http_version()
        if version == "1.1":
            if self._host is None:
                raise BadHttp("The Host header is missing.")
        elif version != "1.0":
            raise BadHttp("This server supports HTTP/1.1.")
        if target[:1] != b"/" and not self._is_this_server(target):
            raise BadHttp("The request is for a different server.")
        if parser.should_upgrade() and (self._has_body or parser.get_method() == b"CONNECT"):
            # The parser would read the body as the next request.
            raise BadHttp("This server supports HTTP/1.1. Don't request a protocol upgrade.")

    def _add_framing(self, name: bytes, value: bytes, parser: httptools.HttpRequestParser) -> None:
        if name == b"host":
            if self._host is not None:
                raise BadHttp("The request has more than one Host header.")
            self._host = value.strip()
            if not is_authority(self._host):
                raise BadHttp("The Host header must be a host name, with or without a port.")
            return
        self._has_body = True
        if name == b"transfer-encoding" and (
            value.strip().lower() != b"chunked" or parser.get_http_version() != "1.1"
        ):
            raise BadHttp(
                "The body must be chunked, in HTTP/1.1, or sent without a transfer encoding."
            )

    def _is_this_server(self, target: bytes) -> bool:
        """Return whether an absolute target names the host in the Host header."""
        if target == b"*":
            return True
        scheme, separator, rest = target.partition(b"://")
        host = rest.partition(b"/")[0].partition(b"?")[0]
        return (
            separator != b""
            and scheme.lower() in {b"http", b"https"}
            and self._host is not None
            and host.lower() == self._host.lower()
        )
