"""Events of what people set up for themselves, to their own clients."""

from collections.abc import Iterable
from typing import Any

from tertulia.model.changes import AlertWordsChanged, UserMuted, UserUnmuted
from tertulia.wire.api.events import Event, ForOwner, ProjectionContext
from tertulia.wire.api.objects.muting import MutedUserObject, muted_users


class AlertWordsEvent(Event, kw_only=True, tag="alert_words"):
    """One's alert words are these now, all of them."""

    alert_words: list[str]


class AlertWordsProjection(ForOwner[AlertWordsChanged]):
    """Other alert words."""

    of = AlertWordsChanged

    def events(
        self, context: ProjectionContext, change: AlertWordsChanged, view: Any
    ) -> Iterable[Event]:
        yield AlertWordsEvent(alert_words=list(change.words))


class MutedUsersEvent(Event, kw_only=True, tag="muted_users"):
    """One has muted these users now, all of them."""

    muted_users: list[MutedUserObject]


class UserMutedProjection(ForOwner[UserMuted]):
    """One more is muted."""

    of = UserMuted

    def events(self, context: ProjectionContext, change: UserMuted, view: Any) -> Iterable[Event]:
        yield MutedUsersEvent(muted_users=muted_users(context.state, change.user_id))


class UserUnmutedProjection(ForOwner[UserUnmuted]):
    """One less is muted."""

    of = UserUnmuted

    def events(self, context: ProjectionContext, change: UserUnmuted, view: Any) -> Iterable[Event]:
        yield MutedUsersEvent(muted_users=muted_users(context.state, change.user_id))
