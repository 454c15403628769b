"""When people are left in peace, on the wire."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain.accounts import personal
from tertulia.domain.notifications import quiet
from tertulia.model.personal import QuietHours, QuietTimes
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.parameters import Int, NoParams, Params
from tertulia.wire.http.routing import ApiResponse, Call

AHEAD_SECONDS: Final = 15 * 86400
"""So far ahead spans are told."""


class QuietHoursObject(Struct, kw_only=True, frozen=True):
    """Hours of each week, by the clock where the person is."""

    days: Annotated[
        list[int], Meta(max_length=7, description="On which they begin: 0 is Monday, 6 Sunday.")
    ]
    begin: Annotated[int, Meta(description="Minutes after midnight, 0 to 1439.")]
    end: Annotated[
        int,
        Meta(description="Likewise, 1 to 1440; where it is before `begin`, on the day after."),
    ]


class QuietTimesObject(Struct, kw_only=True):
    """When somebody is left in peace."""

    paused_until: Annotated[int | None, Meta(description="Null while nothing is paused.")]
    hours: list[QuietHoursObject]
    timezone: Annotated[
        str, Meta(description="By whose clock the hours are: as in the profile; UTC where empty.")
    ]
    spans: Annotated[
        list[tuple[int, int]],
        Meta(description="All of it in UNIX seconds, from when to when, for the next 15 days."),
    ]


def quiet_times_object(state: State, user: User, now: float) -> QuietTimesObject:
    """When the account is left in peace, as of now."""
    times = state.quiet_times.get(user.id) or QuietTimes(user_id=user.id)
    return QuietTimesObject(
        paused_until=times.paused_until if times.paused_until > now else None,
        hours=[
            QuietHoursObject(days=list(one.days), begin=one.begin, end=one.end)
            for one in times.hours
        ],
        timezone=user.timezone,
        spans=quiet.spans(state, user, now, now + AHEAD_SECONDS),
    )


class OneQuietTimes(ApiResponse, kw_only=True):
    """When the caller is left in peace."""

    quiet_times: QuietTimesObject


class ReviseQuietTimes(Params, kw_only=True, frozen=True):
    """What is to be different."""

    paused_until: Annotated[
        Int | UnsetType,
        Meta(description="Tell nothing before that UNIX time, of the next year; 0 to go on."),
    ] = UNSET
    hours: Annotated[
        list[QuietHoursObject] | UnsetType,
        Meta(description="Hours of each week in which nothing is told, all of them: at most 7."),
    ] = UNSET


async def get_quiet_times(call: Call, params: NoParams) -> OneQuietTimes:
    """When the caller is left in peace: no note, no sound, no push, and mails of what they have
    missed wait. Not of the reference's interface: this server's."""
    return _shown(call)


async def revise_quiet_times(call: Call, params: ReviseQuietTimes) -> OneQuietTimes:
    """Pause, or have quiet hours. What is not sent stays as it is. Not of the reference's
    interface: this server's."""
    hours = params.hours
    given: list[QuietHours] | UnsetType = UNSET
    if hours is not UNSET:
        given = [QuietHours(days=tuple(one.days), begin=one.begin, end=one.end) for one in hours]
    await call.submit(personal.change_quiet_times, params.paused_until, given)
    return _shown(call)


def _shown(call: Call) -> OneQuietTimes:
    return OneQuietTimes(quiet_times=quiet_times_object(call.state, call.user, call.now))


def quiet_times_section(context: SectionContext) -> dict[str, Any]:
    if context.viewer is None:
        return {"quiet_times": QuietTimesObject(paused_until=None, hours=[], timezone="", spans=[])}
    return {"quiet_times": quiet_times_object(context.state, context.viewer, context.now)}


NAMED_SECTIONS: Final[Sections] = {("quiet_times",): quiet_times_section}
"""Sent only to clients that name them, since Zulip's clients don't know them."""
