"""`tertulia import`: move an organization in from another chat server."""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.app.composition import opened_organization
from tertulia.app.founding import opened_log, opened_vault, require_fitting
from tertulia.cli import live_imports, requested_imports
from tertulia.cli.commands import Printed, configured, done, report
from tertulia.cli.errors import CommandFailed
from tertulia.cli.options import AsJson
from tertulia.imports import canceling
from tertulia.imports.arrivals import invite
from tertulia.imports.dry_run import dry_run
from tertulia.imports.importer import Importer
from tertulia.imports.lock import DIRECTORY, ImportBusy, alone, delete_extracted
from tertulia.imports.progress import ImportRefused, Progress
from tertulia.imports.reading import SeparateSource
from tertulia.imports.source import Source, SourceError
from tertulia.jobs.imports import only_import
from tertulia.log.log import Log
from tertulia.model.errors import Refused, Unavailable
from tertulia.model.numbers import counted
from tertulia.service.config import Config
from tertulia.service.garbage import collect_rarely
from tertulia.service.links import Links, external_media
from tertulia.state.state import State
from tertulia.store.store import database_at

app = typer.Typer(
    name="import",
    help="Move an organization in from another chat server.\n\nThe server can be running. An"
    " interrupted import continues when you run the same command again.",
    no_args_is_help=True,
)

ExportPath = Annotated[
    Path, typer.Argument(metavar="PATH", help="The export: an archive, or its directory.")
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Only tell what would be imported, what wouldn't, and why. Write nothing."
    ),
]
Invites = Annotated[
    bool,
    typer.Option("--invite", help="Then email everyone a link to set a password."),
]
NewAccounts = Annotated[
    bool,
    typer.Option(
        "--new-accounts",
        help="Give everyone a new account, even if their email address has one here. Use it for an"
        " export that you don't trust: it can't attribute messages to people here then.",
    ),
]
Opened = Callable[[Path], Source]
"""Opens the source, with a directory for extracted files. It's pickled."""


def run(
    config: Config,
    opened: Opened,
    *,
    is_dry: bool,
    as_json: bool,
    invites: bool = False,
    is_followed: bool = False,
    new_accounts: bool = False,
) -> None:
    """Import from the source that `opened` opens, show progress, and print the report. With
    `invites`, email the imported people."""
    work = config.data_path / DIRECTORY
    collect_rarely()
    try:
        with alone(work):
            _run(
                config,
                opened,
                work,
                is_dry=is_dry,
                as_json=as_json,
                invites=invites,
                is_followed=is_followed,
                new_accounts=new_accounts,
            )
            delete_extracted(work)
    except ImportBusy as busy:
        raise CommandFailed(str(busy)) from None


def _run(
    config: Config,
    opened: Opened,
    work: Path,
    *,
    is_dry: bool,
    as_json: bool,
    invites: bool,
    is_followed: bool,
    new_accounts: bool,
) -> None:
    try:
        source = SeparateSource(opened, work)
    except SourceError as error:
        raise CommandFailed(str(error)) from None
    try:
        progress, invited = asyncio.run(
            _imported(
                config,
                source,
                is_dry=is_dry,
                invites=invites,
                is_followed=is_followed,
                new_accounts=new_accounts,
            )
        )
    except (SourceError, ImportRefused, Refused) as error:
        raise CommandFailed(str(error)) from None
    except OSError as error:
        raise CommandFailed(
            f"The import stopped: {error}. Run the same command again to continue it."
        ) from None
    except Unavailable:
        raise CommandFailed(
            "The import stopped because the database can't be written to. The lines above say why,"
            " such as a full disk. Run the same command again to continue it."
        ) from None
    finally:
        source.close()
    if as_json:
        import json

        typer.echo(json.dumps(_json(progress) | {"invited": invited}, ensure_ascii=False))
        return
    for line in _lines(progress, is_dry=is_dry):
        typer.echo(line)
    if not is_dry:
        typer.echo(_FOLLOW if is_followed else _next_step(invited))


