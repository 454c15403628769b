"""Events of what people set up for themselves, to their own clients."""

from typing import Final

from tertulia.model.changes import AlertWordsChanged, QuietTimesChanged, UserMuted, UserUnmuted
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.muting import MutedUserObject, muted_users
from tertulia.wire.api.objects.quiet_times import QuietTimesObject, quiet_times
from tertulia.wire.api.projection import ProjectionContext, Projections, to_owner


class AlertWordsEvent(Event, kw_only=True, tag="alert_words"):
    """One's alert words are these now, all of them."""

    alert_words: list[str]


class MutedUsersEvent(Event, kw_only=True, tag="muted_users"):
    """One has muted these users now, all of them."""

    muted_users: list[MutedUserObject]


class QuietTimesEvent(Event, kw_only=True, tag="quiet_times"):
    """One is left in peace at other times, all of them. (Clients of the reference do not know this
    event, and leave it out.)"""

    quiet_times: QuietTimesObject


def _muted_users(context: ProjectionContext, change: UserMuted | UserUnmuted) -> Event:
    return MutedUsersEvent(muted_users=muted_users(context.state, change.user_id))


def _quiet_times(context: ProjectionContext, change: QuietTimesChanged) -> Event:
    user = context.state.users[change.user_id]
    return QuietTimesEvent(quiet_times=quiet_times(context.state, user, context.at))


PROJECTIONS: Final[Projections] = (
    to_owner(AlertWordsChanged, lambda _, change: AlertWordsEvent(alert_words=list(change.words))),
    to_owner(QuietTimesChanged, _quiet_times),
    to_owner(UserMuted, _muted_users),
    to_owner(UserUnmuted, _muted_users),
)
