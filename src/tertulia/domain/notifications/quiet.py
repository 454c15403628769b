"""When somebody is left in peace: while they have paused, and in their quiet hours."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tertulia.model.personal import QuietHours, QuietTimes
from tertulia.model.users import User
from tertulia.state.state import State

QuietSpan = tuple[int, int]
"""From when to when, in UNIX seconds."""

_DAY: Final = timedelta(days=1)


def zone_of(user: User) -> tzinfo:
    """Where somebody's clock is: by UTC as long as they have not said it, or where the machine does
    not know the zone any more."""
    try:
        return ZoneInfo(user.timezone) if user.timezone else UTC
    except ZoneInfoNotFoundError:
        return UTC


def spans(state: State, user: User, since: float, until: float) -> list[QuietSpan]:
    """The times in which somebody is left in peace, in order: those that are not over at one time
    and begin by another one. What follows at once on each other is one. (What holds at the
    beginning may have begun earlier.)"""
    times = state.quiet_times.get(user.id)
    return [] if times is None else spans_of(times, zone_of(user), since, until)


def spans_of(times: QuietTimes, zone: tzinfo, since: float, until: float) -> list[QuietSpan]:
    """The same, of somebody whose clock is there."""
    found = list(_hours(times, zone, since, until))
    if times.paused_until > since:
        found.append((int(since), times.paused_until))
    merged: list[QuietSpan] = []
    for begin, end in sorted(found):
        if end <= since or begin > until or begin >= end:
            continue
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def leave_no_time(hours: Sequence[QuietHours]) -> bool:
    """Whether the hours are the whole week."""
    begin, end = 0, 7 * 86400
    always = QuietTimes(user_id=0, hours=tuple(hours))
    return any(one <= begin and other >= end for one, other in spans_of(always, UTC, begin, end))


def quiet_until(state: State, user_id: int, now: float) -> int | None:
    """Until when at least somebody is left in peace who is now; None for others."""
    if user_id not in state.quiet_times:
        return None
    present = spans(state, state.users[user_id], now, now)
    return present[0][1] if present else None


def _hours(times: QuietTimes, zone: tzinfo, since: float, until: float) -> Iterator[QuietSpan]:
    # What began on the day before may not be over; where clocks are changed, a day is longer.
    day = datetime.fromtimestamp(since, zone).date() - 2 * _DAY
    last = datetime.fromtimestamp(until, zone).date()
    while day <= last:
        for one in times.hours:
            if day.weekday() in one.days:
                ending = day if one.end > one.begin else day + _DAY
                yield _at(day, one.begin, zone), _at(ending, one.end, zone)
        day += _DAY


def _at(day: date, minutes: int, zone: tzinfo) -> int:
    """When the clock there shows it. Of a time that it shows twice, the first; of one that it
    leaves out, as much later."""
    wall = datetime(day.year, day.month, day.day) + timedelta(minutes=minutes)
    return int(wall.replace(tzinfo=zone).timestamp())
