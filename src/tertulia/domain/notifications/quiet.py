"""Quiet times: paused notifications and weekly quiet hours."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tertulia.model.personal import QuietHours, QuietTimes
from tertulia.model.users import User
from tertulia.state.state import State

QuietSpan = tuple[int, int]
"""Start and end, in UNIX seconds."""

_DAY: Final = timedelta(days=1)


def zone_of(user: User) -> tzinfo:
    """Return the user's time zone, or UTC if it's unset or unknown."""
    try:
        return ZoneInfo(user.timezone) if user.timezone else UTC
    except ZoneInfoNotFoundError:
        return UTC


def spans(
    state: State, user: User, since: float, until: float, channel_id: int | None = None
) -> list[QuietSpan]:
    """Return the user's quiet times that overlap the given period, in order, with adjacent ones
    merged. The first may have begun earlier. Quiet hours for chosen channels count only for a
    `channel_id` among them."""
    times = state.quiet_times.get(user.id)
    return [] if times is None else spans_of(times, zone_of(user), since, until, channel_id)


def spans_of(
    times: QuietTimes, zone: tzinfo, since: float, until: float, channel_id: int | None = None
) -> list[QuietSpan]:
    """Return the same as `spans`, for these quiet times in this time zone."""
    hours = [item for item in times.hours if item.covers(channel_id)]
    results = list(_hours(hours, zone, since, until))
    if times.paused_until > since:
        results.append((int(since), times.paused_until))
    merged: list[QuietSpan] = []
    for begin, end in sorted(results):
        if end <= since or begin > until or begin >= end:
            continue
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def leave_no_time(hours: Sequence[QuietHours]) -> bool:
    """Whether the hours cover the whole week, for all notifications or for a channel."""
    begin, end = 0, 7 * 86400
    always = QuietTimes(user_id=0, hours=tuple(hours))
    channel_ids = {channel_id for item in hours for channel_id in item.channel_ids}
    # Channels with the same hours are alike, so one of them is enough.
    alike = {tuple(item.covers(one) for item in hours): one for one in channel_ids}
    return any(
        start <= begin and other >= end
        for channel_id in (None, *alike.values())
        for start, other in spans_of(always, UTC, begin, end, channel_id)
    )


def quiet_until(
    state: State, user_id: int, now: float, channel_id: int | None = None
) -> int | None:
    """Return the earliest time at which the user's current quiet time can end, in UNIX seconds;
    None if they aren't in one. Quiet hours for chosen channels count only for a `channel_id` among
    them."""
    if user_id not in state.quiet_times:
        return None
    present = spans(state, state.users[user_id], now, now, channel_id)
    return present[0][1] if present else None


def _hours(
    hours: Sequence[QuietHours], zone: tzinfo, since: float, until: float
) -> Iterator[QuietSpan]:
    # Quiet hours that began the day before may still last, and a day can have 25 hours.
    day = datetime.fromtimestamp(since, zone).date() - 2 * _DAY
    last = datetime.fromtimestamp(until, zone).date()
    while day <= last:
        for item in hours:
            if day.weekday() in item.days:
                ending = day if item.end > item.begin else day + _DAY
                yield _at(day, item.begin, zone), _at(ending, item.end, zone)
        day += _DAY


def _at(day: date, minutes: int, zone: tzinfo) -> int:
    """Return when the local clock shows that time: the first of two occurrences, or later if the
    clock skips it."""
    wall = datetime(day.year, day.month, day.day) + timedelta(minutes=minutes)
    return int(wall.replace(tzinfo=zone).timestamp())
