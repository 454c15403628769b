"""HTTP as it comes off the socket, with a bound on what may come before a body."""

from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tertulia.wire.errors import BadHttp, HeadTooLarge
from tertulia.wire.http import failure

MAX_HEAD = 64 * 1024
"""Bytes of a request line and its headers, before the server hangs up."""


class BoundedHttp(HttpToolsProtocol):
    """uvicorn's protocol; it hangs up on a head without an end, which would be gathered in memory
    for ever, and tells its own errors as all others are told."""

    _head = 0
    _is_in_head = False

    def data_received(self, data: bytes) -> None:
        self._head += len(data)
        super().data_received(data)
        if self._is_in_head and self._head > MAX_HEAD and not self.transport.is_closing():
            self._hang_up(HeadTooLarge(MAX_HEAD))

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._head = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._hang_up(BadHttp())

    def _hang_up(self, error: Exception) -> None:
        response = failure(error)
        status = HTTPStatus(response.status_code)
        lines = [b"HTTP/1.1 %d %s" % (status, status.phrase.encode())]
        lines += [name + b": " + value for name, value in response.raw_headers]
        lines += [b"connection: close", b"", bytes(response.body)]
        self.transport.write(b"\r\n".join(lines))
        self.transport.close()
