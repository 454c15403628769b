"""`tertulia announce`: telling everybody something for a time."""

from typing import Annotated, Final

import typer
from msgspec import Struct

from tertulia.cli.commands import Printed, command, done, group
from tertulia.cli.tables import moment, table
from tertulia.domain.organization import banners
from tertulia.model.banners import Banner
from tertulia.service.caller import Caller

app = group(
    "announce",
    "Tell everybody something, planned maintenance say: a banner in their clients until it ends.",
)
_HOUR: Final = 3600
_DAY: Final = 86400


class Announcement(Struct, frozen=True, kw_only=True):
    """Something that everybody is told. Times are UNIX seconds."""

    id: int
    content: str
    posted_at: int
    ends_at: int


class Announcements(Struct, frozen=True, kw_only=True):
    """The oldest first."""

    announcements: list[Announcement]


def _announcement(banner: Banner) -> Announcement:
    return Announcement(
        id=banner.id,
        content=banner.content,
        posted_at=banner.posted_at,
        ends_at=banner.ends_at,
    )


@command(app, "post", "announce post 'Down for an hour tonight at nine.' --hours 8")
async def post(
    caller: Caller,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Plain text, 500 characters.")],
    days: Annotated[int, typer.Option(min=0, max=366, help="Show it for so many days;")] = 0,
    hours: Annotated[
        int, typer.Option(min=0, max=366 * 24, help="or hours. Both together; without, a week.")
    ] = 0,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", help="Only the banner, and no message in the channel for announcements."
        ),
    ] = False,
) -> Printed:
    """Tell everybody something: a banner until its end, or until each has put it away.

    The notification bot says it too in the channel that the setting
    updates_announcements_channel_id names, if one is set: not every client has banners.
    """
    seconds = days * _DAY + hours * _HOUR or 7 * _DAY
    posted = await caller.submit(banners.post, text, seconds, not quiet, caller.render)
    sentence = f"Everybody is told until {moment(posted.ends_at)}. Its ID is {posted.id}."
    return Printed(_announcement(posted), [sentence])


@command(app, "list", "announce list --data-dir data")
async def list_announcements(caller: Caller) -> Printed:
    """List what everybody is told just now."""
    found = list(map(_announcement, sorted(caller.state.banners, key=lambda one: one.id)))
    rows = ((str(one.id), moment(one.ends_at), one.content) for one in found)
    return Printed(Announcements(announcements=found), table(("ID", "ENDS", "TEXT"), rows))


@command(app, "end", "announce end 3 --data-dir data")
async def end(
    caller: Caller,
    which: Annotated[int, typer.Argument(metavar="ID", help="As `list` shows it.")],
) -> Printed:
    """Show an announcement to nobody any more. What the bot has said stays."""
    await caller.submit(banners.end, which)
    return done("It is shown no more.")
