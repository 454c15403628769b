"""Muted users on the wire."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from tertulia.domain.accounts import personal
from tertulia.model.changes import AlertWordsChanged, QuietTimesChanged, UserMuted, UserUnmuted
from tertulia.service.messages import flags
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Projections, to_owner
from tertulia.wire.api.quiet_times import QuietTimesObject, quiet_times_object
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


class MutedUserObject(Struct, kw_only=True):
    """Somebody whom one has muted, and when."""

    id: int
    timestamp: int


def muted_users(state: State, user_id: int) -> list[MutedUserObject]:
    """Whom the user has muted."""
    return [
        MutedUserObject(id=muted.muted_id, timestamp=muted.since)
        for muted in state.muted_users.of_user[user_id]
    ]


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
    return QuietTimesEvent(quiet_times=quiet_times_object(context.state, user, context.at))


class GetAlertWords(Params, kw_only=True, frozen=True):
    """One's alert words."""


class AlertWordList(ApiResponse, kw_only=True):
    """All of one's alert words, as they are now."""

    alert_words: list[str]


async def get_alert_words(call: Call, params: GetAlertWords) -> AlertWordList:
    """The words of whose use one is alerted."""
    return AlertWordList(alert_words=call.consider(personal.own_alert_words))


class ChangeAlertWords(Params, kw_only=True, frozen=True):
    """Words to add or to remove. Case makes no difference."""

    alert_words: Annotated[list[str], Meta(max_length=personal.MAX_ALERT_WORDS)]


async def add_alert_words(call: Call, params: ChangeAlertWords) -> AlertWordList:
    """Be alerted of these words too."""
    return AlertWordList(
        alert_words=await call.submit(personal.add_alert_words, params.alert_words)
    )


async def remove_alert_words(call: Call, params: ChangeAlertWords) -> AlertWordList:
    """Be alerted of these words no more."""
    return AlertWordList(
        alert_words=await call.submit(personal.remove_alert_words, params.alert_words)
    )


class OtherUser(Params, kw_only=True, frozen=True):
    """A user to mute, or not to mute any more."""

    muted_user_id: Annotated[Int, Path()]


async def mute_user(call: Call, params: OtherUser) -> ApiResponse:
    """Mute a user: what they wrote counts as read, and so does what they will write."""
    await flags.mute_user(call, params.muted_user_id)
    return ApiResponse()


async def unmute_user(call: Call, params: OtherUser) -> ApiResponse:
    """Unmute a user. What counts as read stays read."""
    await call.submit(personal.unmute_user, params.muted_user_id)
    return ApiResponse()


def alert_words_section(context: SectionContext) -> dict[str, Any]:
    own = context.state.alert_words.get(context.viewer_id)
    return {"alert_words": list(own.words) if own else []}


SECTIONS: Final[Sections] = {
    ("alert_words",): alert_words_section,
    ("muted_users",): lambda context: {
        "muted_users": muted_users(context.state, context.viewer_id) if context.viewer else []
    },
}


PROJECTIONS: Final[Projections] = (
    to_owner(AlertWordsChanged, lambda _, change: AlertWordsEvent(alert_words=list(change.words))),
    to_owner(QuietTimesChanged, _quiet_times),
    to_owner(UserMuted, _muted_users),
    to_owner(UserUnmuted, _muted_users),
)
