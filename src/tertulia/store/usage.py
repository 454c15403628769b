"""Usage statistics: people, messages, and files by time, author, and channel.

They are updated in small steps (`service/usage.py`) and stored per day, so reading them is cheap.
Messages count on the day they were sent, even if they are deleted later.
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
"""The channel ID that stands for direct messages."""
MESSAGE_BATCH: Final = 1000
"""Messages counted in one step."""
DAY_BATCH: Final = 5 * WEEK_DAYS
"""Days whose people one step counts."""
FILE_BATCH: Final = 1000
"""File IDs whose channels one step looks up."""
_MONDAY: Final = 3
"""UNIX time began on a Thursday, three days after a Monday."""
_COUNTED: Final = "usage.counted"
"""The fact that has the progress."""


class UsageProgress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of the statistics. Times are in UNIX seconds, days are UTC days since 1970."""

    at: float = 0.0
    """The time when everything was last counted (0: never)."""
    message_id: int = 0
    """The last counted message."""
    day: int = 0
    """The day before which daily people are final (0: none)."""
    files_at: float = 0.0
    """The time when files by channel were last counted (0: never)."""


def day_of(at: float) -> int:
    return int(at) // DAY


def monday_of(day: int) -> int:
    return day - (day + _MONDAY) % WEEK_DAYS


def progress(connection: Connection) -> UsageProgress:
    doc = installation.value(connection, _COUNTED)
    return UsageProgress() if doc is None else msgspec.json.decode(doc, type=UsageProgress)


def _come_to(connection: Connection, before: UsageProgress, after: UsageProgress) -> bool:
    """Store the progress. Return False if another node was faster."""
    if progress(connection) != before:
        return False
    installation.put(connection, _COUNTED, msgspec.json.encode(after).decode())
    return True


class NewMessages(Struct, frozen=True, kw_only=True):
    """Messages that weren't counted yet."""

    last_id: int
    is_all: bool


def new_messages(connection: Connection, after: int) -> NewMessages:
    """Return the next `MESSAGE_BATCH` messages after an ID."""
    ((number, last_id),) = connection.query(
        "SELECT COUNT(*), MAX(id) FROM"
        " (SELECT id FROM messages WHERE id > ? ORDER BY id LIMIT ?) AS following",
        (after, MESSAGE_BATCH),
    )
    return NewMessages(last_id=int(last_id or after), is_all=int(number) < MESSAGE_BATCH)


