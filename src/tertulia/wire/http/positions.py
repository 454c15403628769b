"""Reading your own writes on any node. A response has the log position that it shows, in a
header or a cookie, and a request waits until its node has reached the position that the client
has seen."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia.log.health import STALE_SECONDS
from tertulia.log.log import Log
from tertulia.model.errors import Unavailable
from tertulia.service.config import Config
from tertulia.wire.http.request_head import (
    HEALTH,
    POSITION_COOKIE,
    POSITION_NAME,
    PREFIX,
    READY,
    cookie_name,
)
from tertulia.wire.http.responses import failure

COOKIE_SECONDS: Final = int(STALE_SECONDS)
"""How long the cookie lasts: a node that is further behind refuses requests anyway."""
_VALUE: Final = rb"([0-9A-Za-z-]{1,64})\.([0-9]{1,15})"

Headers = Iterable[tuple[bytes, bytes]]


class Positions:
    """Encodes and decodes positions: an entry of the log as its history, a dot, and its number."""

    def __init__(self, log: Log, config: Config) -> None:
        self.is_on = log.store.is_shared
        """Whether there may be other nodes."""
        self.log = log
        self._config = config
        self._header = re.compile(_VALUE)
        self._cookie_name = cookie_name(config, POSITION_COOKIE).encode()
        self._cookies = re.compile(
            rb"(?:^|;)\s*" + re.escape(self._cookie_name) + b"=" + _VALUE + rb"\s*(?=;|$)"
        )
        self._of: tuple[str, int] = "", 0
        self._value = self._line = b""

    @property
    def value(self) -> bytes:
        """Return the newest position that a response may show, which is on disk."""
        self._refresh()
        return self._value

    @property
    def line(self) -> bytes:
        """Return the position as an HTTP header line; empty if this is the only node."""
        if not self.is_on:
            return b""
        self._refresh()
        return self._line

    def _refresh(self) -> None:
        """Encode the position once for all responses."""
        position = self.log.position
        if (position.history, position.seq) != self._of:
            self._of = position.history, position.seq
            self._value = f"{position.history}.{position.seq}".encode()
            self._line = b"%b: %b\r\n" % (POSITION_NAME, self._value)

    def awaited(self, headers: Headers) -> int | None:
        """Return the entry that the client has seen on another node and that this node doesn't have
        yet, or None. Ignores malformed positions and those of another history."""
        if not self.is_on:
            return None
        positions = [
            int(seq)
            for history, seq in self._named(headers)
            if history == self.log.position.history.encode()
        ]
        newest = max(positions, default=0)
        return newest if newest > self.log.durable else None

    def _named(self, headers: Headers) -> Iterator[tuple[bytes, bytes]]:
        for name, value in headers:
            if name == POSITION_NAME:
                if match := self._header.fullmatch(value):
                    yield match[1], match[2]
            elif name == b"cookie" and self._cookie_name in value:
                yield from self._cookies.findall(value)

    def cookie(self, scheme: str) -> bytes:
        """Return a cookie with the newest position, for a client that uses this scheme."""
        is_secure = (self._config.external_url or scheme).startswith("https")
        return b"%b=%b; HttpOnly; Max-Age=%d; Path=/; SameSite=Lax%b" % (
            self._cookie_name,
            self.value,
            COOKIE_SECONDS,
            b"; Secure" if is_secure else b"",
        )


_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def at_position(positions: Positions, app: ASGIApp) -> ASGIApp:
    """Wrap the application in AtPosition if there may be other nodes."""
    return AtPosition(positions, app) if positions.is_on else app


class AtPosition:
    """Middleware that makes a request wait, up to `BEHIND_SECONDS`, until the node has what its
    client has seen, and adds the position to responses.

    Every API response to a user has the header. Only responses to writes set the cookie, because
    others may be cached. Anonymous clients don't get positions, because these reveal how busy the
    organization is.
    """

    def __init__(self, positions: Positions, app: ASGIApp) -> None:
        self._log = positions.log
        self._positions = positions
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in (HEALTH, READY):
            await self._app(scope, receive, send)
            return
        positions, log = self._positions, self._log
        log.store.hear_gathered()  # For clients that don't send a position.
        awaited = positions.awaited(scope["headers"])
        if awaited is not None:
            try:
                await log.catching_up.reached(awaited)
            except Unavailable as error:
                await failure(error)(scope, receive, send)
                return
        before = log.durable
        scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add(scope, message, before)
            await send(message)

        await self._app(scope, receive, sending)

    def _add(self, scope: Scope, message: Message, before: int) -> None:
        positions = self._positions
        is_question = scope["method"] in _SAFE
        is_known = scope["state"].get("user") is not None
        if not is_known and (is_question or message["status"] >= 400):
            return
        headers = [*message["headers"]]
        if scope["path"].startswith(PREFIX):
            headers.append((POSITION_NAME, positions.value))
        if not is_question and self._log.durable > before:
            headers.append((b"set-cookie", positions.cookie(scope["scheme"])))
        message["headers"] = headers
