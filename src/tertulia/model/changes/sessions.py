"""Sessions of browsers."""

from tertulia.model.changes.base import Change
from tertulia.model.sessions import Session


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
