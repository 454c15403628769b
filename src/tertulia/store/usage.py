"""How much an installation is used: counts of people, messages and files, by time, author and
channel.

They are counted as time goes on (`service/usage.py`), in steps that each look at some rows, and
kept: whoever asks reads a row for each day. Messages count on the day on which they were sent,
whatever becomes of them later.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.store import installation
from tertulia.store.database import Connection

DAY: Final = 86400
WEEK_DAYS: Final = 7
DIRECT: Final = 0
"""Stands for the direct conversations, where channels have their IDs."""
MESSAGES_AT_ONCE: Final = 1000
"""That one step counts."""
DAYS_AT_ONCE: Final = 5 * WEEK_DAYS
"""Of which one step counts the people."""
FILES_AT_ONCE: Final = 1000
"""IDs of files of which one step looks for the channels."""
_MONDAY: Final = 3
"""The first day of UNIX time was a Thursday: so many days after a Monday."""
_COUNTED: Final = "usage.counted"
"""The key of how far it has come, among the facts about the installation."""


class UsageProgress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far it has come. Times are in UNIX seconds, days of UNIX time in UTC."""

    at: float = 0.0
    """When everything was last counted; 0 for never."""
    message_id: int = 0
    """The last message that counts."""
    day: int = 0
    """The day up to which, and without which, the people of each day are final; 0 for none."""
    files_at: float = 0.0
    """When the files of channels were last counted; 0 for never."""


def day_of(at: float) -> int:
    """The day of UNIX time, in UTC."""
    return int(at) // DAY


def monday_of(day: int) -> int:
    """The Monday of the day's week."""
    return day - (day + _MONDAY) % WEEK_DAYS


def progress(connection: Connection) -> UsageProgress:
    """How far it has come."""
    doc = installation.value(connection, _COUNTED)
    return UsageProgress() if doc is None else msgspec.json.decode(doc, type=UsageProgress)


def _come_to(connection: Connection, before: UsageProgress, after: UsageProgress) -> bool:
    """Write down how far it has come; False where another node was faster."""
    if progress(connection) != before:
        return False
    installation.put(connection, _COUNTED, msgspec.json.encode(after).decode())
    return True


# Messages


class NewMessages(Struct, frozen=True, kw_only=True):
    """Messages that were not counted before."""

    last_id: int
    is_all: bool
    """Whether there are no more of them."""


def new_messages(connection: Connection, after: int) -> NewMessages:
    """The next messages after that ID, `MESSAGES_AT_ONCE` at most."""
    ((number, last_id),) = connection.query(
        "SELECT COUNT(*), MAX(id) FROM"
        " (SELECT id FROM messages WHERE id > ? ORDER BY id LIMIT ?) AS following",
        (after, MESSAGES_AT_ONCE),
    )
    return NewMessages(last_id=int(last_id or after), is_all=int(number) < MESSAGES_AT_ONCE)


def add_messages(
    connection: Connection, before: UsageProgress, new: NewMessages
) -> UsageProgress | None:
    """Count these messages, inside the transaction that is open. Returns how far it has come; None
    where another node was faster.

    The database counts: with the rows in Python's hands the event loop would wait for each step.
    """
    after = msgspec.structs.replace(before, message_id=new.last_id)
    if not _come_to(connection, before, after):
        return None
    day = f"sent_at / {DAY}"
    monday = f"{day} - ({day} + {_MONDAY}) % {WEEK_DAYS}"
    for table, columns, values in (
        ("usage_periods", ("days", "begin_day", "people"), ("1", day, "0")),
        ("usage_periods", ("days", "begin_day", "people"), (str(WEEK_DAYS), monday, "0")),
        ("usage_of_people", ("day", "user_id"), (day, "sender_id")),
        ("usage_of_channels", ("day", "channel_id"), (day, f"COALESCE(channel_id, {DIRECT})")),
    ):
        # In the order of the keys, in which they lie beside each other.
        connection.run(
            f"INSERT INTO {table} ({', '.join(columns)}, messages)"
            f" SELECT {', '.join(values)}, COUNT(*) FROM messages WHERE id > ? AND id <= ?"
            " GROUP BY 1, 2 ORDER BY 1, 2"
            f" ON CONFLICT ({', '.join(columns[:2])})"
            f" DO UPDATE SET messages = {table}.messages + excluded.messages",
            (before.message_id, new.last_id),
        )
    return after


# People


class ActivePeople(Struct, frozen=True, kw_only=True):
    """How many gave input to a client, by the day, and by the Monday of the week, each once."""

    until: int
    """The day after the last that was looked at."""
    of_days: Mapping[int, int]
    of_weeks: Mapping[int, int]


def first_day(connection: Connection) -> int | None:
    """The first day on which anybody gave input to a client."""
    ((day,),) = connection.query("SELECT MIN(day) FROM usage_days")
    return None if day is None else int(day)


