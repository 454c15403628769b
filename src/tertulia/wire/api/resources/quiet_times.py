"""When the caller is left in peace. Not of the reference's interface: this server's."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tertulia.domain.accounts import quiet_times
from tertulia.model.personal import QuietHours
from tertulia.wire.api.objects import quiet_times as objects
from tertulia.wire.api.objects.quiet_times import QuietHoursObject, QuietTimesObject
from tertulia.wire.api.resources.server import NoParams
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params
from tertulia.wire.http.routing import Answer


class OneQuietTimes(Answer, kw_only=True):
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
    await call.submit(quiet_times.revise, params.paused_until, given)
    return _shown(call)


def _shown(call: Call) -> OneQuietTimes:
    return OneQuietTimes(quiet_times=objects.quiet_times(call.state, call.user, call.now))
