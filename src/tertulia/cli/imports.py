"""`tertulia import`: move an organization in from another chat server."""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from tertulia.app.composition import opened_organization
from tertulia.app.founding import opened_log
from tertulia.cli import live_imports, requested_imports
from tertulia.cli.commands import Printed, configured, done, report
from tertulia.cli.errors import CommandFailed
from tertulia.cli.import_target import opened_target
from tertulia.cli.options import AsJson
from tertulia.imports import canceling
from tertulia.imports.dry_run import dry_run
from tertulia.imports.importer import Importer
from tertulia.imports.invitation_emails import invite
from tertulia.imports.lock import DIRECTORY, ImportBusy, delete_extracted, import_lock
from tertulia.imports.progress import ImportRefused, Progress, Step
from tertulia.imports.reading import Opened, SeparateSource
from tertulia.imports.source import Source, SourceError
from tertulia.imports.stages import Stage, StageProgress
from tertulia.imports.wording import kind_in, lines_of
from tertulia.jobs.imports import only_import
from tertulia.log.log import Log
from tertulia.model.errors import FilesUnavailable, Refused, Unavailable
from tertulia.model.numbers import counted
from tertulia.service.config import Config
from tertulia.service.garbage import collect_rarely, return_freed_memory
from tertulia.state.state import State
from tertulia.store.database import DatabaseError
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
        "--dry-run",
        help="Report what would be imported and what wouldn't, and why. Nothing is written.",
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
LOGGED_SECONDS: Final = 30.0
"""The interval, in seconds, at which progress is printed if the output isn't a terminal."""


@dataclass(frozen=True)
class Choices:
    """Options that all kinds of imports have."""

    is_dry: bool
    new_accounts: bool
    invites: bool
    as_json: bool
    is_followed: bool = False


def run(config: Config, opened: Opened, choices: Choices) -> None:
    """Import from the source that `opened` opens, show progress, and print the report."""
    work = config.data_path / DIRECTORY
    collect_rarely()
    return_freed_memory()
    try:
        with import_lock(work):
            try:
                _run(config, opened, work, choices)
            except SourceError as error:
                delete_extracted(work)  # The export can't be imported, and may be large.
                raise CommandFailed(str(error)) from None
            delete_extracted(work)
    except ImportBusy as busy:
        raise CommandFailed(str(busy)) from None


def _run(config: Config, opened: Opened, work: Path, choices: Choices) -> None:
    with closing(_Bar()) as bar:
        source = SeparateSource(opened, work, bar.show_stage)
        try:
            progress, invited = asyncio.run(_imported(config, source, choices, bar))
        except (ImportRefused, Refused) as error:
            raise CommandFailed(str(error)) from None
        except OSError as error:
            raise _stopped(str(error)) from None
        finally:
            source.close()
    if choices.as_json:
        import json

        typer.echo(json.dumps(_json(progress) | {"invited": invited}, ensure_ascii=False))
        return
    for line in _lines(progress, is_dry=choices.is_dry):
        typer.echo(line)
    if not choices.is_dry:
        typer.echo(_FOLLOW if choices.is_followed else _next_step(invited))


async def _imported(
    config: Config, source: Source, choices: Choices, bar: "_Bar"
) -> tuple[Progress, int | None]:
    """Return the progress, and the number of invited people; None if nobody was to be invited."""
    matches_accounts = not choices.new_accounts
    if choices.is_dry:
        state = await _state(config)
        return await dry_run(source, bar.show, state, matches_accounts=matches_accounts), None
    async with opened_target(config, report) as target:
        importer = Importer(
            target,
            source,
            tell=bar.show,
            is_followed=choices.is_followed,
            matches_accounts=matches_accounts,
        )
        try:
            progress = await only_import(target.log, config.data_path, importer.run)
        except Unavailable as error:
            raise _stopped(_reason(error, target.log)) from None
        return progress, await _invited(target.log, config) if choices.invites else None


def _stopped(reason: str) -> CommandFailed:
    return CommandFailed(
        f"The import stopped: {reason.rstrip('.')}. Run the same command again to continue it."
    )


