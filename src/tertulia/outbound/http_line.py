"""One connection to a server of the web, by which one request after the other is sent.

An answer is read by what it says of its own length. Whatever comes beyond it, or while nothing was
asked, would be taken for the answer to the next request: so the connection ends with it.
"""

import asyncio
import select
import time
from collections.abc import Mapping
from typing import Final, cast

import httptools

MAX_HEAD: Final = 64 * 1024
"""Bytes that an answer may have beside its body."""
Answered = tuple[int, Mapping[str, str], bytes]
"""A status, headers by their names in small letters, and the body."""


class LineFailed(Exception):
    """There is no answer by this connection. `str(error)` says why, for the log."""


class TooLarge(LineFailed):
    """The answer has more bytes than were to be read."""


class HttpLine(asyncio.Protocol):
    """The connection, once it is made. To be used by one at a time."""

    def __init__(self) -> None:
        self.used_at = time.monotonic()
        """When the last answer came."""
        self._transport: asyncio.Transport | None = None
        self._exchange: _Exchange | None = None

    async def ask(self, request: bytes, limit: int) -> Answered:
        """The answer to the request, whose body may have so many bytes. LineFailed where none comes
        before the connection ends, TooLarge where it is more. However it ends, `is_free` says
        afterwards whether there may be another. (Of one that is new, it says nothing: where TLS
        begins, the other end sends on when all is agreed upon.)"""
        transport = self._transport
        if transport is None or transport.is_closing() or self._exchange is not None:
            raise LineFailed("the connection was closed")
        exchange = self._exchange = _Exchange(limit)
        transport.write(request)
        try:
            return await exchange.answer
        finally:
            self._exchange = None
            self.used_at = time.monotonic()
            if not exchange.is_over_and_clear:
                self.end()
            exchange.let_go()

    @property
    def is_free(self) -> bool:
        """Whether it is open, and nothing has come that was not asked for."""
        transport = self._transport
        return (
            transport is not None
            and not transport.is_closing()
            and self._exchange is None
            and not _is_readable(transport)
        )

    def end(self) -> None:
        """Close it, whatever goes on."""
        if self._transport is not None:
            self._transport.abort()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._exchange is None:
            self.end()  # Nothing was asked.
        else:
            self._exchange.take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._exchange is not None:
            self._exchange.end(exc)


class _Exchange:
    """A request that was sent, and what has come of its answer."""

    def __init__(self, limit: int) -> None:
        self.answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self.is_over_and_clear = False
        """Whether all of it has come, and nothing else, on a connection that stays."""
        self._parser = httptools.HttpResponseParser(self)
        self._limit = limit
        self._left = limit + MAX_HEAD
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._status = 0
        self._is_over = False

    def take(self, data: bytes) -> None:
        """These bytes have come."""
        self._left -= len(data)
        if self._is_over:
            self.is_over_and_clear = False
        elif self._left < 0:
            self._fail(TooLarge("it is too large"))
        else:
            try:
                self._parser.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
                # (Of what is raised below, it makes one of its own.)
                self.is_over_and_clear = False
                cause = error.__context__
                self._fail(
                    cause if isinstance(cause, LineFailed) else LineFailed("it isn't valid HTTP")
                )

    def end(self, error: Exception | None) -> None:
        """The connection is no more."""
        self.is_over_and_clear = False
        is_framed = "content-length" in self._headers or "transfer-encoding" in self._headers
        if self._status and not is_framed and error is None:
            self._succeed()
        else:
            self._fail(LineFailed(f"the connection ended{f': {error}' if error else ''}"))

    def let_go(self) -> None:
        """Nobody waits for it any more. (It and its parser know each other, and what is raised
        knows the frame of whoever waited.)"""
        if not self.answer.cancel():
            self.answer.exception()  # Whoever waited may have been cancelled at that moment.
        del self._parser, self.answer

    # What the parser calls

    def on_message_begin(self) -> None:
        if self._is_over:
            raise LineFailed("it is followed by another response")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            self._headers.clear()  # The answer comes later.
            return
        self._status = status
        length = self._headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self._limit:
            raise TooLarge("it is too large")

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > self._limit:
            raise TooLarge("it is too large")

    def on_message_complete(self) -> None:
        if self._status:
            self._is_over = True
            self.is_over_and_clear = self._parser.should_keep_alive()
            self._succeed()

    def _succeed(self) -> None:
        self._is_over = True
        if not self.answer.done():
            self.answer.set_result((self._status, self._headers, bytes(self._body)))

    def _fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


def _is_readable(transport: asyncio.Transport) -> bool:
    """Whether something has come, or the end, of which the event loop does not know yet."""
    plug = transport.get_extra_info("socket")
    if plug is None or plug.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(plug.fileno(), select.POLLIN)
    return bool(poll.poll(0))
