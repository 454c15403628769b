"""Events of what people set up for themselves, to their own clients."""

from typing import Final

from tertulia.model.changes import AlertWordsChanged, UserMuted, UserUnmuted
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.muting import MutedUserObject, muted_users
from tertulia.wire.api.projection import ProjectionContext, Projections, to_owner


class AlertWordsEvent(Event, kw_only=True, tag="alert_words"):
    """One's alert words are these now, all of them."""

    alert_words: list[str]


class MutedUsersEvent(Event, kw_only=True, tag="muted_users"):
    """One has muted these users now, all of them."""

    muted_users: list[MutedUserObject]


def _muted_users(context: ProjectionContext, change: UserMuted | UserUnmuted) -> Event:
    return MutedUsersEvent(muted_users=muted_users(context.state, change.user_id))


PROJECTIONS: Final[Projections] = (
    to_owner(AlertWordsChanged, lambda _, change: AlertWordsEvent(alert_words=list(change.words))),
    to_owner(UserMuted, _muted_users),
    to_owner(UserUnmuted, _muted_users),
)
