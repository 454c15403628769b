"""GET /events without a task, on connections where the request waits below ASGI.

Only plain requests are handled here. Unusual requests and all refusals are left to the endpoint
(`tertulia.wire.api.register`), whose responses are the same.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Final, Protocol

from starlette.requests import Request

from tertulia.domain.accounts import sessions
from tertulia.model.errors import Refused
from tertulia.model.sessions import Session
from tertulia.model.users import BotKind, User
from tertulia.wire.http import responses
from tertulia.wire.http.authentication import (
    authenticated,
    by_header,
    owner_of_session,
    session_in,
    session_with,
)
from tertulia.wire.http.cookies import is_from_browser, without_basic_challenge
from tertulia.wire.http.errors import TooMuchUnread
from tertulia.wire.http.node import HttpNode, log_request, logs_polls
from tertulia.wire.http.request_head import POLLS, Headers, first_of_each
from tertulia.wire.http.responses import HEADERS_API, PART_BYTES, SUCCESS, failure
from tertulia.wire.protocol.exchange import Outgoing

TARGET: Final = f"{POLLS}?".encode()
"""The beginning of the target of every poll."""
_BODIES: Final = frozenset({b"content-length", b"transfer-encoding", b"expect", b"upgrade"})
"""Headers of requests with a body."""
LAST: Final = b"last_event_id"
_NAMES: Final = frozenset({b"queue_id", LAST, b"dont_block"})
_BLOCKS: Final = {b"false": True, b"true": False, None: True}
_USUAL_BYTES: Final = 2048
"""The largest request that is remembered, in bytes. A browser's are half as long."""
_DIGITS: Final = 16
"""The number of digits of the largest IDs."""
_BEGINS: Final = SUCCESS + b',"events":['
_GOES_ON: Final = b'],"queue_id":"'
_ENDS: Final = b'"}'


class ServerState(Protocol):
    """The state that all connections of a server share."""

    @property
    def default_headers(self) -> Headers:
        """The headers of every response."""


class PollConnection(Protocol):
    """A connection on which a poll waits."""

    def reply(self, to: "WaitingPoll", head: bytes, *body: bytes) -> None:
        """Send a response whose body may be in parts. The head is without its final empty line."""

    def on_taken(self, release: Callable[[], None]) -> None:
        """Call `release` when the client has taken the response or has disconnected."""

    @property
    def outgoing(self) -> Outgoing:
        """The transport, for responses that need nothing else."""

    @property
    def is_leaving(self) -> bool:
        """Whether the connection ends with its next response."""

    @property
    def server_state(self) -> ServerState:
        """The server's shared state."""

    usual: "RepeatedPoll | None"
    """The poll that the client repeats, if known."""


