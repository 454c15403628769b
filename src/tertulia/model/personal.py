"""Alert words, muted users, and when people want to be left in peace."""

from msgspec import Struct

from tertulia.model.change import Change


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


class AlertWordsChanged(Change, frozen=True, tag="alert_words_changed"):
    """A user's alert words are new: all of them."""

    user_id: int
    words: tuple[str, ...]


class UserMuted(Change, frozen=True, tag="user_muted"):
    """A user muted another one."""

    muted: MutedUser

    @property
    def user_id(self) -> int:
        return self.muted.user_id


class UserUnmuted(Change, frozen=True, tag="user_unmuted"):
    """A user unmuted another one."""

    user_id: int
    muted_id: int


class QuietTimesChanged(Change, frozen=True, tag="quiet_times_changed"):
    """When a user is left in peace is new: all of it."""

    quiet_times: QuietTimes

    @property
    def user_id(self) -> int:
        return self.quiet_times.user_id
