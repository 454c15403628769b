"""Browsers in which somebody is signed in."""

from typing import Final

from msgspec import Struct

from tertulia.model.change import Change

LIFETIME: Final = 30 * 86400
"""Seconds after its last use at which a session is over."""


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One account, signed in to by one browser. The browser has a token that nobody else knows."""

    id: int
    user_id: int
    digest: str
    """SHA-256 of the token, hexadecimal: what a request is looked up by."""
    created_at: int
    """UNIX seconds."""
    used_at: int
    """UNIX seconds of its last use, as last stored (`domain/accounts/sessions.py`)."""
    confirmed_at: int = 0
    """UNIX seconds of when the password was given again; 0 where it never was."""
    agent: str = ""
    """The browser as it calls itself."""

    @property
    def expires_at(self) -> int:
        """UNIX seconds."""
        return self.used_at + LIFETIME

    @property
    def proved_at(self) -> int:
        """UNIX seconds of the last sign-in or confirmation by password."""
        return max(self.created_at, self.confirmed_at)

    def lasts(self, now: float, longest: int | None) -> bool:
        """Whether it is not over; after so many seconds it is in any case (None for never)."""
        return now < self.expires_at and (longest is None or now < self.created_at + longest)


class SessionBegun(Change, frozen=True, tag="session_begun"):
    """Somebody signed in with a browser."""

    session: Session


class SessionUsed(Change, frozen=True, tag="session_used"):
    """A session that was not used for a while is used again. `at` is in UNIX seconds."""

    session_id: int
    at: int


class SessionConfirmed(Change, frozen=True, tag="session_confirmed"):
    """The password was given again in that browser. `at` is in UNIX seconds."""

    session_id: int
    at: int


class SessionsEnded(Change, frozen=True, tag="sessions_ended"):
    """Sessions ended. `user_ids` are their users."""

    session_ids: tuple[int, ...]
    user_ids: tuple[int, ...]
