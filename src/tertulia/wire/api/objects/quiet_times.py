"""When people are left in peace, on the wire."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from tertulia.domain.notices import quiet
from tertulia.model.personal import QuietTimes
from tertulia.model.users import User
from tertulia.state.organization import State

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


def quiet_times(state: State, user: User, now: float) -> QuietTimesObject:
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
