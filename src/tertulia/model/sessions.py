"""Sessions of signed-in browsers."""

from typing import Final

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds

LIFETIME: Final = 30 * 86400
"""The number of seconds after its last use after which a session expires."""


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session of a browser. Only the browser has the session's token."""

    id: int
    user_id: int
    digest: str
    """SHA-256 of the token in hexadecimal. Requests are looked up by it."""
    created_at: UnixSeconds
    used_at: int
    """UNIX seconds of its last use, as last stored (`domain/accounts/sessions.py`)."""
    confirmed_at: int = 0
    """The time when the password was last confirmed, in UNIX seconds; 0 for never."""
    agent: str = ""
    """The browser's user agent."""
    method: str = ""
    """The sign-in method: `password`, or the name of a configured method; empty for sessions of
    older versions."""
    address: str = ""
    """The IP address that it was last used from, as last stored."""
    provider_session: str = ""
    """The identity provider's ID of the session there; may be empty."""

    @property
    def expires_at(self) -> int:
        """UNIX seconds."""
        return self.used_at + LIFETIME

    @property
    def proved_at(self) -> int:
        """UNIX seconds of the last sign-in or confirmation by password."""
        return max(self.created_at, self.confirmed_at)

    def lasts(self, now: float, longest: int | None) -> bool:
        """Whether the session hasn't expired. It also expires `longest` seconds after it began
        (None: never)."""
        return now < self.expires_at and (longest is None or now < self.created_at + longest)


class SessionBegun(Change, frozen=True, tag="session_begun"):
    session: Session


class SessionUsed(Change, frozen=True, tag="session_used"):
    """A session was used for the first time in a while. `at` is in UNIX seconds. `address` is the
    client's IP address; None keeps the known one."""

    session_id: int
    at: int
    address: str | None = None


class SessionConfirmed(Change, frozen=True, tag="session_confirmed"):
    """The password was confirmed. `at` is in UNIX seconds."""

    session_id: int
    at: int


class SessionsEnded(Change, frozen=True, tag="sessions_ended"):
    """Sessions ended. `user_ids` are their users."""

    session_ids: tuple[int, ...]
    user_ids: tuple[int, ...]
