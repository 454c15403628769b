"""Alert words, muted users, and quiet times."""

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class AlertWords(Struct, frozen=True, kw_only=True, omit_defaults=True):
    user_id: int
    words: tuple[str, ...] = ()
    """The words as written, in the order in which they were added; unique, ignoring case."""


class MutedUser(Struct, frozen=True, kw_only=True):
    """A user muted another one."""

    user_id: int
    muted_id: int
    since: UnixSeconds


class QuietHours(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Weekly hours without notifications, in the user's time zone."""

    days: tuple[int, ...]
    """The days on which they begin: 0 is Monday, 6 Sunday."""
    begin: int
    """Minutes after midnight."""
    end: int
    """Minutes after midnight, up to 1440; if it isn't after `begin`, on the next day."""
    channel_ids: tuple[int, ...] = ()
    """The only channels that are quiet; empty for all notifications."""

    def covers(self, channel_id: int | None) -> bool:
        """Whether the channel is quiet in these hours. None stands for all other notifications."""
        return not self.channel_ids or channel_id in self.channel_ids


class QuietTimes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user's quiet times. Users without any have no record."""

    user_id: int
    paused_until: UnixSeconds = 0
    hours: tuple[QuietHours, ...] = ()


class AlertWordsChanged(Change, frozen=True, tag="alert_words_changed"):
    """`words` are all alert words of the user."""

    user_id: int
    words: tuple[str, ...]


class UserMuted(Change, frozen=True, tag="user_muted"):
    muted: MutedUser

    @property
    def user_id(self) -> int:
        return self.muted.user_id


class UserUnmuted(Change, frozen=True, tag="user_unmuted"):
    user_id: int
    muted_id: int


class QuietTimesChanged(Change, frozen=True, tag="quiet_times_changed"):
    """A user's quiet times were replaced."""

    quiet_times: QuietTimes

    @property
    def user_id(self) -> int:
        return self.quiet_times.user_id


class NavigationView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A custom view in the sidebar, or the settings of a built-in view."""

    id: int
    user_id: int
    fragment: str
    """The fragment of its URL, which identifies it among its owner's views."""
    is_pinned: bool
    """Whether it's always shown, rather than in a menu."""
    name: str | None = None
    """None for built-in views."""


class NavigationViewAdded(Change, frozen=True, tag="navigation_view_added"):
    user_id: int
    view: NavigationView


class NavigationViewChanged(Change, frozen=True, tag="navigation_view_changed"):
    """A view was renamed, pinned, or unpinned; None fields didn't change."""

    user_id: int
    view_id: int
    fragment: str
    is_pinned: bool | None = None
    name: str | None = None


class NavigationViewRemoved(Change, frozen=True, tag="navigation_view_removed"):
    user_id: int
    view_id: int
    fragment: str