async def _imported(
    config: Config,
    source: Source,
    *,
    is_dry: bool,
    invites: bool,
    is_followed: bool,
    new_accounts: bool,
) -> tuple[Progress, int | None]:
    """Return the progress, and how many people were invited; None if nobody was to be."""
    if is_dry:
        state = await _state(config)
        tried = partial(dry_run, source, _Bar().show, state, matches_accounts=not new_accounts)
        return await asyncio.to_thread(tried), None
    vault = opened_vault(config, create=True)
    files, disk = config.opened_files()
    bar = _Bar()
    try:
        async with opened_log(config, report) as log:
            if not log.state.is_empty:
                await require_fitting(log, vault)
            importer = Importer(
                log,
                vault,
                files,
                disk,
                source,
                site=config.external_url,
                media=external_media(config, Links(vault)),
                tell=bar.show,
                is_followed=is_followed,
                matches_accounts=not new_accounts,
            )
            progress = await only_import(log, config.data_path, importer.run)
            return progress, await _invited(log, config) if invites else None
    finally:
        bar.end()
        await files.close()
        vault.close()


async def _invited(log: Log, config: Config) -> int:
    return await invite(log, config.mail_site, config.invitations_per_day)


async def _state(config: Config) -> State:
    """Return a copy of the organization's state, which is empty if there's none yet."""
    if not database_at(config.data_path, config.database_url).exists():
        return State()
    async with opened_log(config, report) as log:
        return log.state


class _Bar:
    """Shows progress on a terminal."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._began: tuple[float, int] | None = None

    def show(self, progress: Progress) -> None:
        if not self._is_shown:
            return
        if progress.step != "messages":
            print(f"\r\x1b[K{progress.step}…", end="", file=sys.stderr, flush=True)
            return
        import time

        now = time.monotonic()
        began, first = self._began = self._began or (now, progress.messages)
        rate = (progress.messages - first) / (now - began) if now > began else 0
        left = max(0, progress.expected - progress.messages) / rate if rate else 0
        share = 100 * progress.messages / max(progress.expected, progress.messages, 1)
        text = f"{progress.messages:,} of {progress.expected:,} messages ({share:.0f} %)"
        if left:
            text += f", {rate:,.0f} a second, about {_duration(left)} left"
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return counted(round(seconds), "second")
    if seconds < 5400:
        return counted(round(seconds / 60), "minute")
    return counted(round(seconds / 3600), "hour")


def _json(progress: Progress) -> dict[str, Any]:
    return {
        "kind": progress.kind,
        "origin": progress.origin,
        "started_at": progress.started_at,
        "ended_at": progress.ended_at,
        **progress.report.to_json(),
    }


def _lines(progress: Progress, *, is_dry: bool) -> list[str]:
    report = progress.report
    lines = [f"{'Would import' if is_dry else 'Imported'} from {progress.origin}:"]
    lines += [f"  {number:>10,}  {kind}" for kind, number in sorted(report.imported.items())]
    for title, remarks in (("Skipped:", report.skipped), ("Changed:", report.changed)):
        if remarks:
            lines.append(title)
        for one in remarks.values():
            lines.append(f"  {one.count:>10,}  {one.kind}. {one.reason}")
            lines += [f"              {sample}" for sample in one.samples[:2]]
    return lines


_FOLLOW = (
    "Next: run `tertulia import zulip-live` with the address of the Zulip server, so that what"
    " people write there arrives here. When they are to use this server, run `tertulia import"
    " finish`."
)


def _next_step(invited: int | None) -> str:
    if invited is not None:
        return (
            f"{counted(invited, 'person', 'people')} will get an email with a link to set a"
            " password, as soon as the server runs."
        )
    return (
        "Next: start the server with `tertulia serve`, sign in with `Forgot password?` on the"
        " sign-in page, and invite everyone with `tertulia import invite`."
    )


@app.command("invite", epilog="Example: `tertulia import invite --data-dir data`")
@configured
async def invite_people(config: Config) -> Printed:
    """Email everyone who was imported and hasn't signed in yet.

    Each email has a link to set a password, which is valid for 14 days. You can run this again
    to remind people. The running server sends the emails.
    """
    async with opened_organization(config, report) as (log, _):
        invited = await _invited(log, config)
    return done(f"{counted(invited, 'person', 'people')} will get an email.")


@app.command("cancel", epilog="Example: `tertulia import cancel --data-dir data`")
@configured
async def cancel_import(config: Config) -> Printed:
    """Give up an import that isn't finished. What has come along stays; the rest can't be imported
    later.

    Until then, no other import can begin. Stop the command first if it's running.
    """
    try:
        with alone(config.data_path / DIRECTORY):
            async with opened_organization(config, report) as (log, _):
                progress = await only_import(log, config.data_path, lambda: canceling.cancel(log))
    except ImportRefused as refused:
        raise CommandFailed(str(refused)) from None
    lines = [
        f"Canceled the import from {progress.origin}. {progress.messages:,} of"
        f" {max(progress.expected, progress.messages):,} messages came along, and stay."
    ]
    if progress.is_new:
        lines.append("To start over, delete the data directory and the database.")
    return done(" ".join(lines))


EXAMPLES = {
    "import": "Example: `tertulia import zulip --data-dir data export.tar.gz`",
}


Live = Annotated[
    bool,
    typer.Option(
        "--live",
        help="People keep writing there: `tertulia import zulip-live` continues. The report is"
        " printed, and not sent as a message, whose ID one there will have.",
    ),
]


Team = Annotated[
    str, typer.Option("--team", metavar="NAME", help="Import only this team, by the name in URLs.")
]


def mattermost(
    config: Config,
    path: ExportPath,
    team: Team = "",
    dry_run: DryRun = False,
    new_accounts: NewAccounts = False,
    invites: Invites = False,
    as_json: AsJson = False,
) -> None:
    """Import a bulk export of Mattermost: the archive of `mmctl export create`, or its .jsonl
    file."""
    from tertulia.imports.mattermost.source import MattermostExport

    run(
        config,
        partial(MattermostExport, path, team=team),
        is_dry=dry_run,
        as_json=as_json,
        invites=invites,
        new_accounts=new_accounts,
    )


app.command(
    "mattermost",
    epilog="Example: `tertulia import mattermost --data-dir data mattermost.zip`",
)(configured(mattermost))

Uploads = Annotated[
    Path | None,
    typer.Option(
        "--files",
        metavar="DIR",
        help="Rocket.Chat's directory of uploads, if it stores them in its file system. Default:"
        " `uploads` in the dump.",
    ),
]


def rocketchat(
    config: Config,
    path: ExportPath,
    files: Uploads = None,
    dry_run: DryRun = False,
    new_accounts: NewAccounts = False,
    invites: Invites = False,
    as_json: AsJson = False,
) -> None:
    """Import a dump of Rocket.Chat's database: the directory that `mongodump` writes, or an archive
    of it."""
    from tertulia.imports.rocketchat.source import RocketChatDump

    run(
        config,
        partial(RocketChatDump, path, files=files),
        is_dry=dry_run,
        as_json=as_json,
        invites=invites,
        new_accounts=new_accounts,
    )


app.command("rocketchat", epilog="Example: `tertulia import rocketchat --data-dir data dump/`")(
    configured(rocketchat)
)


def zulip(
    config: Config,
    path: ExportPath,
    dry_run: DryRun = False,
    new_accounts: NewAccounts = False,
    invites: Invites = False,
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Import an export of a Zulip server from 2023 or later: export.tar.gz, or its directory. In a
    new organization, all IDs stay, so links and bots keep working."""
    from tertulia.imports.zulip.source import ZulipExport

    run(
        config,
        partial(ZulipExport, path),
        is_dry=dry_run,
        as_json=as_json,
        invites=invites,
        is_followed=live,
        new_accounts=new_accounts,
    )


