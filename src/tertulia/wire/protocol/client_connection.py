"""The lifecycle of an HTTP connection: its admission, its timer, what the server waits for, and its
end."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tertulia.wire.http.errors import BadHttp, Overloaded, TooManyConnections
from tertulia.wire.http.loop_turns import ON_WAIT
from tertulia.wire.http.rate_limits import GONE
from tertulia.wire.http.request_head import POLLS
from tertulia.wire.http.responses import HEADERS_API, PART_BYTES, failure
from tertulia.wire.protocol.addresses import unmapped
from tertulia.wire.protocol.connections import Admission, Connections, TlsHandshake, Wait
from tertulia.wire.protocol.exchange import AsgiExchange, Outgoing
from tertulia.wire.protocol.load import Load
from tertulia.wire.protocol.polling import WaitingPoll, head_of


class RejectedRequest:
    """A request that is refused with `Overloaded`. To uvicorn, it looks like one in progress."""

    __slots__ = ("has_body", "keep_alive", "response_complete")

    def __init__(self, *, keep_alive: bool, has_body: bool) -> None:
        self.keep_alive = keep_alive
        self.has_body = has_body
        """Whether the response has a body."""
        self.response_complete = False


Exchange = AsgiExchange | WaitingPoll | RejectedRequest
"""A request and its response."""


class ReadingFlow(FlowControl):
    """Flow control that resumes reading only if no request waits for its turn, or to read ahead."""

    def __init__(self, transport: asyncio.Transport, pipeline: deque[Any]) -> None:
        super().__init__(transport)
        self._pipeline = pipeline
        self._has_ended = False

    def pause_reading(self) -> None:
        if not self._transport.is_closing():
            super().pause_reading()

    def resume_reading(self) -> None:
        # Called for each request, and reading is rarely paused.
        if self.read_paused and not (
            self._pipeline or self._has_ended or self._transport.is_closing()
        ):
            super().resume_reading()

    def read_ahead(self) -> None:
        """Resume reading although requests wait for their turns."""
        if self.read_paused and not (self._has_ended or self._transport.is_closing()):
            super().resume_reading()

    def end_reading(self) -> None:
        """Stop reading permanently."""
        self._has_ended = True
        self.pause_reading()


class ClientConnection(HttpToolsProtocol):
    """uvicorn's protocol, with limits on what a client may leave on a connection."""

    turn = 0
    received = 0
    _is_in_head = False
    _is_in_body = False
    _is_counted = False
    """Whether the load counts a request of this connection."""
    _current: Exchange | None = None
    """The request that is being answered, or was last."""
    handshake: TlsHandshake | None = None
    """The TLS handshake that preceded this protocol, if any."""
    _is_reserved = False
    _ahead = b""
    """Data that was read while requests waited for their turns (`READ_AHEAD`)."""
    _has_ended = False
    """Whether reading has ended."""
    _refusal: Exception = BadHttp()
    """The reason why reading ended. It's sent after all earlier requests are answered."""
    _release: Callable[[], None] | None = None
    """Called when the client has taken the written data."""

    def __init__(
        self,
        load: Load,
        connections: Connections,
        *arguments: Any,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._load = load
        self._connections = connections

    # uvicorn narrows the type too.
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
        self.flow = ReadingFlow(self.transport, self.pipeline)
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
        # The connection was already counted, under this address.
        self.handshake.is_over = True
        self.client = self.handshake.client
        return self._connections.replace(self.handshake, self)

    @property
    def _client_host(self) -> str | None:
        return self.client[0] if self.client else None

    # The timer of idle connections

    def _unset_keepalive_if_required(self) -> None:
        """Keep the timer: when it fires, it is restarted if there were requests in the meantime."""

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
        # Cancel the current request. Requests behind it never begin.
        current, self._current = self._current, None
        if isinstance(current, WaitingPoll):
            if not current.response_complete:
                current.cancel()
        elif isinstance(current, RequestResponseCycle):
            current.disconnected = not current.response_complete
            current.scope["state"][GONE] = True
            current.message_event.set()
        for cycle, _ in self.pipeline:
            cycle.on_response = nothing
        self.pipeline.clear()
        self._ahead = b""
        self.cycle = None  # type: ignore[assignment]  # as it is before the first request
        self.outgoing.lost()
        super().connection_lost(exc)

    # What the server waits for

    def _watch(self) -> None:
        self._connections.watch(self)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._release_answer()

    def on_taken(self, release: Callable[[], None]) -> None:
        self._release_answer()
        self._release = release
        self.loop.call_soon(self._release_if_taken)

    def _release_if_taken(self) -> None:
        # Beyond this size the transport pauses writing, and calls `resume_writing` later.
        if self.unsent <= PART_BYTES:
            self._release_answer()

    def _release_answer(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()

    def eof_received(self) -> None:
        # The transport closes after everything was written and taken.
        self._watch()

    @property
    def waits_for(self) -> Wait:
        is_closing = self.transport.is_closing()
        if (is_closing or self.flow.write_paused) and self.unsent:
            return Wait.ANSWER
        if is_closing:
            # TLS waits for the peer to confirm the close.
            return Wait.ANSWER if self.handshake is not None else Wait.NOTHING
        if self.flow.read_paused or self.pipeline:
            return Wait.SERVER
        if self._is_in_body:
            return Wait.BODY
        return Wait.HEAD if self._is_in_head or not self.turn else Wait.NOTHING

    @property
    def sent(self) -> int:
        return self.outgoing.written - self.unsent - self.outgoing.in_kernel

    @property
    def unsent(self) -> int:
        return self.transport.get_write_buffer_size()

    def give_up(self) -> None:
        self.transport.abort()

    # Requests

    @property
    def _is_first(self) -> bool:
        """Whether all earlier requests are answered."""
        return self.cycle is None or self.cycle.response_complete

    def _count(self, cycle: RequestResponseCycle) -> None:
        """Count the connection's next request as in progress, from when it was received completely
        until its response begins or it waits for its turn. The rest is its client's time."""
        if not (
            self._is_counted
            or cycle.more_body
            or cycle.response_started
            or cycle.scope["path"] == POLLS
        ):
            self._is_counted = True
            self._load.begin()
            cycle.scope["state"][ON_WAIT] = self._on_response_begins

    def _on_response_begins(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._load.end()

    @property
    def is_leaving(self) -> bool:
        return self._connections.is_leaving

    def _hang_up(self, error: Exception) -> None:
        self._has_ended = True
        head, body = self._encoded_error(error)
        self.transport.write(b"%bconnection: close\r\n\r\n%b" % (head, body))
        self.transport.close()

    def _encoded_error(self, error: Exception) -> tuple[bytes, bytes]:
        """Return the error's head, without the final empty line, and its body."""
        response = failure(error)
        headers = [*self.server_state.default_headers, *response.raw_headers, *HEADERS_API]
        return head_of(response.status_code, headers), bytes(response.body)


def nothing() -> None:
    """Do nothing."""
