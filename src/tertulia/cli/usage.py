"""`tertulia usage`: how much the installation is used, and by whom."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Final

import msgspec
import typer
from msgspec import Struct

from tertulia.app.acting import opened_caller
from tertulia.app.config import load
from tertulia.app.founding import founded_database
from tertulia.cli.commands import Printed, show
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.cli.progress import shown
from tertulia.cli.tables import day, mib, table
from tertulia.service import usage as counting
from tertulia.service.caller import Caller
from tertulia.service.config import Config
from tertulia.service.usage import CountedElsewhere
from tertulia.state.organization import State
from tertulia.store import queries
from tertulia.store import usage as counts
from tertulia.store.migrations import require_usable
from tertulia.store.usage import Files, Period

EXAMPLE = "Example: `tertulia usage --data-dir data`, or `tertulia usage --by channel --days 365`"
_LONGEST_SECONDS: Final = 6 * 3600.0
"""An organization that was never counted takes its time; what was counted is kept."""
_REST_SECONDS: Final = 0.5
"""Between two looks at whether a server that counts just now has done so."""


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
            help="Also count messages: by day or week, with active people; by person or"
            " channel, with uploaded files."
        ),
    ] = None,
    days: Annotated[
        int,
        typer.Option(min=1, max=36_500, help="With --by: number of days to count messages for."),
    ] = 30,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show how many people used Tertulia today, in the last 7 days, and in the last 30 days.

    People count if they typed or clicked in a client. With --by, messages and files are counted,
    too, so that you can see who or what uses the most space. Days are in UTC. Messages count on the
    day they were sent, even if they were deleted later. Counts are stored, so only the first run
    takes long. The server counts, too, and shows the same statistics in the browser.
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
    async with opened_caller(settings, lambda line: typer.echo(line, err=True)) as caller:
        store, now = caller.node.store, caller.now
        await _count(caller)
        until = counts.day_of(now) + 1
        first = until - days
        if by in {By.DAY, By.WEEK}:
            step = counts.WEEK_DAYS if by is By.WEEK else 1
            found = await store.read(counts.periods, first, until, days=step)
            return _by_time(found[::-1], weekly=by is By.WEEK)
        if by is By.PERSON:
            return _by_person(caller.state, await store.read(counts.messages_by_author, first))
        messages = await store.read(counts.messages_by_channel, first)
        return _by_channel(caller.state, messages, await store.read(counts.files_by_channel))


async def _count(caller: Caller) -> None:
    """Count what was not counted yet, or let the server that does so just now come to its end."""
    with shown() as report:
        async with asyncio.timeout(_LONGEST_SECONDS):
            while True:
                try:
                    await counting.count(
                        caller.node.store,
                        lambda: caller.state,
                        caller.now,
                        partial(report, "messages"),
                        with_files=True,
                    )
                except CountedElsewhere:
                    await asyncio.sleep(_REST_SECONDS)
                else:
                    return


def _by_time(periods: Sequence[Period], *, weekly: bool) -> Printed:
    rows = ((day(one.begins_at), str(one.people), str(one.messages)) for one in periods)
    heading = "WEEK OF" if weekly else "DAY"
    return Printed(Periods(periods=list(periods)), table((heading, "PEOPLE", "MESSAGES"), rows))


def _by_person(state: State, messages: Mapping[int, int]) -> Printed:
    found = [
        OfPerson(
            user_id=one.id,
            email=one.address,
            messages=messages.get(one.id, 0),
            files=state.uploads.of_user.count(one.id),
            file_bytes=state.uploads.space_of(one.id),
        )
        for one in state.users
    ]
    found = [one for one in found if one.messages or one.files]
    found.sort(key=lambda one: (-one.file_bytes, -one.messages, one.user_id))
    rows = ((one.email, str(one.messages), str(one.files), mib(one.file_bytes)) for one in found)
    headings = ("EMAIL", "MESSAGES", "FILES", "SIZE")
    return Printed(OfPeople(people=found), table(headings, rows))


def _by_channel(
    state: State, messages: Mapping[int | None, int], files: Sequence[Files]
) -> Printed:
    by_id = {one.channel_id: one for one in files}

    def name(channel_id: int | None) -> str | None:
        channel = state.channels.get(channel_id)
        return None if channel is None else channel.name

    found = [
        OfChannel(
            channel_id=channel_id,
            name=name(channel_id),
            messages=messages.get(channel_id, 0),
            files=by_id[channel_id].files if channel_id in by_id else 0,
            file_bytes=by_id[channel_id].file_bytes if channel_id in by_id else 0,
        )
        for channel_id in messages.keys() | by_id.keys()
    ]
    found.sort(key=lambda one: (-one.file_bytes, -one.messages, one.channel_id or 0))
    rows = (
        (
            *("direct messages" if one.name is None else f"#{one.name}", str(one.messages)),
            *(str(one.files), mib(one.file_bytes)),
        )
        for one in found
    )
    headings = ("CHANNEL", "MESSAGES", "FILES", "SIZE")
    return Printed(OfChannels(channels=found), table(headings, rows))
