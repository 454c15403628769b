"""Quiet hours in a person's own time zone, including daylight saving time."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tertulia.domain.notifications import quiet
from tertulia.model.personal import QuietHours, QuietTimes
from tertulia.model.users import User
from tertulia.state.state import State

EVERY = (0, 1, 2, 3, 4, 5, 6)
NIGHT = QuietHours(days=EVERY, begin=22 * 60, end=7 * 60)
WEEKEND = QuietHours(days=(5, 6), begin=0, end=1440)
MADRID = "Europe/Madrid"


def stage(zone: str, *hours: QuietHours, paused_until: int = 0) -> State:
    state = State()
    state.users.put(User(id=1, address="a@example.com", full_name="A", timezone=zone))
    state.quiet_times.put(QuietTimes(user_id=1, hours=hours, paused_until=paused_until))
    return state


def at(text: str, zone: str = "UTC", fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp())


@pytest.mark.parametrize(
    ("zone", "hours", "now", "until"),
    [
        # A Wednesday evening and the hours around it.
        ("", NIGHT, "2026-11-18 21:59:59", None),
        ("", NIGHT, "2026-11-18 22:00", "2026-11-19 07:00"),
        ("", NIGHT, "2026-11-19 06:59:59", "2026-11-19 07:00"),
        ("", NIGHT, "2026-11-19 07:00", None),
        ("No/Where", NIGHT, "2026-11-18 22:00", "2026-11-19 07:00"),
        (MADRID, NIGHT, "2026-11-18 21:00", "2026-11-19 06:00"),
        ("Asia/Kathmandu", NIGHT, "2026-11-18 16:14", None),
        ("Asia/Kathmandu", NIGHT, "2026-11-18 16:15", "2026-11-19 01:15"),
        # Of two consecutive days, the end of the current one counts.
        ("", WEEKEND, "2026-11-20 23:59", None),
        ("", WEEKEND, "2026-11-21 12:00", "2026-11-22 00:00"),
        ("", WEEKEND, "2026-11-22 23:59", "2026-11-23 00:00"),
        # A night belongs to the day on which it begins.
        ("", QuietHours(days=(4,), begin=1320, end=420), "2026-11-21 06:00", "2026-11-21 07:00"),
        ("", QuietHours(days=(5,), begin=1320, end=420), "2026-11-21 06:00", None),
        # Clocks go forward at 01:00 UTC, so the night is an hour shorter...
        (MADRID, NIGHT, "2026-03-28 21:30", "2026-03-29 05:00"),
        # ... and 02:30 doesn't exist: quiet hours starting then start an hour later.
        (MADRID, QuietHours(days=EVERY, begin=150, end=300), "2026-03-29 01:29", None),
        (
            MADRID,
            QuietHours(days=EVERY, begin=150, end=300),
            "2026-03-29 01:30",
            "2026-03-29 03:00",
        ),
        # Clocks go back at 01:00 UTC: an hour longer, and 02:30 occurs twice. The first one counts.
        (MADRID, NIGHT, "2026-10-24 20:30", "2026-10-25 06:00"),
        (
            MADRID,
            QuietHours(days=EVERY, begin=60, end=150),
            "2026-10-24 23:30",
            "2026-10-25 00:30",
        ),
        (MADRID, QuietHours(days=EVERY, begin=60, end=150), "2026-10-25 01:00", None),
    ],
)
def test_quiet_hours(zone: str, hours: QuietHours, now: str, until: str | None) -> None:
    found = quiet.quiet_until(stage(zone, hours), 1, at(now))
    assert found == (None if until is None else at(until))


def test_consecutive_quiet_hours_and_a_pause_are_merged() -> None:
    monday = at("2026-11-23 00:00")
    state = stage("", WEEKEND, NIGHT, paused_until=at("2026-11-23 09:00"))
    now = at("2026-11-22 12:00")
    first, *others = quiet.spans(state, state.users[1], now, monday + 2 * 86400)
    assert first[0] <= now
    assert first[1] == at("2026-11-23 09:00")
    assert others == [
        (at("2026-11-23 22:00"), at("2026-11-24 07:00")),
        (at("2026-11-24 22:00"), at("2026-11-25 07:00")),
    ]
    assert quiet.quiet_until(state, 1, now) == first[1]
    assert quiet.quiet_until(state, 2, now) is None


def test_quiet_hours_can_cover_the_whole_week() -> None:
    day = QuietHours(days=EVERY, begin=420, end=1320)
    assert quiet.leave_no_time([NIGHT, day])
    assert quiet.leave_no_time([QuietHours(days=EVERY, begin=0, end=1440)])
    assert not quiet.leave_no_time([NIGHT, QuietHours(days=EVERY, begin=421, end=1320)])
    assert not quiet.leave_no_time([])