def add_messages(
    connection: Connection, before: UsageProgress, new: NewMessages
) -> UsageProgress | None:
    """Count these messages. Return the new progress, or None if another node was faster.

    The database counts, because rows in Python would delay the event loop.
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
        # In the order of the keys, so that neighboring rows are written together.
        connection.run(
            f"INSERT INTO {table} ({', '.join(columns)}, messages)"
            f" SELECT {', '.join(values)}, COUNT(*) FROM messages WHERE id > ? AND id <= ?"
            " GROUP BY 1, 2 ORDER BY 1, 2"
            f" ON CONFLICT ({', '.join(columns[:2])})"
            f" DO UPDATE SET messages = {table}.messages + excluded.messages",
            (before.message_id, new.last_id),
        )
    return after


class ActivePeople(Struct, frozen=True, kw_only=True):
    """Numbers of active people by day, and by the Monday of the week."""

    until: int
    """The day after the last one counted."""
    of_days: Mapping[int, int]
    of_weeks: Mapping[int, int]


def first_day(connection: Connection) -> int | None:
    """Return the first day with an active person."""
    ((day,),) = connection.query("SELECT MIN(day) FROM usage_days")
    return None if day is None else int(day)


def active_people(connection: Connection, first: int, today: int) -> ActivePeople:
    """Count active people from a day on, up to `DAY_BATCH`, in whole weeks."""
    monday = monday_of(first)
    until = min(monday + DAY_BATCH, today + 1)
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
    connection: Connection, before: UsageProgress, active: ActivePeople, final: int
) -> UsageProgress | None:
    """Store the counts. Days before `final` don't change anymore. Return the same as
    `add_messages`."""
    after = msgspec.structs.replace(before, day=max(before.day, min(active.until, final)))
    if not _come_to(connection, before, after):
        return None
    connection.run_many(
        "INSERT INTO usage_periods (days, begin_day, people, messages) VALUES (?, ?, ?, 0)"
        " ON CONFLICT (days, begin_day) DO UPDATE SET people = excluded.people",
        [
            *((1, day, number) for day, number in sorted(active.of_days.items())),
            *((WEEK_DAYS, day, number) for day, number in sorted(active.of_weeks.items())),
        ],
    )
    return after


def links_of_files(connection: Connection, after: int) -> list[tuple[int, int]]:
    """Return channels (or `DIRECT`) with the attachments linked in them, for the next
    `FILE_BATCH` IDs."""
    rows = connection.query(
        f"SELECT DISTINCT COALESCE(messages.channel_id, {DIRECT}), claims.attachment_id"
        " FROM attachment_messages AS claims JOIN messages ON messages.id = claims.message_id"
        " WHERE claims.attachment_id > ? AND claims.attachment_id <= ?",
        (after, after + FILE_BATCH),
    )
    return [(int(channel), int(attachment)) for channel, attachment in rows]


class ChannelFiles(Struct, frozen=True, kw_only=True):
    """Files linked in a channel."""

    channel_id: int | None
    """None for direct messages."""
    files: int
    file_bytes: int


def put_files(
    connection: Connection, before: UsageProgress, counts: Mapping[int, tuple[int, int]], at: float
) -> UsageProgress | None:
    """Replace the number of files and bytes of each channel. Return the same as `add_messages`."""
    after = msgspec.structs.replace(before, files_at=at)
    if not _come_to(connection, before, after):
        return None
    connection.run("DELETE FROM usage_of_files")
    connection.run_many(
        "INSERT INTO usage_of_files (channel_id, files, bytes) VALUES (?, ?, ?)",
        [(channel, *numbers) for channel, numbers in sorted(counts.items())],
    )
    return after


def finish(connection: Connection, before: UsageProgress, at: float) -> UsageProgress | None:
    """Record the time when everything was counted. Return the same as `add_messages`."""
    after = msgspec.structs.replace(before, at=at)
    return after if _come_to(connection, before, after) else None


class Period(Struct, frozen=True, kw_only=True):
    """A day or week in UTC."""

    begins_at: int
    """UNIX seconds."""
    people: int
    """People who were active."""
    messages: int


def periods(connection: Connection, first: int, until: int, *, days: int = 1) -> list[Period]:
    """Return the days from `first` to before `until`, including empty ones, or with `WEEK_DAYS`
    the weeks."""
    if days == WEEK_DAYS:
        first = monday_of(first)
    rows = connection.query(
        "SELECT begin_day, people, messages FROM usage_periods"
        " WHERE days = ? AND begin_day >= ? AND begin_day < ?",
        (days, first, until),
    )
    result = {int(day): (int(people), int(messages)) for day, people, messages in rows}
    return [
        Period(begins_at=day * DAY, people=people, messages=messages)
        for day in range(first, until, days)
        for people, messages in [result.get(day, (0, 0))]
    ]


def messages_by_author(connection: Connection, first: int) -> dict[int, int]:
    """Return each account's messages since a day."""
    rows = connection.query(
        "SELECT user_id, SUM(messages) FROM usage_of_people WHERE day >= ? GROUP BY user_id",
        (first,),
    )
    return {int(user_id): int(number) for user_id, number in rows}


def messages_by_channel(connection: Connection, first: int) -> dict[int | None, int]:
    """Return each channel's messages since a day. None has direct messages."""
    rows = connection.query(
        "SELECT channel_id, SUM(messages) FROM usage_of_channels WHERE day >= ?"
        " GROUP BY channel_id",
        (first,),
    )
    return {int(channel_id) or None: int(number) for channel_id, number in rows}


def files_by_channel(connection: Connection, limit: int | None = None) -> list[ChannelFiles]:
    """Return the files by channel, largest total first. A file linked in several channels counts
    in each."""
    rows = connection.query(
        "SELECT channel_id, files, bytes FROM usage_of_files ORDER BY bytes DESC, channel_id"
        + ("" if limit is None else f" LIMIT {limit}")
    )
    return [
        ChannelFiles(channel_id=int(channel_id) or None, files=int(files), file_bytes=int(size))
        for channel_id, files, size in rows
    ]