def active_people(connection: Connection, first: int, today: int) -> ActivePeople:
    """Those of the day and the ones after it, `DAYS_AT_ONCE` at most, in whole weeks."""
    monday = monday_of(first)
    until = min(monday + DAYS_AT_ONCE, today + 1)
    of_days = connection.query(
        "SELECT day, COUNT(*) FROM usage_days WHERE day >= ? AND day < ? GROUP BY day",
        (first, until),
    )
    of_weeks = connection.query(
        f"SELECT (day + {_MONDAY}) / {WEEK_DAYS}, COUNT(DISTINCT user_id) FROM usage_days"
        f" WHERE day >= ? AND day < ? GROUP BY (day + {_MONDAY}) / {WEEK_DAYS}",
        (monday, until),
    )
    return ActivePeople(
        until=until,
        of_days={int(day): int(number) for day, number in of_days},
        of_weeks={int(week) * WEEK_DAYS - _MONDAY: int(number) for week, number in of_weeks},
    )


def put_people(
    connection: Connection, before: UsageProgress, found: ActivePeople, final: int
) -> UsageProgress | None:
    """Keep how many there were, inside the transaction that is open. What is before the day `final`
    does not change any more. Returns as `add_messages`."""
    after = msgspec.structs.replace(before, day=max(before.day, min(found.until, final)))
    if not _come_to(connection, before, after):
        return None
    connection.run_many(
        "INSERT INTO usage_periods (days, begin_day, people, messages) VALUES (?, ?, ?, 0)"
        " ON CONFLICT (days, begin_day) DO UPDATE SET people = excluded.people",
        [
            *((1, day, number) for day, number in sorted(found.of_days.items())),
            *((WEEK_DAYS, day, number) for day, number in sorted(found.of_weeks.items())),
        ],
    )
    return after


# Files


def links_of_files(connection: Connection, after: int) -> list[tuple[int, int]]:
    """The channels (or `DIRECT`) in which files are linked, and these: of the next `FILES_AT_ONCE`
    IDs after that one."""
    rows = connection.query(
        f"SELECT DISTINCT COALESCE(messages.channel_id, {DIRECT}), claims.attachment_id"
        " FROM attachment_messages AS claims JOIN messages ON messages.id = claims.message_id"
        " WHERE claims.attachment_id > ? AND claims.attachment_id <= ?",
        (after, after + FILES_AT_ONCE),
    )
    return [(int(channel), int(attachment)) for channel, attachment in rows]


class ChannelFiles(Struct, frozen=True, kw_only=True):
    """The files that messages of one channel link."""

    channel_id: int | None
    """None for direct messages."""
    files: int
    file_bytes: int


def put_files(
    connection: Connection, before: UsageProgress, found: Mapping[int, tuple[int, int]], at: float
) -> UsageProgress | None:
    """Keep how many files, and bytes, there are in each channel, in place of what was kept before.
    Returns as `add_messages`."""
    after = msgspec.structs.replace(before, files_at=at)
    if not _come_to(connection, before, after):
        return None
    connection.run("DELETE FROM usage_of_files")
    connection.run_many(
        "INSERT INTO usage_of_files (channel_id, files, bytes) VALUES (?, ?, ?)",
        [(channel, *numbers) for channel, numbers in sorted(found.items())],
    )
    return after


def finish(connection: Connection, before: UsageProgress, at: float) -> UsageProgress | None:
    """Say that all was counted at that UNIX time. Returns as `add_messages`."""
    after = msgspec.structs.replace(before, at=at)
    return after if _come_to(connection, before, after) else None


# What was counted


class Period(Struct, frozen=True, kw_only=True):
    """A day or a week, of UTC."""

    begins_at: int
    """UNIX seconds."""
    people: int
    """Those who gave input to a client."""
    messages: int


def periods(connection: Connection, first: int, until: int, *, days: int = 1) -> list[Period]:
    """The days from the first one up to the other, without that, also those on which nothing was;
    or the weeks, with `WEEK_DAYS`, from that of the first day."""
    if days == WEEK_DAYS:
        first = monday_of(first)
    rows = connection.query(
        "SELECT begin_day, people, messages FROM usage_periods"
        " WHERE days = ? AND begin_day >= ? AND begin_day < ?",
        (days, first, until),
    )
    found = {int(day): (int(people), int(messages)) for day, people, messages in rows}
    return [
        Period(begins_at=day * DAY, people=people, messages=messages)
        for day in range(first, until, days)
        for people, messages in [found.get(day, (0, 0))]
    ]


def messages_by_author(connection: Connection, first: int) -> dict[int, int]:
    """How many messages each account sent from that day on."""
    rows = connection.query(
        "SELECT user_id, SUM(messages) FROM usage_of_people WHERE day >= ? GROUP BY user_id",
        (first,),
    )
    return {int(user_id): int(number) for user_id, number in rows}


def messages_by_channel(connection: Connection, first: int) -> dict[int | None, int]:
    """The same by channel; None for direct messages."""
    rows = connection.query(
        "SELECT channel_id, SUM(messages) FROM usage_of_channels WHERE day >= ?"
        " GROUP BY channel_id",
        (first,),
    )
    return {int(channel_id) or None: int(number) for channel_id, number in rows}


def files_by_channel(connection: Connection, limit: int | None = None) -> list[ChannelFiles]:
    """The files that messages link, by channel, those with most bytes first. (A file that is linked
    in several counts in each.)"""
    rows = connection.query(
        "SELECT channel_id, files, bytes FROM usage_of_files ORDER BY bytes DESC, channel_id"
        + ("" if limit is None else f" LIMIT {limit}")
    )
    return [
        ChannelFiles(channel_id=int(channel_id) or None, files=int(files), file_bytes=int(size))
        for channel_id, files, size in rows
    ]
