"""HTTP/1.1 as uvicorn speaks it, with bounds on whatever a client may leave on a connection, and
polls that wait on theirs without a task."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tertulia.model.errors import Refused, Unavailable
from tertulia.wire.http.errors import (
    BadHttp,
    HeadTooLarge,
    Overloaded,
    TooManyAtOnce,
    TooManyConnections,
)
from tertulia.wire.http.node import METRICS
from tertulia.wire.http.rate_limits import GONE
from tertulia.wire.http.responses import HEADERS_API, PART_BYTES, failure
from tertulia.wire.http.routing import POLLS
from tertulia.wire.protocol.addresses import unmapped
from tertulia.wire.protocol.asgi_exchange import AsgiExchange
from tertulia.wire.protocol.connections import Admission, Connections, Handshake, Wait
from tertulia.wire.protocol.load import Load
from tertulia.wire.protocol.outgoing import Outgoing
from tertulia.wire.protocol.polling import TARGET, Polls, UsualPoll, WaitingPoll, head_of
from tertulia.wire.protocol.request_head import MAX_HEAD, RequestHead

MAX_PIPELINED: Final = 32
"""Requests that may wait on a connection behind the one that is being answered."""
READ_AHEAD: Final = 64 * 1024
"""Bytes that are read beyond these, and kept as they came, while a poll waits before them: who does
not read does not notice that the client has gone."""
_HEALTH: Final = frozenset({b"/health", b"/ready"})
_NEVER_REFUSED: Final = _HEALTH | {POLLS.encode(), METRICS.encode()}
"""Polls, which cost next to nothing; and health checks, to which a busy node would look broken, and
what says how busy it is."""


class RejectedRequest:
    """A request that is answered with `Overloaded`. To uvicorn it looks like one in progress."""

    __slots__ = ("has_body", "keep_alive", "response_complete")

    def __init__(self, *, keep_alive: bool, has_body: bool) -> None:
        self.keep_alive = keep_alive
        self.has_body = has_body
        """Whether the answer has one."""
        self.response_complete = False


Exchange = AsgiExchange | WaitingPoll | RejectedRequest
"""A request and its answer."""


class _Flow(FlowControl):
    """Resumes reading only when no request that was read waits for its turn, or to read ahead."""

    def __init__(self, transport: asyncio.Transport, pipeline: deque[Any]) -> None:
        super().__init__(transport)
        self._pipeline = pipeline
        self._has_ended = False

    def pause_reading(self) -> None:
        if not self._transport.is_closing():
            super().pause_reading()

    def resume_reading(self) -> None:
        # It is asked for with each request, and reading is seldom paused.
        if self.read_paused and not (
            self._pipeline or self._has_ended or self._transport.is_closing()
        ):
            super().resume_reading()

    def read_ahead(self) -> None:
        """Read on although requests wait for their turns."""
        if self.read_paused and not (self._has_ended or self._transport.is_closing()):
            super().resume_reading()

    def end_reading(self) -> None:
        """Read nothing any more."""
        self._has_ended = True
        self.pause_reading()


class TertuliaHttp(HttpToolsProtocol):
    """uvicorn's protocol, which in addition

    - closes connections on which something without an end would gather in memory,
    - refuses requests that two servers could read differently,
    - says its own errors as the application says its,
    - takes requests that wait behind each other by `Turns`, and answers no more than one while it
      reads what came,
    - lets polls wait without a task, where `polls` returns what starts them,
    - rejects requests while the `load` is too high, and connections beyond their limits.
    """

    turn = 0
    received = 0
    _is_in_head = False
    _is_in_body = False
    _unused = 0
    """Bytes that came since the parser last made something of some."""
    _is_counted = False
    """Whether the load counts a request of this connection."""
    usual: UsualPoll | None = None
    _current: Exchange | None = None
    """The request that is being answered, or was last."""
    handshake: Handshake | None = None
    """What agreed upon TLS before, and stood for the connection; None where nobody did."""
    _is_reserved = False
    _ahead = b""
    """What was read while requests waited for their turns (`READ_AHEAD`)."""
    _has_ended = False
    """Whether nothing more is taken in."""
    _has_answered = False
    """Whether a request is answered already of what is being read."""
    _refusal: Exception = BadHttp()
    """Why it has ended: sent when all requests before are answered."""
    _release: Callable[[], None] | None = None
    """Called when the client has taken what was written."""

    def __init__(
        self,
        polls: Callable[[], Polls | None],
        load: Load,
        connections: Connections,
        *arguments: Any,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._polls = polls
        self._load = load
        self._connections = connections
        self._head = RequestHead()

    # uvicorn narrows the type as well.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.outgoing = Outgoing(
            transport,
            self._on_response_begins,
            self._watch,
            self.loop.time,
            is_secure=self.handshake is not None,
        )
        super().connection_made(cast(asyncio.Transport, self.outgoing))
        if self.client is not None:
            self.client = unmapped(self.client[0]), self.client[1]
        self.flow = _Flow(self.transport, self.pipeline)
        match self._admitted():
            case Admission.WELCOME:
                self._watch()
            case Admission.RESERVED:
                self._is_reserved = True
                self._watch()
            case Admission.TOO_MANY:
                self._hang_up(TooManyConnections())
            case Admission.FULL:
                self._load.refused()
                self._hang_up(Overloaded())

    def _admitted(self) -> Admission:
        if self.handshake is None:
            return self._connections.admit(self, self._client_host)
        # It is counted already, by this address.
        self.handshake.is_over = True
        self.client = self.handshake.client
        return self._connections.replace(self.handshake, self)

    @property
    def _client_host(self) -> str | None:
        return self.client[0] if self.client else None

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
            # Of an exception in one of the callbacks below, the parser makes one of its own.
            refusal = error.__context__
            if not isinstance(refusal, Refused | Unavailable):
                refusal = BadHttp()
            # It is kept, and must not keep the callback's frame.
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
                # It is answered as it is, and what comes behind is HTTP as before.
                data = data[upgrade.args[0] :]
            else:
                return

    # Reading a request

    def on_message_begin(self) -> None:
        if self.transport.is_closing():
            raise BadHttp  # Nothing more is taken in.
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
            return  # A trailer, behind the body.
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
        """Let the application answer, when all before is answered. As uvicorn does it, without
        what this server has no use for."""
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
            "state": self.app_state.copy(),
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
        """Requests wait for their turns: read no further, or ahead where a poll is before them."""
        current = self._current
        is_poll = isinstance(current, WaitingPoll) or (
            isinstance(current, AsgiExchange) and current.scope["path"] == POLLS
        )
        if is_poll and len(self._ahead) < READ_AHEAD:
            cast(_Flow, self.flow).read_ahead()
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
            self._reject(rejected)  # There is nothing else to wait for.

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
        """Say with the answer to the request on this connection, if there is one, that it is the
        last. (Where more have come, with the last of these.)"""
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
        # In place of uvicorn's, which sets and cancels a timer for each request.
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
        """Begin with the request that waits for longest. False where there is none."""
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

    def _unset_keepalive_if_required(self) -> None:
        """The timer goes on: when it ends, it is set anew if there were requests meanwhile."""

    def _wait_for_next(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if self._is_in_head or not self._is_first:
            self._wait_for_next(self.timeout_keep_alive)
            return
        left = self.outgoing.answered_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._wait_for_next(left)
        else:
            super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        self._on_response_begins()
        self._release_answer()
        self._connections.lost(self, self._client_host)
        # What is being answered is cancelled; the requests behind it are never begun.
        current, self._current = self._current, None
        if isinstance(current, WaitingPoll):
            if not current.response_complete:
                current.cancel()
        elif isinstance(current, RequestResponseCycle):
            current.disconnected = not current.response_complete
            current.scope["state"][GONE] = True
            current.message_event.set()
        for cycle, _ in self.pipeline:
            cycle.on_response = _nothing
        self.pipeline.clear()
        self._ahead = b""
        self.cycle = None  # type: ignore[assignment]  # as it is before the first request
        self.outgoing.lost()
        super().connection_lost(exc)

    # What the connection keeps the server waiting for

    def _watch(self) -> None:
        self._connections.watch(self)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._release_answer()

    def on_taken(self, release: Callable[[], None]) -> None:
        """See `tertulia.wire.protocol.polling.Connection`."""
        self._release_answer()
        self._release = release
        self.loop.call_soon(self._release_if_taken)

    def _release_if_taken(self) -> None:
        # With more than this the transport pauses writing, and resumes it later.
        if self.unsent <= PART_BYTES:
            self._release_answer()

    def _release_answer(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()

    def eof_received(self) -> None:
        # The transport closes when all is taken that was written.
        self._watch()

    @property
    def waits_for(self) -> Wait:
        """See `tertulia.wire.protocol.connections`."""
        is_closing = self.transport.is_closing()
        if (is_closing or self.flow.write_paused) and self.unsent:
            return Wait.ANSWER
        if is_closing:
            # TLS says goodbye, and waits for the other end to say so too.
            return Wait.ANSWER if self.handshake is not None else Wait.NOTHING
        if self.flow.read_paused or self.pipeline:
            return Wait.SERVER
        if self._is_in_body:
            return Wait.BODY
        return Wait.HEAD if self._is_in_head or not self.turn else Wait.NOTHING

    @property
    def sent(self) -> int:
        """Bytes that the client has taken, as far as is known."""
        return self.outgoing.written - self.unsent - self.outgoing.in_kernel

    @property
    def unsent(self) -> int:
        """Bytes that wait for the client."""
        return self.transport.get_write_buffer_size()

    def give_up(self) -> None:
        """Close, whatever is still to be sent."""
        self.transport.abort()

    # Load

    def _must_reject(self) -> bool:
        return (
            self._load.is_too_high()
            and self._is_first
            # Else answers would gather for a client that reads none.
            and not self.flow.write_paused
            and self.url.partition(b"?")[0] not in _NEVER_REFUSED
        )

    def _reject(self, rejected: RejectedRequest) -> None:
        self._load.refused()
        head, body = self._encoded_error(Overloaded())
        self.reply(rejected, head, body if rejected.has_body else b"")

    def _count(self, cycle: RequestResponseCycle) -> None:
        """Count the connection's next request as in progress: from when all of it is there until
        its answer begins. The rest is its client's time."""
        if not (
            self._is_counted
            or cycle.more_body
            or cycle.response_started
            or cycle.scope["path"] == POLLS
        ):
            self._is_counted = True
            self._load.begin()

    def _on_response_begins(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._load.end()

    @property
    def _is_first(self) -> bool:
        """Whether no request before this one is still to be answered."""
        return self.cycle is None or self.cycle.response_complete

    # Polls

    def _starts_poll(self, version: str) -> bool:
        """Let the request wait here, if it is a plain poll."""
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
        # Many polls wait, and nothing more is needed of their requests.
        self.headers = []
        self.url = b""
        self._head.begin()
        if self.timeout_keep_alive_task is None:
            self._wait_for_next(self.timeout_keep_alive)
        return True

    def _polls_as_usual(self, usual: UsualPoll, data: bytes) -> bool:
        """Let the request wait here, if it is all that came, and the usual one: the parser, which
        stands between two requests, need not see it."""
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

    @property
    def is_leaving(self) -> bool:
        """Whether the connection ends with the next answer."""
        return self._connections.is_leaving

    def reply(self, to: WaitingPoll | RejectedRequest, head: bytes, *body: bytes) -> None:
        """Send the answer. See `tertulia.wire.protocol.polling.Connection`."""
        to.response_complete = self._has_answered = True
        if self.transport.is_closing():
            return
        if to.keep_alive:
            self.transport.write(b"".join((head, b"\r\n", *body)))
        else:
            self.transport.write(b"".join((head, b"connection: close\r\n\r\n", *body)))
            self.transport.close()
        self.on_response_complete()

    # What is no HTTP

    def send_400_response(self, msg: str) -> None:
        self._end(BadHttp())

    def _end(self, refusal: Exception) -> None:
        """Take in nothing more. What came before is answered, and then the refusal is sent."""
        self._has_ended = True
        self._refusal = refusal
        cast(_Flow, self.flow).end_reading()
        broken = self.cycle if self._is_in_body else None
        if broken is not None and broken is not self._current:
            self.pipeline.popleft()  # It never comes to its end.
            broken.on_response = _nothing
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

    def _hang_up(self, error: Exception) -> None:
        self._has_ended = True
        head, body = self._encoded_error(error)
        self.transport.write(b"%bconnection: close\r\n\r\n%b" % (head, body))
        self.transport.close()

    def _encoded_error(self, error: Exception) -> tuple[bytes, bytes]:
        """The error's head, without the empty line at its end, and its body."""
        response = failure(error)
        headers = [*self.server_state.default_headers, *response.raw_headers, *HEADERS_API]
        return head_of(response.status_code, headers), bytes(response.body)


def _nothing() -> None:
    """The answer is not waited for any more."""
