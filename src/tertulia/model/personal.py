"""Alert words, muted users, and when people want to be left in peace."""

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


class QuietHours(Struct, frozen=True, kw_only=True):
    """Hours of the week in which one user is left in peace, by the clock where they are."""

    days: tuple[int, ...]
    """The days on which they begin: 0 is Monday, 6 Sunday."""
    begin: int
    """Minutes after midnight."""
    end: int
    """Likewise, up to 1440; not after `begin`, on the day after."""


class QuietTimes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When one user is left in peace. There is no record of somebody who never is."""

    user_id: int
    paused_until: int = 0
    """UNIX seconds."""
    hours: tuple[QuietHours, ...] = ()
