"""GET /events without a task: for connections on which such a request waits below ASGI.

Only plain requests are answered here. Anything unusual, and everything that is to be refused, is
the endpoint's (`tertulia.wire.api.resources.events`), which answers the same.
"""

import time
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final, Protocol

from starlette.requests import Request

from tertulia.domain.accounts import sessions
from tertulia.model.errors import Refused
from tertulia.model.sessions import Session
from tertulia.model.users import BotKind, User
from tertulia.wire.http.authentication import authenticated, by_header, session_in
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_headers import Headers, first_of_each
from tertulia.wire.http.request_log import log_request
from tertulia.wire.http.response_headers import HEADERS_API
from tertulia.wire.http.responses import SUCCESS, failure
from tertulia.wire.http.routing import POLLS
from tertulia.wire.http.session_cookies import asked_by_browser, without_dialogue

TARGET: Final = f"{POLLS}?".encode()
"""How the target of every such request begins."""
_BODIES: Final = frozenset({b"content-length", b"transfer-encoding", b"expect", b"upgrade"})
"""Headers of requests that do not end with them."""
_NAMES: Final = frozenset({b"queue_id", b"last_event_id", b"dont_block"})
_BLOCKS: Final = {b"false": True, b"true": False, None: True}
_DIGITS: Final = 16
"""As many as the largest IDs have."""
_BEGINS: Final = SUCCESS + b',"events":['
_GOES_ON: Final = b'],"queue_id":"'
_ENDS: Final = b'"}'
_AROUND: Final = len(_BEGINS) + len(_GOES_ON) + len(_ENDS)


class Connection(Protocol):
    """What a poll waits on."""

    def reply(self, poll: "WaitingPoll", head: bytes, *body: bytes) -> None:
        """Send the answer, whose body may come in parts. The head has all its lines, but not the
        empty one at its end."""

    @property
    def is_leaving(self) -> bool:
        """Whether it ends with the next answer."""

    @property
    def headers_of_all(self) -> Headers:
        """Those that every answer of the server has."""


class Polls:
    """The polls of a node that wait below ASGI."""

    def __init__(self, node: HttpNode) -> None:
        self.node = node
        self._of_all: Headers | None = None
        self._start = b""

    def start(self, connection: Connection, headers: Headers, query: bytes) -> "WaitingPoll | None":
        """Begin a poll on the connection, which is replied to now or later. None where that is
        the endpoint's."""
        asked = first_of_each(headers)
        found = dict([pair.partition(b"=")[::2] for pair in query.split(b"&")])
        last, queue_id = found.get(b"last_event_id", b""), found.get(b"queue_id", b"")
        block = _BLOCKS.get(found.get(b"dont_block"))
        if (
            block is None
            or not _BODIES.isdisjoint(asked)
            or not found.keys() <= _NAMES
            or not queue_id.replace(b"-", b"").isalnum()
            or not (last == b"-1" or _is_number(last))
        ):
            return None
        if not block and self.node.positions.awaited(headers) is not None:
            return None
        try:
            user, session = self._asking(headers, asked.get(b"authorization"))
        except Refused:
            return None
        if user is None or (user.bot is not None and user.bot.kind is BotKind.INCOMING_WEBHOOK):
            return None
        if session is not None and sessions.is_stale(session, self.node.clock()):
            return None
        limits = self.node.request_limits
        if not limits.admits_poll(user.id):
            return None
        poll = WaitingPoll(
            self,
            connection,
            queue_id.decode(),
            user.id,
            is_browser=asked_by_browser(asked),
        )
        is_started = self.node.delivery.start(
            poll.queue_id,
            user.id,
            int(last),
            poll,
            block=block,
            session_id=None if session is None else session.id,
        )
        if is_started:
            return poll
        # The endpoint counts it.
        limits.forgive_poll(user.id)
        return None

    def _asking(
        self, headers: Headers, authorization: bytes | None
    ) -> tuple[User | None, Session | None]:
        """Who asks, and the session by whose cookie. Raises as `authenticated`."""
        if authorization is not None:
            return by_header(self.node, authorization.decode("latin-1")), None
        scope = {"type": "http", "method": "GET", "headers": headers, "state": {}}
        user = authenticated(self.node, Request(scope))
        return user, session_in(scope)

    def response_start(self, of_all: Headers) -> bytes:
        """The answers' head, up to the length of the body."""
        if of_all is not self._of_all:
            self._of_all = of_all
            headers = [*of_all, (b"content-type", b"application/json"), *HEADERS_API]
            self._start = head_of(200, headers) + b"content-length: "
        return self._start


class WaitingPoll:
    """A poll that waits on its connection. To the HTTP server it is the request in progress."""

    __slots__ = (
        "_began",
        "_connection",
        "_is_browser",
        "_polls",
        "_user_id",
        "keep_alive",
        "queue_id",
        "response_complete",
    )

    def __init__(
        self, polls: Polls, connection: Connection, queue_id: str, user_id: int, *, is_browser: bool
    ) -> None:
        self.queue_id = queue_id
        self.keep_alive = not connection.is_leaving
        """Whether the connection is of use after the answer."""
        self.response_complete = False
        self._polls = polls
        self._connection = connection
        self._user_id = user_id
        self._is_browser = is_browser
        self._began = time.perf_counter()

    def answer(self, events: Sequence[bytes]) -> None:
        joined = events[0] if len(events) == 1 else b",".join(events)
        queue_id = self.queue_id.encode()
        connection = self._connection
        start = self._polls.response_start(connection.headers_of_all)
        connection.reply(
            self,
            b"%b%d\r\n%b" % (start, _AROUND + len(joined) + len(queue_id), self._own_headers),
            _BEGINS,
            joined,
            _GOES_ON,
            queue_id,
            _ENDS,
        )
        self._log(200)

    def fail(self, error: Exception) -> None:
        response = failure(error)
        status = response.status_code
        headers = [*response.raw_headers, *HEADERS_API]
        if self._is_browser:
            headers = without_dialogue(status, headers)
        head = head_of(status, [*self._connection.headers_of_all, *headers])
        self._connection.reply(self, head + self._own_headers, bytes(response.body))
        self._log(status, response.code)

    @property
    def _own_headers(self) -> bytes:
        node = self._polls.node
        return node.request_limits.poll_lines(self._user_id) + node.positions.line

    def cancel(self) -> None:
        """The client went away."""
        self._polls.node.delivery.cancel(self.queue_id, self)
        self._log(200)

    def _log(self, status: int, code: str = "") -> None:
        self._polls.node.request_measures.polled(POLLS, status)
        log_request("GET", POLLS, self._user_id, status, self._began, code)


def head_of(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The head of a response, as it goes over the wire, without the empty line at its end."""
    lines = [b"HTTP/1.1 %d %b" % (status, HTTPStatus(status).phrase.encode())]
    lines += [b"%b: %b" % header for header in headers]
    return b"".join(line + b"\r\n" for line in lines)


def _is_number(text: bytes) -> bool:
    return text.isdigit() and len(text) <= _DIGITS and (text[:1] != b"0" or text == b"0")
