"""What people set up for themselves."""

from tertulia.model.changes.base import Change
from tertulia.model.personal import MutedUser


class AlertWordsChanged(Change, frozen=True, tag="alert_words_changed"):
    """These are the words that the user wants to be alerted of, all of them."""

    user_id: int
    words: tuple[str, ...]


class UserMuted(Change, frozen=True, tag="user_muted"):
    """A user does not want to read another one's messages."""

    muted: MutedUser

    @property
    def user_id(self) -> int:
        return self.muted.user_id


class UserUnmuted(Change, frozen=True, tag="user_unmuted"):
    """A user wants to read another one's messages again."""

    user_id: int
    muted_id: int
