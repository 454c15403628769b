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
    "Announce something to everyone, such as planned maintenance, with a banner in their client.",
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
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Plain text, up to 500 characters.")],
    days: Annotated[int, typer.Option(min=0, max=366, help="Days to show the banner.")] = 0,
    hours: Annotated[
        int,
        typer.Option(
            min=0,
            max=366 * 24,
            help="Hours to show the banner, added to --days. Default: one week.",
        ),
    ] = 0,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", help="Show only the banner, and don't post in the announcements channel."
        ),
    ] = False,
) -> Printed:
    """Show everyone a banner until it expires or they dismiss it.

    The notification bot also posts the announcement in the channel set by
    updates_announcements_channel_id, if there is one, because not every client shows banners.
    """
    seconds = days * _DAY + hours * _HOUR or 7 * _DAY
    posted = await caller.submit(banners.post, text, seconds, not quiet, caller.render)
    sentence = f"The banner is shown until {moment(posted.ends_at)}. Its ID is {posted.id}."
    return Printed(_announcement(posted), [sentence])


@command(app, "list", "announce list --data-dir data")
async def list_announcements(caller: Caller) -> Printed:
    """List current announcements."""
    found = list(map(_announcement, sorted(caller.state.banners, key=lambda one: one.id)))
    rows = ((str(one.id), moment(one.ends_at), one.content) for one in found)
    return Printed(Announcements(announcements=found), table(("ID", "ENDS", "TEXT"), rows))


@command(app, "end", "announce end 3 --data-dir data")
async def end(
    caller: Caller,
    which: Annotated[int, typer.Argument(metavar="ID", help="ID, as shown by `announce list`.")],
) -> Printed:
    """End an announcement. The bot's message is kept."""
    await caller.submit(banners.end, which)
    return done("The announcement has ended.")
