"""Where in the log an answer was, as answers say and requests say back: by a header, or, from
browsers, by a cookie."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tertulia.log.freshness import STALE_SECONDS
from tertulia.log.log import Log
from tertulia.service.config import Config
from tertulia.wire.http.request_head import POSITION_COOKIE, cookie_name

POSITION: Final = "Tertulia-Position"
POSITION_NAME: Final = POSITION.lower().encode()
COOKIE_SECONDS: Final = int(STALE_SECONDS)
"""How long the cookie lasts. What is older every node has that answers at all."""
_VALUE: Final = rb"([0-9A-Za-z-]{1,64})\.([0-9]{1,15})"

Headers = Iterable[tuple[bytes, bytes]]


class Positions:
    """What requests and answers of a node say of positions: an entry of the log, as its history, a
    dot and its number."""

    def __init__(self, log: Log, config: Config) -> None:
        self.is_on = log.store.is_shared
        """Whether there may be another node."""
        self._log = log
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
        """The newest position that an answer may show now: that of what is on disk."""
        self._refresh()
        return self._value

    @property
    def line(self) -> bytes:
        """The same as a header, as it goes over the wire; nothing where there is one node."""
        if not self.is_on:
            return b""
        self._refresh()
        return self._line

    def _refresh(self) -> None:
        """Encode the position, once for all who are told it."""
        position = self._log.position
        if (position.history, position.seq) != self._of:
            self._of = position.history, position.seq
            self._value = f"{position.history}.{position.seq}".encode()
            self._line = b"%b: %b\r\n" % (POSITION_NAME, self._value)

    def awaited(self, headers: Headers) -> int | None:
        """The number of the entry that a request with these headers has seen at another node and
        this one does not have yet. None where there is none: positions of another history, and
        what is no position, mean nothing."""
        if not self.is_on:
            return None
        found = [
            int(seq)
            for history, seq in self._named(headers)
            if history == self._log.position.history.encode()
        ]
        newest = max(found, default=0)
        return newest if newest > self._log.durable else None

    def _named(self, headers: Headers) -> Iterator[tuple[bytes, bytes]]:
        for name, value in headers:
            if name == POSITION_NAME:
                if match := self._header.fullmatch(value):
                    yield match[1], match[2]
            elif name == b"cookie" and self._cookie_name in value:
                yield from self._cookies.findall(value)

    def cookie(self, scheme: str) -> bytes:
        """The cookie with the newest position, for a browser that came by that scheme."""
        is_secure = (self._config.external_url or scheme).startswith("https")
        return b"%b=%b; HttpOnly; Max-Age=%d; Path=/; SameSite=Lax%b" % (
            self._cookie_name,
            self.value,
            COOKIE_SECONDS,
            b"; Secure" if is_secure else b"",
        )
