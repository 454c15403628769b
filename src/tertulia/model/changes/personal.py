"""Personal alert words, muted users and quiet times."""

from tertulia.model.changes.base import Change
from tertulia.model.personal import MutedUser, QuietTimes


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
