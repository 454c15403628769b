"""uvicorn's HTTP/1.1 protocol with limits on what a client may leave on a connection, and with
polls that wait without a task."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tertulia.model.errors import Refused, Unavailable
from tertulia.wire.http.errors import (
    BadHttp,
    HeadTooLarge,
    Overloaded,
    TooManyAtOnce,
)
from tertulia.wire.http.peers import PEER
from tertulia.wire.http.request_head import METRICS, POLLS
from tertulia.wire.protocol.client_connection import (
    ClientConnection,
    ReadingFlow,
    RejectedRequest,
    nothing,
)
from tertulia.wire.protocol.exchange import AsgiExchange
from tertulia.wire.protocol.polling import TARGET, Polls, RepeatedPoll, WaitingPoll
from tertulia.wire.protocol.request_head import MAX_HEAD, RequestHead

MAX_PIPELINED: Final = 32
"""The most requests that wait on a connection behind the current one."""
READ_AHEAD: Final = 64 * 1024
"""Bytes that are read beyond these while a poll waits. Without reading, a closed connection isn't
noticed."""
_HEALTH: Final = frozenset({b"/health", b"/ready"})
_NEVER_REFUSED: Final = _HEALTH | {POLLS.encode(), METRICS.encode()}
"""Requests that are never refused because of load: polls, which take almost no work; health checks,
which would report a busy node as broken; and metrics, which show the load."""


class TertuliaHttp(ClientConnection):
    """uvicorn's protocol, which in addition

    - closes connections that would fill memory without end,
    - refuses requests that two servers could interpret differently,
    - sends its errors in the format of the API,
    - starts pipelined requests in `Turns`, and answers only one while it parses received data,
    - lets polls wait without a task (`polls`),
    - refuses requests under too high a `load`, and connections beyond their limits.
    """

    _unused = 0
    """Bytes received since the parser last consumed any."""
    usual: RepeatedPoll | None = None
    _has_answered = False
    """Whether a request in the received data was already answered."""

    def __init__(self, polls: Callable[[], Polls | None], *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._polls = polls
        self._head = RequestHead()

    def data_received(self, data: bytes) -> None:
        if self._has_ended or self.transport.is_closing():
            return
        if self.pipeline:
            self._ahead += data
            self._pause_or_read_ahead()
            return
        is_idle = self._is_first and not (self._is_in_head or self._is_in_body)
        if is_idle and self.usual is not None and self._polls_as_usual(self.usual, data):
            return
        before, self.usual = self.turn, None
        self._unused += len(data)
        self._has_answered = False
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            # The parser wraps exceptions of the callbacks below.
            refusal = error.__context__
            if not isinstance(refusal, Refused | Unavailable):
                refusal = BadHttp()
            # Drop the traceback, which would keep the callback's frame alive.
            self._end(refusal.with_traceback(None))
            return
        if self._is_in_head or self._is_in_body:
            if self._unused > MAX_HEAD and not self.transport.is_closing():
                self._end(HeadTooLarge(MAX_HEAD))
            else:
                self._watch()
        if self.usual is not None and not (
            is_idle
            and self.turn == before + 1
            and not (self._is_in_head or self._is_in_body)
            and self.usual.know(data)
        ):
            self.usual = None

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                # Treat it as a plain request. HTTP continues unchanged.
                data = data[upgrade.args[0] :]
            else:
                return

    # Reading a request

    def on_message_begin(self) -> None:
        if self.transport.is_closing():
            raise BadHttp  # Nothing more is accepted.
        if len(self.pipeline) >= MAX_PIPELINED:
            raise TooManyAtOnce(MAX_PIPELINED)
        self.turn += 1
        self._is_in_head = True
        self._head.begin()
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_url(self, url: bytes) -> None:
        self._head.add_target(url)
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_in_head:
            return  # A trailer, after the body.
        name = name.lower()
        self._head.add_header(name, value, self.parser)
        if name == b"expect":
            self.expect_100_continue = value.lower() == b"100-continue"
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._unused = 0
        version = self.parser.get_http_version()
        self._head.require_clear(self.url, self.parser)
        if self._is_reserved:
            self._answer_reserved(version)
        elif self._starts_poll(version):
            pass
        elif self._must_reject():
            self._begin_rejection(version)
        else:
            self._begin_exchange(version)
        self._is_in_body = True

    def _begin_exchange(self, version: str) -> None:
        """Start the application when all earlier requests are answered, as uvicorn does, but
        without the parts that this server doesn't use."""
        address = httptools.parse_url(self.url)
        path = address.path.decode("ascii")
        scope: Any = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self.headers,
            "state": {**self.app_state, PEER: self.client},
            "method": self.parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": address.path,
            "query_string": address.query or b"",
        }
        is_first = self._is_first
        cycle = self.cycle = AsgiExchange(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if is_first:
            self._start_asgi_task(cycle, self.app)
        else:
            self.pipeline.appendleft((cycle, self.app))
            if isinstance(self._current, WaitingPoll):
                self._current.is_followed = True
            self._pause_or_read_ahead()

    def _pause_or_read_ahead(self) -> None:
        """While requests wait for their turns, pause reading, or read ahead behind a poll."""
        current = self._current
        is_poll = isinstance(current, WaitingPoll) or (
            isinstance(current, AsgiExchange) and current.scope["path"] == POLLS
        )
        if is_poll and len(self._ahead) < READ_AHEAD:
            cast(ReadingFlow, self.flow).read_ahead()
        else:
            self.flow.pause_reading()

    def _begin_rejection(self, version: str, *, keep_alive: bool = True) -> None:
        rejected = RejectedRequest(
            keep_alive=keep_alive
            and not self._connections.is_leaving
            and version != "1.0"
            and self.parser.should_keep_alive()
            and not self.expect_100_continue,
            has_body=self.parser.get_method() != b"HEAD",
        )
        self.cycle = rejected  # type: ignore[assignment]  # has what uvicorn looks at
        self._current = rejected
        if self.expect_100_continue:
            self._reject(rejected)  # No other request is waiting.

    def _answer_reserved(self, version: str) -> None:
        if self.turn > 1:
            raise Overloaded  # There is room for one request.
        if self.url.partition(b"?")[0] in _HEALTH:
            self._begin_exchange(version)
            self.cycle.keep_alive = False
        else:
            self._begin_rejection(version, keep_alive=False)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._current = cast(AsgiExchange, cycle)
        if self._connections.is_leaving:
            self.end_with_answer()
        super()._start_asgi_task(cycle, app)

    def end_with_answer(self) -> None:
        """Announce with the current response, if any, that it's the last one. (With pipelined
        requests, with the last of them.)"""
        current = self._current
        has_begun = isinstance(current, RequestResponseCycle) and current.response_started
        if current is not None and not has_begun and not self.pipeline:
            current.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        self.received += len(body)
        if not isinstance(self.cycle, RejectedRequest):
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._unused = 0
        self._is_in_body = False
        if isinstance(self.cycle, RejectedRequest):
            if not self.cycle.response_complete:
                self._reject(self.cycle)
        elif not isinstance(self.cycle, WaitingPoll):
            super().on_message_complete()
            if not self.pipeline:
                self._count(self.cycle)

    def on_response_complete(self) -> None:
        # Replaces uvicorn's method, which starts and cancels a timer for each request.
        self.outgoing.flush()
        if self.transport.is_closing():
            return
        if self.pipeline:
            self._connections.turns.want(self)
            return
        if self._has_ended:
            self._hang_up(self._refusal)
            return
        self.flow.resume_reading()
        if self.timeout_keep_alive_task is None:
            self._wait_for_next(self.timeout_keep_alive)

    def begin_next(self) -> bool:
        """Start the oldest waiting request. Return False if none waits."""
        if not self.pipeline or self.transport.is_closing():
            return False
        cycle, app = self.pipeline.pop()
        self._start_asgi_task(cycle, app)
        self._count(cycle)
        if not self.pipeline:
            self.flow.resume_reading()
            if self._ahead:
                ahead, self._ahead = self._ahead, b""
                self.data_received(ahead)
        else:
            self._pause_or_read_ahead()
        return True

    # Load

    def _must_reject(self) -> bool:
        return (
            self._load.is_too_high()
            and self._is_first
            # Otherwise responses would pile up for a client that doesn't read.
            and not self.flow.write_paused
            and self.url.partition(b"?")[0] not in _NEVER_REFUSED
        )

    def _reject(self, rejected: RejectedRequest) -> None:
        self._load.refused()
        head, body = self._encoded_error(Overloaded())
        self.reply(rejected, head, body if rejected.has_body else b"")

    # Polls

    def _starts_poll(self, version: str) -> bool:
        """Let the request wait without a task if it's a plain poll. Return whether it is."""
        if not self.url.startswith(TARGET) or (polls := self._polls()) is None:
            return False
        if (
            not self._is_first
            or self._has_answered
            or self.flow.write_paused
            or self.parser.get_method() != b"GET"
            or version != "1.1"
            or not self.parser.should_keep_alive()
        ):
            return False
        poll = polls.start(self, self.headers, self.url[len(TARGET) :])
        if poll is None:
            return False
        self._has_answered |= poll.response_complete
        self.cycle = poll  # type: ignore[assignment]  # has what uvicorn looks at
        self._current = poll
        # Free the memory, because many polls wait and this isn't needed again.
        self.headers = []
        self.url = b""
        self._head.begin()
        if self.timeout_keep_alive_task is None:
            self._wait_for_next(self.timeout_keep_alive)
        return True

    def _polls_as_usual(self, usual: RepeatedPoll, data: bytes) -> bool:
        """Let the request wait if the received data is exactly the usual poll. The parser, which is
        between two requests, doesn't have to see it."""
        last = usual.last_in(data)
        if last is None or self.flow.write_paused or (polls := self._polls()) is None:
            return False
        poll = polls.start_usual(self, usual, last)
        if poll is None:
            return False
        self.turn += 1
        self.cycle = poll  # type: ignore[assignment]  # has what uvicorn looks at
        self._current = poll
        return True

    def reply(self, to: WaitingPoll | RejectedRequest, head: bytes, *body: bytes) -> None:
        to.response_complete = self._has_answered = True
        if self.transport.is_closing():
            return
        if to.keep_alive:
            self.transport.write(b"".join((head, b"\r\n", *body)))
        else:
            self.transport.write(b"".join((head, b"connection: close\r\n\r\n", *body)))
            self.transport.close()
        self.on_response_complete()

    # Errors of the protocol

    def send_400_response(self, msg: str) -> None:
        self._end(BadHttp())

    def _end(self, refusal: Exception) -> None:
        """Stop reading. Earlier requests are answered, then the refusal is sent."""
        self._has_ended = True
        self._refusal = refusal
        cast(ReadingFlow, self.flow).end_reading()
        broken = self.cycle if self._is_in_body else None
        if broken is not None and broken is not self._current:
            self.pipeline.popleft()  # Its end never comes.
            broken.on_response = nothing
        current = self._current
        if self.pipeline and (current is None or current.response_complete):
            return  # The next one waits for its turn.
        if current is None or current.response_complete or isinstance(current, RejectedRequest):
            self._hang_up(refusal)
        elif isinstance(current, WaitingPoll):
            self.transport.close()
        elif current is broken:
            if current.response_started:
                self.transport.close()
            else:
                self._hang_up(refusal)
