"""Raw HTTP, for requests that no HTTP library would send."""

import http.client
import io
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from tests.e2e.server import Account, Server, basic

TIMEOUT = 60.0


@dataclass(frozen=True)
class Response:
    """A response."""

    status: int
    headers: dict[str, str]
    """With lowercase names."""
    body: bytes

    def refused(self, code: str = "BAD_REQUEST", status: int = 400) -> dict[str, Any]:
        """The body of an error with this code and status."""
        answer: dict[str, Any] = json.loads(self.body)
        assert (self.status, answer["result"], answer["code"]) == (status, "error", code), answer
        assert answer["msg"]
        assert self.headers["content-type"] == "application/json"
        return answer


class Connection:
    """A connection to the server."""

    def __init__(self, plug: socket.socket) -> None:
        self._plug = plug
        self._file = plug.makefile("rb")

    def write(self, data: bytes) -> None:
        self._plug.sendall(data)

    def read(self, method: str = "GET") -> Response:
        """Read the next response."""
        # http.client only calls its makefile().
        borrowed = cast(socket.socket, _Borrowed(self._file))
        response = http.client.HTTPResponse(borrowed, method=method)
        response.begin()
        body = response.read()
        return Response(response.status, {k.lower(): v for k, v in response.getheaders()}, body)

    def ask(self, data: bytes) -> Response:
        """Send a request and return the response."""
        self.write(data)
        return self.read()

    def is_closed(self) -> bool:
        """Wait for the server to close the connection, and return whether it did."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self._file.close()
        self._plug.close()


class _Borrowed:
    """The socket and file for `http.client`. Closing it leaves the file open for the next
    response."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file

    def makefile(self, _mode: str) -> "_Borrowed":
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def close(self) -> None:
        """Keep the file open."""


@contextmanager
def connected(server: Server) -> Iterator[Connection]:
    """Open a new connection."""
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as plug:
        connection = Connection(plug)
        try:
            yield connection
        finally:
            connection.close()


def request(
    method: bytes, target: bytes, account: Account | None = None, *, form: bytes | None = None
) -> bytes:
    """A request to a path below `/api/v1`."""
    lines = [method + b" /api/v1" + target + b" HTTP/1.1", b"Host: chat.test"]
    if account is not None:
        lines.append(b"Authorization: " + basic(account).encode())
    if form is not None:
        lines.append(b"Content-Type: application/x-www-form-urlencoded")
        lines.append(b"Content-Length: %d" % len(form))
    return b"\r\n".join(lines) + b"\r\n\r\n" + (form or b"")
