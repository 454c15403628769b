"""`tertulia usage`: the number of active people, and the people and channels that use the most
space."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Final

import msgspec
import typer

from tertulia.app.acting import opened_caller
from tertulia.app.founding import founded_database
from tertulia.cli.commands import Column, Printed, configured, listing, report
from tertulia.cli.tables import day, mib
from tertulia.cli.terminal import progress_bars
from tertulia.service import usage as counting
from tertulia.service.config import Config
from tertulia.service.node import Caller
from tertulia.service.usage import CountedElsewhere
from tertulia.state.state import State
from tertulia.store import queries
from tertulia.store import usage as counts
from tertulia.store.schema_upgrade import require_usable
from tertulia.store.usage import ChannelFiles, Period

EXAMPLE = "Example: `tertulia usage --data-dir data`, or `tertulia usage --by channel --days 365`"
_LONGEST_SECONDS: Final = 6 * 3600.0
"""The timeout in seconds. The first count of a large organization takes long; results so far are
kept."""
_REST_SECONDS: Final = 0.5
"""The pause in seconds before checking again whether a server has finished counting."""


class By(StrEnum):
    """The categories that usage is counted by."""

    DAY = "day"
    WEEK = "week"
    PERSON = "person"
    CHANNEL = "channel"


@configured
async def usage(
    config: Config,
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
) -> Printed:
    """Show how many people used Tertulia today, in the last 7 days, and in the last 30 days.

    People count if they typed or clicked in a client. With --by, messages and files are counted,
    too, so that you can see who or what uses the most space. Days are in UTC. Messages count on the
    day they were sent, even if they were deleted later. Counts are stored, so only the first run
    takes long. The server counts, too, and shows the same statistics in the browser.
    """
    if by is not None:
        return await _detailed(config, by, days)
    with founded_database(config) as connection:
        require_usable(connection)
        today = counts.day_of(time.time())
        spans = {"today": today, "days_7": today - 6, "days_30": today - 29}
        active = {name: queries.users_since(connection, day) for name, day in spans.items()}
    labels = {"today": "today", "days_7": "7 days", "days_30": "30 days"}
    return Printed(active, [f"{labels[name]:<7}  {number}" for name, number in active.items()])


async def _detailed(config: Config, by: By, days: int) -> Printed:
    async with opened_caller(config, report) as caller:
        store, now = caller.node.store, caller.now
        await _count(caller)
        until = counts.day_of(now) + 1
        first = until - days
        if by in {By.DAY, By.WEEK}:
            step = counts.WEEK_DAYS if by is By.WEEK else 1
            periods = await store.read(counts.periods, first, until, days=step)
            return _by_time(periods[::-1], weekly=by is By.WEEK)
        if by is By.PERSON:
            return _by_person(caller.state, await store.read(counts.messages_by_author, first))
        messages = await store.read(counts.messages_by_channel, first)
        return _by_channel(caller.state, messages, await store.read(counts.files_by_channel))


async def _count(caller: Caller) -> None:
    """Count new messages, or wait for a server that is counting them."""
    with progress_bars() as progress:
        async with asyncio.timeout(_LONGEST_SECONDS):
            while True:
                try:
                    await counting.count(
                        caller.node.store,
                        lambda: caller.state,
                        caller.now,
                        partial(progress, "messages"),
                        with_files=True,
                    )
                except CountedElsewhere:
                    await asyncio.sleep(_REST_SECONDS)
                else:
                    return


def _by_time(periods: Sequence[Period], *, weekly: bool) -> Printed:
    rows = [msgspec.structs.asdict(period) for period in periods]
    heading = "WEEK OF" if weekly else "DAY"
    columns: dict[str, Column] = {
        heading: ("begins_at", day),
        "PEOPLE": "people",
        "MESSAGES": "messages",
    }
    return listing("periods", columns, rows)


_COUNTS: Final[dict[str, Column]] = {
    "MESSAGES": "messages",
    "FILES": "files",
    "SIZE": ("file_bytes", mib),
}


def _largest_first(rows: Iterable[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Sort by size of files, then by number of messages."""
    return sorted(
        rows, key=lambda fields: (-fields["file_bytes"], -fields["messages"], fields[key] or 0)
    )


def _by_person(state: State, messages: Mapping[int, int]) -> Printed:
    rows = (
        {
            "user_id": user.id,
            "email": user.address,
            "messages": messages.get(user.id, 0),
            "files": state.uploads.of_user.count(user.id),
            "file_bytes": state.uploads.space_of(user.id),
        }
        for user in state.users
    )
    used = (row for row in rows if row["messages"] or row["files"])
    return listing("people", {"EMAIL": "email", **_COUNTS}, _largest_first(used, "user_id"))


def _by_channel(
    state: State, messages: Mapping[int | None, int], files: Sequence[ChannelFiles]
) -> Printed:
    """Count by channel, with None for direct messages. A file counts in each channel that links
    it."""
    by_id = {file.channel_id: file for file in files}

    def row(channel_id: int | None) -> dict[str, Any]:
        channel, linked = state.channels.get(channel_id), by_id.get(channel_id)
        return {
            "channel_id": channel_id,
            "name": None if channel is None else channel.name,
            "messages": messages.get(channel_id, 0),
            "files": linked.files if linked else 0,
            "file_bytes": linked.file_bytes if linked else 0,
        }

    rows = map(row, messages.keys() | by_id.keys())
    columns: dict[str, Column] = {
        "CHANNEL": ("name", lambda name: "direct messages" if name is None else f"#{name}")
    }
    return listing("channels", {**columns, **_COUNTS}, _largest_first(rows, "channel_id"))
