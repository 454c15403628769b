"""HTTP as it comes off the socket, with a bound on what may come before a body; and the polls that
wait there, each of them being no more than its connection."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tertulia.wire.errors import BadHttp, HeadTooLarge, Overloaded
from tertulia.wire.http import HEADERS_API, POLLS, failure
from tertulia.wire.load import Load
from tertulia.wire.outgoing import Outgoing
from tertulia.wire.polling import TARGET, Headers, Parked, Polls, head_of

MAX_HEAD = 64 * 1024
"""Bytes of a request line and its headers, before the server hangs up."""
HEAD_SECONDS = 30.0
"""How long they may take, and a connection may last on which nobody asks."""
_BODIES: Final = frozenset({b"content-length", b"transfer-encoding", b"expect", b"upgrade"})
"""Headers of requests that do not end with them."""
_NEVER_REFUSED: Final = frozenset({POLLS.encode(), b"/health", b"/ready"})
"""Those who wait, which costs next to nothing; and those who would take a node that has much to do
for one that is broken."""


class TurnedAway:
    """A request that is not answered as it should be. To uvicorn it looks like one in progress."""

    __slots__ = ("has_body", "keep_alive", "response_complete")

    def __init__(self, *, keep_alive: bool, has_body: bool) -> None:
        self.keep_alive = keep_alive
        self.has_body = has_body
        """Whether the answer has one."""
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
    _counts = False
    """Whether a request of this connection is in progress."""
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
        self._answered = 0.0

    # uvicorn narrows the type as well.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._outgoing = Outgoing(transport, self._let_go)
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
        if self._refuses():
            version, method = self.parser.get_http_version(), self.parser.get_method()
            away = TurnedAway(
                keep_alive=version != "1.0"
                and self.parser.should_keep_alive()
                and not self.expect_100_continue,
                has_body=method != b"HEAD",
            )
            self.cycle = away  # type: ignore[assignment]  # has what is looked at in one
            if self.expect_100_continue:
                self._turn_away(away)  # There is nothing else to wait for.
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not isinstance(self.cycle, TurnedAway):
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._head = 0
        if isinstance(self.cycle, TurnedAway):
            if not self.cycle.response_complete:
                self._turn_away(self.cycle)
        elif not isinstance(self.cycle, Parked):
            super().on_message_complete()
            if not self.pipeline:
                self._count(self.cycle)

    def on_response_complete(self) -> None:
        # In place of uvicorn's, which sets and cancels a timer for each request.
        self._outgoing.flush()
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            self._count(cycle)
            return
        self._answered = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._wait_for_next(self.timeout_keep_alive)

    def _unset_keepalive_if_required(self) -> None:
        """The timer goes on: when it is over, it is looked at what has been meanwhile."""

    def _wait_for_next(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if self._is_in_head or not self._is_first:
            return  # It is set anew with the answer.
        left = self._answered + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._wait_for_next(left)
        else:
            super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        self._let_go()
        if isinstance(self.cycle, Parked | TurnedAway):
            if isinstance(self.cycle, Parked) and not self.cycle.response_complete:
                self.cycle.leave()
            self.cycle = None  # type: ignore[assignment]  # as it is before the first request
        super().connection_lost(exc)
        self._outgoing.lost()

    # Load

    def _refuses(self) -> bool:
        return (
            self._load.is_too_high()
            and self._is_first
            # Or answers would be gathered for a client that reads none.
            and not self.flow.write_paused
            and self.url.partition(b"?")[0] not in _NEVER_REFUSED
        )

    def _turn_away(self, away: TurnedAway) -> None:
        self._load.refused()
        head, body = self._told(Overloaded())
        self._reply(away, head, body if away.has_body else b"")

    def _count(self, cycle: RequestResponseCycle) -> None:
        """The request, which is the connection's next one to be answered, is in progress: from
        when all of it is there until its answer begins. The rest is its client's time."""
        if not (
            self._counts
            or cycle.more_body
            or cycle.response_started
            or cycle.scope["path"] == POLLS
        ):
            self._counts = True
            self._load.begin()

    def _let_go(self) -> None:
        if self._counts:
            self._counts = False
            self._load.end()

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
        head, body = self._told(error)
        self.transport.write(b"%bconnection: close\r\n\r\n%b" % (head, body))
        self.transport.close()

    def _told(self, error: Exception) -> tuple[bytes, bytes]:
        """The error's head, without the empty line at its end, and its body."""
        response = failure(error)
        headers = [*self.headers_of_all, *response.raw_headers, *HEADERS_API]
        return head_of(response.status_code, headers), bytes(response.body)
