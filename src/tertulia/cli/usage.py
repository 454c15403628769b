"""`tertulia usage`: how much the installation is used, and by whom."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from enum import StrEnum
from typing import Annotated, Final

import msgspec
import typer
from msgspec import Struct

from tertulia.app.acting import opened_caller
from tertulia.app.config import load
from tertulia.app.founding import founded_database
from tertulia.cli.commands import Printed, show
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.cli.tables import day, table
from tertulia.service.config import Config
from tertulia.state.organization import State
from tertulia.store import queries
from tertulia.store import usage as counts
from tertulia.store.database import Connection
from tertulia.store.migrations import require_usable

EXAMPLE = "Example: `tertulia usage --data-dir data`, or `tertulia usage --by channel --days 365`"
_MIB: Final = 2**20


class By(StrEnum):
    """What to count by."""

    DAY = "day"
    WEEK = "week"
    PERSON = "person"
    CHANNEL = "channel"


class Usage(Struct, frozen=True, kw_only=True):
    """How many people gave input to a client: today (in UTC), and in so many days with today."""

    today: int
    days_7: int
    days_30: int


class Period(Struct, frozen=True, kw_only=True):
    """A day or a week, of UTC."""

    begins_at: int
    """UNIX seconds."""
    people: int
    """Those who gave input to a client."""
    messages: int


class Periods(Struct, frozen=True, kw_only=True):
    """The latest first."""

    periods: list[Period]


class OfPerson(Struct, frozen=True, kw_only=True):
    """What an account wrote in the time asked for, and what it has uploaded at all."""

    user_id: int
    email: str
    messages: int
    files: int
    file_bytes: int


class OfPeople(Struct, frozen=True, kw_only=True):
    """Those with most in files first, and of these with most messages."""

    people: list[OfPerson]


class OfChannel(Struct, frozen=True, kw_only=True):
    """What was written in a channel in the time asked for, and the files that its messages link. (A
    file that is linked in several counts in each.)"""

    channel_id: int | None
    """None for direct messages."""
    name: str | None
    messages: int
    files: int
    file_bytes: int


class OfChannels(Struct, frozen=True, kw_only=True):
    """Those with most in files first, and of these with most messages."""

    channels: list[OfChannel]


def usage(
    by: Annotated[
        By | None,
        typer.Option(
            help="Count messages too: by day or week, with people; by person or channel, with"
            " uploaded files."
        ),
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=36_500, help="With --by: messages of so many days.")
    ] = 30,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Count the people who use it: by whether they typed or clicked in a client, day by day.

    With --by, messages and files as well, to see who or what needs the room. Days are of UTC.
    Messages that were deleted do not count.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    if by is not None:
        show(asyncio.run(_detailed(settings, by, days)), as_json=as_json)
        return
    with founded_database(settings) as connection:
        require_usable(connection)
        today = counts.day_of(time.time())
        found = Usage(
            today=queries.users_since(connection, today),
            days_7=queries.users_since(connection, today - 6),
            days_30=queries.users_since(connection, today - 29),
        )
    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
        return
    typer.echo(f"today    {found.today}")
    typer.echo(f"7 days   {found.days_7}")
    typer.echo(f"30 days  {found.days_30}")


async def _detailed(settings: Config, by: By, days: int) -> Printed:
    first = counts.day_of(time.time()) - days + 1
    with founded_database(settings) as connection:  # It may take longer than a server's reads.
        require_usable(connection)
        if by in {By.DAY, By.WEEK}:
            return _by_time(connection, first, weekly=by is By.WEEK)
        of_authors = counts.messages_by_author(connection, first)
        of_channels = counts.messages_by_channel(connection, first)
        files = counts.files_by_channel(connection)
    async with opened_caller(settings, lambda line: typer.echo(line, err=True)) as caller:
        if by is By.PERSON:
            return _by_person(caller.state, of_authors)
        return _by_channel(caller.state, of_channels, files)


def _by_time(connection: Connection, first: int, *, weekly: bool) -> Printed:
    step = counts.WEEK_DAYS if weekly else 1
    if weekly:
        first = counts.monday_of(first)
        people = counts.people_by_week(connection, first)
    else:
        people = counts.people_by_day(connection, first)
    messages: dict[int, int] = defaultdict(int)
    for one, number in counts.messages_by_day(connection, first).items():
        messages[counts.monday_of(one) if weekly else one] += number
    periods = [
        Period(
            begins_at=begin * counts.DAY,
            people=people.get(begin, 0),
            messages=messages.get(begin, 0),
        )
        for begin in reversed(range(first, counts.day_of(time.time()) + 1, step))
    ]
    rows = ((day(one.begins_at), str(one.people), str(one.messages)) for one in periods)
    heading = "WEEK OF" if weekly else "DAY"
    return Printed(Periods(periods=periods), table((heading, "PEOPLE", "MESSAGES"), rows))


def _by_person(state: State, messages: Mapping[int, int]) -> Printed:
    found = [
        OfPerson(
            user_id=one.id,
            email=one.address,
            messages=messages.get(one.id, 0),
            files=state.uploads.of_user.count(one.id),
            file_bytes=sum(file.size for file in state.uploads.of_user[one.id]),
        )
        for one in state.users
    ]
    found = [one for one in found if one.messages or one.files]
    found.sort(key=lambda one: (-one.file_bytes, -one.messages, one.user_id))
    rows = ((one.email, str(one.messages), str(one.files), _mib(one.file_bytes)) for one in found)
    headings = ("EMAIL", "MESSAGES", "FILES", "SIZE")
    return Printed(OfPeople(people=found), table(headings, rows))


def _by_channel(
    state: State, messages: Mapping[int | None, int], files: Mapping[int | None, Set[int]]
) -> Printed:
    def size(ids: Iterable[int]) -> int:
        every = (state.attachments.get(one) for one in ids)
        return sum(one.size for one in every if one is not None)

    def name(channel_id: int | None) -> str | None:
        channel = state.channels.get(channel_id)
        return None if channel is None else channel.name

    found = [
        OfChannel(
            channel_id=channel_id,
            name=name(channel_id),
            messages=messages.get(channel_id, 0),
            files=len(files.get(channel_id, ())),
            file_bytes=size(files.get(channel_id, ())),
        )
        for channel_id in messages.keys() | files.keys()
    ]
    found.sort(key=lambda one: (-one.file_bytes, -one.messages, one.channel_id or 0))
    rows = (
        (
            *("direct messages" if one.name is None else f"#{one.name}", str(one.messages)),
            *(str(one.files), _mib(one.file_bytes)),
        )
        for one in found
    )
    headings = ("CHANNEL", "MESSAGES", "FILES", "SIZE")
    return Printed(OfChannels(channels=found), table(headings, rows))


def _mib(size: int) -> str:
    return f"{size / _MIB:.1f} MiB"