app.command("zulip", epilog=EXAMPLES["import"])(configured(zulip))


def slack(
    config: Config,
    path: ExportPath,
    token: Annotated[
        str,
        typer.Option(
            envvar="SLACK_TOKEN",
            metavar="TOKEN",
            help="A token of Slack with the scope `files:read`, if the files' links need one.",
        ),
    ] = "",
    name: Annotated[
        str,
        typer.Option(
            help="Name of the new organization. The default is in the name of Slack's archive."
        ),
    ] = "",
    dry_run: DryRun = False,
    new_accounts: NewAccounts = False,
    invites: Invites = False,
    as_json: AsJson = False,
) -> None:
    """Import an export of Slack: the archive that its administrators download, or its
    directory."""
    from tertulia.imports.slack.export import SlackExport

    run(
        config,
        partial(SlackExport, path, token=token, name=name),
        is_dry=dry_run,
        as_json=as_json,
        invites=invites,
        new_accounts=new_accounts,
    )


app.command(
    "slack",
    epilog="Example: `tertulia import slack --data-dir data --token xoxp-… slack-export.zip`",
)(configured(slack))
app.command("requested", hidden=True)(configured(requested_imports.requested))
app.command("zulip-live", epilog=live_imports.EXAMPLE)(configured(live_imports.zulip_live))
app.command("finish", epilog="Example: `tertulia import finish --data-dir data`")(
    configured(live_imports.finish)
)
