"""A request that the application answers, and its answer, on their connection."""

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

from tertulia.model.errors import Unavailable

_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding", b"connection"})
"""Headers that say where the answer ends, and the connection."""


class AsgiExchange(RequestResponseCycle):
    """uvicorn's, which writes the usual head of an answer at once: to look at each header by
    itself, as uvicorn does, takes longer than all the rest of an answer."""

    async def run_asgi(self, app: Any) -> None:
        async def answered(scope: Any, receive: Any, send: Any) -> None:
            try:
                await app(scope, receive, send)
            except Exception as error:
                # (Starlette raises one of its own where it would have answered by this.)
                is_away = isinstance(error, Unavailable) or isinstance(error.__cause__, Unavailable)
                if not (is_away and self.response_started):
                    raise
                # All that can still be said is that the answer breaks off.
                self.disconnected = True
                self.transport.abort()

        await super().run_asgi(answered)

    async def send(self, message: Any) -> None:
        if (
            self.response_started
            or message["type"] != "http.response.start"
            or self.flow.write_paused
            or self.disconnected
            or not self._begin(message["status"], [*self.default_headers, *message["headers"]])
        ):
            await super().send(message)

    def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> bool:
        """Write the head of an answer that says how long it is. False, and nothing is written,
        where anything is unusual."""
        framing = [header for header in headers if header[0] in _FRAMING]
        if len(framing) != 1 or framing[0][0] != b"content-length" or not framing[0][1].isdigit():
            return False
        if HEADER_RE.search(b"".join([name for name, _ in headers])) or HEADER_VALUE_RE.search(
            b"".join([value for _, value in headers])
        ):
            return False
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        end = b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"
        self.response_started = True
        self.waiting_for_100_continue = False
        self.chunked_encoding = False
        self.expected_content_length = int(framing[0][1])
        self.transport.write(STATUS_LINE[status] + lines + end)
        return True
