"""When people want to be left in peace."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from tertulia.domain.accounts.users import require_person
from tertulia.domain.notices import quiet
from tertulia.model.changes import QuietTimesChanged
from tertulia.model.errors import Refused
from tertulia.model.personal import QuietHours, QuietTimes
from tertulia.state.moment import Decision, Moment

LONGEST_PAUSE: Final = 366 * 86400
"""Seconds."""
MAX_HOURS: Final = 7
"""Of one account."""
_DAY_MINUTES: Final = 1440


def revise(
    moment: Moment,
    paused_until: int | UnsetType = UNSET,
    hours: Sequence[QuietHours] | UnsetType = UNSET,
) -> Decision[None]:
    """Leave the actor in peace until that UNIX time (0, or one that is over, to go on), or in these
    hours of each week.

    NotPermitted for bots; Refused for a pause of more than a year, for hours that cannot be, and
    for more than `MAX_HOURS` of them.
    """
    require_person(moment.actor)
    user_id = moment.actor.id
    before = moment.state.quiet_times.get(user_id) or QuietTimes(user_id=user_id)
    after = before
    if paused_until is not UNSET:
        if not 0 <= paused_until <= moment.now + LONGEST_PAUSE:
            raise Refused("You can pause notifications for at most a year.")
        is_over = paused_until <= moment.now
        after = msgspec.structs.replace(after, paused_until=0 if is_over else paused_until)
    if hours is not UNSET:
        if len(hours) > MAX_HOURS:
            raise Refused(f"You can have at most {MAX_HOURS} sets of quiet hours.")
        checked = tuple(map(_checked, hours))
        if quiet.leave_no_time(checked):
            raise Refused(
                "Quiet hours can't cover the whole week. To stop notifications completely,"
                " turn them off."
            )
        after = msgspec.structs.replace(after, hours=checked)
    return Decision(None, () if after == before else (QuietTimesChanged(quiet_times=after),))


def _checked(hours: QuietHours) -> QuietHours:
    days = tuple(sorted(set(hours.days)))
    if not days or not 0 <= days[0] <= days[-1] <= 6:
        raise Refused("Choose at least one day for quiet hours, from 0 (Monday) to 6 (Sunday).")
    if not (0 <= hours.begin < _DAY_MINUTES and 0 < hours.end <= _DAY_MINUTES):
        raise Refused(
            "Quiet hours must begin and end within one day. Give both times in minutes after"
            " midnight."
        )
    if hours.begin == hours.end:
        raise Refused("Quiet hours must end at a different time than they begin.")
    return msgspec.structs.replace(hours, days=days)
