"""Quiet hours and paused notifications."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType, convert

from tertulia.domain.accounts import personal
from tertulia.domain.notifications import quiet
from tertulia.model.changes import QuietTimesChanged
from tertulia.model.personal import QuietHours, QuietTimes
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Projections, to_owner
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.parameters import Doc, Int
from tertulia.wire.http.routing import ApiResponse, Call

AHEAD_SECONDS: Final = 15 * 86400


class QuietHoursObject(Struct, kw_only=True, frozen=True):
    """Quiet hours of each week, in the user's time zone."""

    days: Annotated[
        list[int],
        Meta(max_length=7, description="The days on which they begin: 0 is Monday, 6 is Sunday."),
    ]
    begin: Annotated[int, Doc("Minutes after midnight, 0 to 1439.")]
    end: Annotated[
        int,
        Doc(
            "Minutes after midnight, 1 to 1440. If it is before `begin`, the hours end on the"
            " next day."
        ),
    ]
    channel_ids: Annotated[
        list[int],
        Doc(
            "The only channels that are quiet in these hours, at most 100. Empty for all"
            " notifications."
        ),
    ] = []


class QuietChannelsObject(Struct, kw_only=True, frozen=True):
    """When some channels are quiet."""

    channel_ids: list[int]
    spans: Annotated[
        list[tuple[int, int]],
        Doc("The quiet hours of the next 15 days: the start and end of each, in UNIX seconds."),
    ]


class QuietTimesObject(Struct, kw_only=True):
    """The times when a user gets no notifications."""

    paused_until: Annotated[
        int | None, Doc("In UNIX seconds; null unless notifications are paused.")
    ]
    hours: list[QuietHoursObject]
    timezone: Annotated[
        str, Doc("The time zone of the quiet hours, from the profile. Empty for UTC.")
    ]
    spans: Annotated[
        list[tuple[int, int]],
        Doc(
            "The quiet times of the next 15 days that apply to all notifications: the start and end"
            " of each, in UNIX seconds."
        ),
    ]
    channel_spans: Annotated[
        list[QuietChannelsObject],
        Doc("One object for each set of quiet hours that applies only to some channels."),
    ]


def quiet_times_object(state: State, user: User, now: float) -> QuietTimesObject:
    times = state.quiet_times.get(user.id) or QuietTimes(user_id=user.id)
    return QuietTimesObject(
        paused_until=times.paused_until if times.paused_until > now else None,
        hours=convert(times.hours, list[QuietHoursObject], from_attributes=True),
        timezone=user.timezone,
        spans=quiet.spans(state, user, now, now + AHEAD_SECONDS),
        channel_spans=[
            QuietChannelsObject(
                channel_ids=list(item.channel_ids),
                spans=quiet.spans_of(
                    QuietTimes(user_id=user.id, hours=(item,)),
                    quiet.zone_of(user),
                    now,
                    now + AHEAD_SECONDS,
                    item.channel_ids[0],
                ),
            )
            for item in times.hours
            if item.channel_ids
        ],
    )


class QuietTimesEvent(Event, kw_only=True, tag="quiet_times"):
    """Your quiet times changed. This event is a Tertulia extension that Zulip clients ignore."""

    quiet_times: QuietTimesObject


class QuietTimesResponse(ApiResponse, kw_only=True):
    """Your quiet times."""

    quiet_times: QuietTimesObject


async def get_quiet_times(call: Call) -> QuietTimesResponse:
    """Get your quiet times. This endpoint is a Tertulia extension.

    During quiet times, clients show no notifications and play no sounds, no push notifications are
    sent, and emails about missed messages are held until they end. Quiet hours can apply to chosen
    channels only."""
    return _response(call)


async def revise_quiet_times(
    call: Call,
    paused_until: Annotated[
        Int | UnsetType,
        Doc("Pause notifications until this UNIX time, at most a year ahead. 0 resumes them."),
    ] = UNSET,
    hours: Annotated[
        list[QuietHoursObject] | UnsetType, Doc("All quiet hours: at most 7 entries.")
    ] = UNSET,
) -> QuietTimesResponse:
    """Pause notifications, or set quiet hours. This endpoint is a Tertulia extension."""
    new: list[QuietHours] | UnsetType = UNSET
    if hours is not UNSET:
        new = convert(hours, list[QuietHours], from_attributes=True)
    await call.submit(personal.change_quiet_times, paused_until, new)
    return _response(call)


def _response(call: Call) -> QuietTimesResponse:
    return QuietTimesResponse(quiet_times=quiet_times_object(call.state, call.user, call.now))


def _event(context: ProjectionContext, change: QuietTimesChanged) -> Event:
    user = context.state.users[change.user_id]
    return QuietTimesEvent(quiet_times=quiet_times_object(context.state, user, context.at))


def quiet_times_section(context: SectionContext) -> dict[str, Any]:
    if context.viewer is None:
        nothing = QuietTimesObject(
            paused_until=None, hours=[], timezone="", spans=[], channel_spans=[]
        )
        return {"quiet_times": nothing}
    return {"quiet_times": quiet_times_object(context.state, context.viewer, context.now)}


NAMED_SECTIONS: Final[Sections] = {("quiet_times",): quiet_times_section}
"""Sent only to clients that ask for them by name, since Zulip's clients don't know them."""


PROJECTIONS: Final[Projections] = (to_owner(QuietTimesChanged, _event),)
