"""Events of what people set up for themselves, to their own clients."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from tertulia.model.changes import AlertWordsChanged, UserMuted, UserUnmuted
from tertulia.state.organization import State
from tertulia.wire.events import Event, ForOwner, Scene


class AlertWordsEvent(Event, kw_only=True, tag="alert_words"):
    """One's alert words are these now, all of them."""

    alert_words: list[str]


class AlertWordsProjection(ForOwner[AlertWordsChanged]):
    """Other alert words."""

    of = AlertWordsChanged

    def events(self, scene: Scene, change: AlertWordsChanged, view: Any) -> Iterable[Event]:
        yield AlertWordsEvent(alert_words=list(change.words))


class MutedUserObject(Struct, kw_only=True):
    """Somebody whom one has muted, and when."""

    id: int
    timestamp: int


class MutedUsersEvent(Event, kw_only=True, tag="muted_users"):
    """One has muted these users now, all of them."""

    muted_users: list[MutedUserObject]


def muted_users(state: State, user_id: int) -> list[MutedUserObject]:
    """Whom the user has muted."""
    return [
        MutedUserObject(id=muted.muted_id, timestamp=muted.since)
        for muted in state.muted_by_user[user_id]
    ]


class UserMutedProjection(ForOwner[UserMuted]):
    """One more is muted."""

    of = UserMuted

    def events(self, scene: Scene, change: UserMuted, view: Any) -> Iterable[Event]:
        yield MutedUsersEvent(muted_users=muted_users(scene.state, change.user_id))


class UserUnmutedProjection(ForOwner[UserUnmuted]):
    """One less is muted."""

    of = UserUnmuted

    def events(self, scene: Scene, change: UserUnmuted, view: Any) -> Iterable[Event]:
        yield MutedUsersEvent(muted_users=muted_users(scene.state, change.user_id))