class Polls:
    """The polls of a node that wait below ASGI."""

    def __init__(self, node: HttpNode) -> None:
        self.node = node
        self._limits, self._positions = node.request_limits, node.positions
        self._of_all: Headers | None = None
        self._start = b""
        self._events: Sequence[bytes] | None = None
        self._shared = b"", b""
        self._shared_by: tuple[Headers | None, int] = None, 0

    def start(
        self, connection: PollConnection, headers: Headers, query: bytes
    ) -> "WaitingPoll | None":
        """Start a poll, which is answered now or later. Return None if the endpoint must handle
        it."""
        asked = first_of_each(headers)
        parameters = dict([pair.partition(b"=")[::2] for pair in query.split(b"&")])
        last, queue_id = parameters.get(LAST, b""), parameters.get(b"queue_id", b"")
        block = _BLOCKS.get(parameters.get(b"dont_block"))
        if (
            block is None
            or not _BODIES.isdisjoint(asked)
            or not parameters.keys() <= _NAMES
            or not queue_id.replace(b"-", b"").isalnum()
            or not (last == b"-1" or _is_number(last))
        ):
            return None
        if not block and self.node.positions.awaited(headers) is not None:
            return None
        authorization = asked.get(b"authorization")
        try:
            user, session = self._asking(headers, authorization)
        except Refused:
            return None
        if session is not None and sessions.is_stale(session, self.node.clock()):
            return None
        is_browser = is_from_browser(asked)
        poll = self._begun(connection, user, queue_id, last, session, is_browser, block=block)
        if poll is not None and block:
            text = (authorization or b"").decode("latin-1")
            connection.usual = RepeatedPoll(
                text if session is None else session.digest,
                queue_id,
                is_browser,
                has_session=session is not None,
            )
        return poll

    def start_usual(
        self, connection: PollConnection, usual: "RepeatedPoll", last: bytes
    ) -> "WaitingPoll | None":
        """Start a poll that differs from the previous one only in the last event."""
        if not _is_number(last):
            return None
        node, session = self.node, None
        try:
            if usual.has_session:
                session = session_with(node, usual.credential)
                if session is None or sessions.is_stale(session, node.clock()):
                    return None
                user = owner_of_session(node, session)
            else:
                user = by_header(node, usual.credential)
        except Refused:
            return None
        return self._begun(
            connection, user, usual.queue_id, last, session, usual.is_browser, block=True
        )

    def _begun(
        self,
        connection: PollConnection,
        user: User | None,
        queue_id: bytes,
        last: bytes,
        session: Session | None,
        is_browser: bool,
        *,
        block: bool,
    ) -> "WaitingPoll | None":
        if user is None or (user.bot is not None and user.bot.kind is BotKind.INCOMING_WEBHOOK):
            return None
        limits = self._limits
        if not limits.admits_poll(user):
            return None
        poll = WaitingPoll(self, connection, queue_id, user.id, is_browser=is_browser)
        is_started = self.node.delivery.start(
            queue_id.decode(),
            user.id,
            int(last),
            poll,
            block=block,
            session_id=None if session is None else session.id,
        )
        if is_started:
            return poll
        # The endpoint will count it.
        limits.forgive_poll(user)
        return None

    def _asking(
        self, headers: Headers, authorization: bytes | None
    ) -> tuple[User | None, Session | None]:
        """Return the user, and the session that authenticated them. Raises as `authenticated`."""
        if authorization is not None:
            return by_header(self.node, authorization.decode("latin-1")), None
        scope = {"type": "http", "method": "GET", "headers": headers, "state": {}}
        user = authenticated(self.node, Request(scope))
        return user, session_in(scope)

    def shared(self, of_all: Headers, events: Sequence[bytes], ends: int) -> tuple[bytes, bytes]:
        """Return the parts of a response that are the same for all recipients of these events:
        the part before the individual headers, and the part after them. `ends` is the size of
        the rest."""
        if events is not self._events or self._shared_by != (of_all, ends):
            joined = b",".join(events)
            body = b"%b%b%b" % (_BEGINS, joined, _GOES_ON)
            head = b"%b%d\r\n" % (self._response_start(of_all), len(body) + ends)
            self._events, self._shared_by, self._shared = events, (of_all, ends), (head, body)
        return self._shared

    def own_headers(self, user_id: int) -> bytes:
        """Return the header lines of a response that are specific to the user."""
        user = self.node.state.users[user_id]
        return self._limits.poll_lines(user) + self._positions.line

    def _response_start(self, of_all: Headers) -> bytes:
        """Return the response's head up to the content length."""
        if of_all is not self._of_all:
            self._of_all = of_all
            headers = [*of_all, (b"content-type", b"application/json"), *HEADERS_API]
            self._start = head_of(200, headers) + b"content-length: "
        return self._start