def _reason(error: Unavailable, log: Log) -> str:
    """Return why the import's changes couldn't be saved."""
    if isinstance(error, DatabaseError | FilesUnavailable):
        return str(error)
    if log.freshness.newer:
        return log.freshness.newer
    if notes := getattr(error, "__notes__", ()):  # `ImportCommits.commit` adds the reason.
        return str(notes[0].partition(": ")[2] or notes[0])
    return (
        "The database didn't respond in time. The database or this machine may be overloaded, or"
        " this process may have been suspended"
    )


async def _invited(log: Log, config: Config) -> int:
    return await invite(log, config.mail_site, config.invitations_per_day)


async def _state(config: Config) -> State:
    """Return a copy of the organization's state, which is empty if there's none yet."""
    if not database_at(config.data_path, config.database_url).exists():
        return State()
    async with opened_log(config, report) as log:
        return log.state


class _Bar:
    """Shows progress, on a terminal in one line, otherwise in a line every `LOGGED_SECONDS`."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = time.monotonic()
        self._stage: tuple[Stage, int] | None = None
        self._first = (0.0, 0)
        """When the current stage was first shown, and how much of it was done then."""

    def show(self, progress: Progress) -> None:
        """Show the progress of writing."""
        self._print(lambda: _state_of(progress))

    def show_stage(self, progress: StageProgress) -> None:
        """Show the progress of opening the export."""
        now = time.monotonic()
        if self._stage != (progress.stage, progress.whole):
            self._stage = progress.stage, progress.whole
            self._first = now, progress.done
        began, before = self._first
        seconds, done = now - began, progress.done - before
        left = (progress.whole - progress.done) * seconds / done if done > 0 else None
        self._print(lambda: _stage_of(progress, left))

    def _print(self, text: Callable[[], str]) -> None:
        if self._is_terminal:
            print(f"\r\x1b[K{text()}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._shown_at >= LOGGED_SECONDS:
            self._shown_at = time.monotonic()
            print(text(), file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


_STAGES: Final[Mapping[Stage, str]] = {
    "extracting": "Extracting the export",
    "reading": "Reading the export",
    "sorting": "Sorting the messages",
}
_STEPS: Final[Mapping[Step, str]] = {
    "founding": "Creating the organization",
    "accounts": "Importing people",
    "groups": "Importing groups",
    "channels": "Importing channels and subscriptions",
    "rest": "Importing settings and pictures",
    "end": "Finishing",
    "done": "Finishing",
}


def _stage_of(progress: StageProgress, left: float | None) -> str:
    share = 100 * progress.done / max(progress.whole, progress.done, 1)
    text = f"{_STAGES[progress.stage]} ({share:.0f}%)"
    return text + (f", about {_duration(max(0, left))} left" if left is not None else "")


def _state_of(progress: Progress) -> str:
    if progress.step != "messages":
        return f"{_STEPS[progress.step]}…"
    share = 100 * progress.messages / max(progress.expected, progress.messages, 1)
    messages = kind_in("en", "messages", progress.expected)
    text = f"{progress.messages:,} of {progress.expected:,} {messages} ({share:.0f}%)"
    now = time.time()
    if rate := progress.recent_rate(now):
        text += f", {rate:,.0f} a second"
    if left := progress.seconds_left(now):
        text += f", about {_duration(left)} left"
    return text


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
    lines = [f"{'Would import' if is_dry else 'Imported'} from {progress.origin}:"]
    lines += lines_of(progress.report, samples=2)
    if not is_dry and (rate := progress.rate(progress.ended_at)):
        lines.append(f"{counted(round(rate), 'message')} a second.")
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
    """Give up an import that isn't finished. What has been imported stays; the rest can't be
    imported later.

    Until then, no other import can begin. Stop the command first if it's running.
    """
    try:
        with import_lock(config.data_path / DIRECTORY):
            async with opened_organization(config, report) as (log, _):
                progress = await only_import(log, config.data_path, lambda: canceling.cancel(log))
    except ImportRefused as refused:
        raise CommandFailed(str(refused)) from None
    lines = [
        f"Canceled the import from {progress.origin}. Imported {progress.messages:,} of"
        f" {counted(max(progress.expected, progress.messages), 'message')}. They stay."
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
        Choices(dry_run, new_accounts, invites, as_json),
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
        Choices(dry_run, new_accounts, invites, as_json),
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
        Choices(dry_run, new_accounts, invites, as_json, is_followed=live),
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
            help="A Slack token with the scope `files:read`, if the links to files don't contain"
            " one.",
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
        Choices(dry_run, new_accounts, invites, as_json),
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
