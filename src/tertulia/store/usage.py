"""How much an installation is used: counts of people and messages, by time, author and channel.

Each looks at every row of the time asked for: for commands, and not for requests.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from tertulia.store.database import Connection

DAY: Final = 86400
WEEK_DAYS: Final = 7
_MONDAY: Final = 3
"""The first day of UNIX time was a Thursday: so many days after a Monday."""


def day_of(at: float) -> int:
    """The day of UNIX time, in UTC."""
    return int(at) // DAY


def monday_of(day: int) -> int:
    """The Monday of the day's week."""
    return day - (day + _MONDAY) % WEEK_DAYS


def people_by_day(connection: Connection, first: int) -> dict[int, int]:
    """How many gave input to a client on each day from the first; days without any are missing."""
    rows = connection.query(
        "SELECT day, COUNT(*) FROM usage_days WHERE day >= ? GROUP BY day", (first,)
    )
    return {int(day): int(count) for day, count in rows}


def people_by_week(connection: Connection, first: int) -> dict[int, int]:
    """The same by week, each person once; weeks by their Mondays, from the one of the first day."""
    rows = connection.query(
        f"SELECT (day + {_MONDAY}) / {WEEK_DAYS}, COUNT(DISTINCT user_id) FROM usage_days"
        f" WHERE day >= ? GROUP BY (day + {_MONDAY}) / {WEEK_DAYS}",
        (monday_of(first),),
    )
    return {int(week) * WEEK_DAYS - _MONDAY: int(count) for week, count in rows}


def messages_by_day(connection: Connection, first: int) -> dict[int, int]:
    """How many messages were sent on each day from the first and are still there."""
    rows = connection.query(
        f"SELECT sent_at / {DAY}, COUNT(*) FROM messages WHERE sent_at >= ?"
        f" GROUP BY sent_at / {DAY}",
        (first * DAY,),
    )
    return {int(day): int(count) for day, count in rows}


def messages_by_author(connection: Connection, first: int) -> dict[int, int]:
    """How many messages each account sent from that day on that are still there."""
    rows = connection.query(
        "SELECT sender_id, COUNT(*) FROM messages WHERE sent_at >= ? GROUP BY sender_id",
        (first * DAY,),
    )
    return {int(sender): int(count) for sender, count in rows}


def messages_by_channel(connection: Connection, first: int) -> dict[int | None, int]:
    """The same by channel; None for direct messages."""
    rows = connection.query(
        "SELECT channel_id, COUNT(*) FROM messages WHERE sent_at >= ? GROUP BY channel_id",
        (first * DAY,),
    )
    return {channel_id: int(count) for channel_id, count in rows}


def files_by_channel(connection: Connection) -> Mapping[int | None, set[int]]:
    """The IDs of the files that messages link, by channel; None for direct messages."""
    rows = connection.query(
        "SELECT DISTINCT messages.channel_id, attachment_messages.attachment_id"
        " FROM attachment_messages JOIN messages ON messages.id = attachment_messages.message_id"
    )
    found: dict[int | None, set[int]] = defaultdict(set)
    for channel_id, attachment_id in rows:
        found[channel_id].add(int(attachment_id))
    return found