class RepeatedPoll:
    """A poll that a client repeats with a different last event, so that the request doesn't have
    to be parsed again. The user's access is checked each time."""

    __slots__ = ("_after", "_before", "credential", "has_session", "is_browser", "queue_id")

    def __init__(
        self, credential: str, queue_id: bytes, is_browser: bool, *, has_session: bool
    ) -> None:
        self.credential = credential
        """An Authorization header or, if it `has_session`, the digest of the session's token."""
        self.has_session = has_session
        self.queue_id = queue_id
        self.is_browser = is_browser
        self._before = self._after = b""

    def know(self, request: bytes) -> bool:
        """Remember the request's bytes around the last event. Return False if they're unusual."""
        before, name, rest = request.partition(b"%b=" % LAST)
        self._before, self._after = before + name, rest.lstrip(b"-0123456789")
        return len(request) <= _USUAL_BYTES and LAST not in rest

    def last_in(self, request: bytes) -> bytes | None:
        """Return the last event in a request that is otherwise the same, else None."""
        before, after = self._before, self._after
        if not request.startswith(before) or not request.endswith(after):
            return None
        return request[len(before) : len(request) - len(after)]


class WaitingPoll:
    """A poll that waits on its connection. To the HTTP server, it's the request in progress.

    Thousands are answered in a row, and most of the time is spent on cache misses, so all data for
    a response is stored here.
    """

    __slots__ = (
        "_began",
        "_connection",
        "_ends",
        "_is_browser",
        "_outgoing",
        "_polls",
        "_server",
        "_user_id",
        "is_followed",
        "keep_alive",
        "response_complete",
    )

    def __init__(
        self,
        polls: Polls,
        connection: PollConnection,
        queue_id: bytes,
        user_id: int,
        *,
        is_browser: bool,
    ) -> None:
        self.keep_alive = not connection.is_leaving
        """Whether the connection stays open after the response."""
        self.is_followed = False
        """Whether another request is pipelined behind this one."""
        self.response_complete = False
        self._polls = polls
        self._connection = connection
        self._outgoing = connection.outgoing
        self._server = connection.server_state
        self._ends = queue_id + _ENDS
        self._user_id = user_id
        self._is_browser = is_browser
        self._began = time.perf_counter()

    def answer(self, events: Sequence[bytes]) -> None:
        polls, ends = self._polls, self._ends
        begins, goes_on = polls.shared(self._server.default_headers, events, len(ends))
        if len(goes_on) > PART_BYTES:
            user = polls.node.state.users[self._user_id]
            try:
                release = responses.unread_responses.take(user, None, len(goes_on))
            except TooMuchUnread as refusal:
                self.fail(refusal)
                return
            self._connection.on_taken(release)
        headers = polls.own_headers(self._user_id)
        if self.keep_alive and not self.is_followed:
            self.response_complete = True
            self._outgoing.write_whole(b"".join((begins, headers, b"\r\n", goes_on, ends)))
        else:
            self._connection.reply(self, begins + headers, goes_on, ends)
        self._log(200)

    def fail(self, error: Exception) -> None:
        response = failure(error)
        status = response.status_code
        headers = [*response.raw_headers, *HEADERS_API]
        if self._is_browser:
            headers = without_basic_challenge(status, headers)
        head = head_of(status, [*self._server.default_headers, *headers])
        own_headers = self._polls.own_headers(self._user_id)
        self._connection.reply(self, head + own_headers, bytes(response.body))
        self._log(status, response.code)

    def cancel(self) -> None:
        """End the poll, because the client has disconnected."""
        queue_id = self._ends.removesuffix(_ENDS).decode()
        self._polls.node.delivery.cancel(queue_id, self)
        self._log(200)

    def _log(self, status: int, code: str = "") -> None:
        self._polls.node.request_measures.polled(POLLS, status)
        if status != 200 or logs_polls():
            log_request("GET", POLLS, self._user_id, status, self._began, code)


def head_of(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the head of a response without the final empty line."""
    lines = [b"HTTP/1.1 %d %b" % (status, HTTPStatus(status).phrase.encode())]
    lines += [b"%b: %b" % header for header in headers]
    return b"".join(line + b"\r\n" for line in lines)


def _is_number(text: bytes) -> bool:
    return text.isdigit() and len(text) <= _DIGITS and (text[:1] != b"0" or text == b"0")
