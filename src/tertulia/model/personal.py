"""Alert words and muted users."""

from msgspec import Struct


class AlertWords(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The words by which one user is alerted to messages."""

    user_id: int
    words: tuple[str, ...] = ()
    """As they were written, in the order in which they were added; no two differ by case only."""


class MutedUser(Struct, frozen=True, kw_only=True):
    """One user has muted another one."""

    user_id: int
    """Who muted."""
    muted_id: int
    """Whom."""
    since: int
    """UNIX seconds."""
