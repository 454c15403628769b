"""HTTP as it comes off the socket, with a bound on what may come before a body; and the polls that
wait there, each of them being no more than its connection."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tertulia.wire.errors import BadHttp, HeadTooLarge, Overloaded
from tertulia.wire.http import HEADERS_API, failure
from tertulia.wire.load import Load
from tertulia.wire.outgoing import Outgoing
from tertulia.wire.polling import TARGET, Headers, Parked, Polls, head_of

MAX_HEAD = 64 * 1024
"""Bytes of a request line and its headers, before the server hangs up."""
HEAD_SECONDS = 30.0
"""How long they may take, and a connection may last on which nobody asks."""
_BODIES: Final = frozenset({b"content-length", b"transfer-encoding", b"expect", b"upgrade"})
"""Headers of requests that do not end with them."""


class TurnedAway:
    """A request that is not answered as it should be. To uvicorn it looks like one in progress."""

    __slots__ = ("keep_alive", "response_complete")

    def __init__(self, *, keep_alive: bool) -> None:
        self.keep_alive = keep_alive
        self.response_complete = False


class TertuliaHttp(HttpToolsProtocol):
    """uvicorn's protocol; it hangs up on a head without an end, which would be gathered in memory
    for ever, tells its own errors as all others are told, lets polls wait without a task, and
    turns away what is too much.

    `polls` says who takes them; None where nobody does, and all are the application's. At most
    `most` connections are open at once.
    """

    _head = 0
    _is_in_head = False
    _patience: asyncio.TimerHandle | None = None
    """Ends with a head that does not come to its end, or where none comes."""

    def __init__(
        self,
        polls: Callable[[], Polls | None],
        load: Load,
        most: int,
        *arguments: Any,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._polls = polls
        self._load = load
        self._most = most
        self._in_progress = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._outgoing = Outgoing(transport)
        super().connection_made(cast(asyncio.Transport, self._outgoing))
        self._patience = self.loop.call_later(HEAD_SECONDS, self._lose_patience)
        if len(self.connections) > self._most:
            self._load.refused()
            self._hang_up(Overloaded())

    def data_received(self, data: bytes) -> None:
        self._head += len(data)
        super().data_received(data)
        if not self._is_in_head and self._has_asked:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None
        elif self._is_in_head and self._head > MAX_HEAD and not self.transport.is_closing():
            self._hang_up(HeadTooLarge(MAX_HEAD))
        elif self._patience is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self._lose_patience)

    @property
    def _has_asked(self) -> bool:
        """Whether a request is in progress, or was answered just now: empty lines are none."""
        in_progress = self.cycle is not None and not self.cycle.response_complete
        return in_progress or self.timeout_keep_alive_task is not None

    def _lose_patience(self) -> None:
        if self.flow.read_paused:  # It is not the client who is slow.
            self._patience = self.loop.call_later(HEAD_SECONDS, self._lose_patience)
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if self._parks():
            return
        if self._load.is_too_high and self._is_first:
            away = TurnedAway(keep_alive=self.parser.should_keep_alive())
            self.cycle = away  # type: ignore[assignment]  # has what is looked at in one
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not isinstance(self.cycle, TurnedAway):
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._head = 0
        if isinstance(self.cycle, TurnedAway):
            self._load.refused()
            self._reply(self.cycle, *_told(failure(Overloaded())))
        elif not isinstance(self.cycle, Parked):
            if not self.cycle.response_complete:
                self._load.begin()
                self._in_progress += 1
            super().on_message_complete()

    def on_response_complete(self) -> None:
        self._outgoing.flush()
        if self._in_progress:
            self._load.end()
            self._in_progress -= 1
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._load.end(self._in_progress)
        self._in_progress = 0
        if isinstance(self.cycle, Parked | TurnedAway):
            if isinstance(self.cycle, Parked) and not self.cycle.response_complete:
                self.cycle.leave()
            self.cycle = None  # type: ignore[assignment]  # as it is before the first request
        super().connection_lost(exc)

    @property
    def _is_first(self) -> bool:
        """Whether no request before this one is still to be answered."""
        return self.cycle is None or self.cycle.response_complete

    # Polls

    def _parks(self) -> bool:
        """Let the request wait here, if it is a poll like others."""
        if not self.url.startswith(TARGET) or (polls := self._polls()) is None:
            return False
        if (
            not self._is_first
            or self.flow.write_paused
            or self.parser.get_method() != b"GET"
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
            or any(name in _BODIES for name, _ in self.headers)
        ):
            return False
        parked = polls.take(self, self.headers, self.url[len(TARGET) :])
        if parked is None:
            return False
        self.cycle = parked  # type: ignore[assignment]  # has what is looked at in one
        # Nothing more is to be known of the request, and many wait.
        self.scope = None  # type: ignore[assignment]
        self.headers = []
        self.url = b""
        return True

    @property
    def headers_of_all(self) -> Headers:
        """Those that every answer of the server has."""
        return self.server_state.default_headers

    def reply(self, parked: Parked, head: bytes, body: bytes) -> None:
        """Send a poll's answer. See `tertulia.wire.polling.Connection`."""
        self._reply(parked, head, body)

    def _reply(self, to: Parked | TurnedAway, head: bytes, body: bytes) -> None:
        to.response_complete = True
        if self.transport.is_closing():
            return
        if to.keep_alive:
            self.transport.write(b"%b\r\n%b" % (head, body))
        else:
            self.transport.write(b"%bconnection: close\r\n\r\n%b" % (head, body))
            self.transport.close()
        self.on_response_complete()

    # What is no HTTP

    def send_400_response(self, msg: str) -> None:
        self._hang_up(BadHttp())

    def _hang_up(self, error: Exception) -> None:
        head, body = _told(failure(error))
        self.transport.write(b"%bconnection: close\r\n\r\n%b" % (head, body))
        self.transport.close()


def _told(response: Response) -> tuple[bytes, bytes]:
    """The response's head, without the empty line at its end, and its body."""
    head = head_of(response.status_code, [*response.raw_headers, *HEADERS_API])
    return head, bytes(response.body)
