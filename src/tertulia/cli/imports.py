"""`tertulia import`: move an organization in from another chat server."""

import asyncio
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.app.founding import opened_log, opened_vault, require_fitting
from tertulia.cli.commands import configured, report
from tertulia.cli.errors import CommandFailed
from tertulia.cli.options import AsJson
from tertulia.imports.importer import Importer
from tertulia.imports.progress import ImportRefused, Progress, dry_run
from tertulia.imports.source import Source, SourceError
from tertulia.model.numbers import counted
from tertulia.service.config import Config

app = typer.Typer(
    name="import",
    help="Move an organization in from another chat server.\n\nThe server can be running. An"
    " interrupted import continues when you run the same command again.",
    no_args_is_help=True,
)
DIRECTORY = "imports"
"""The directory below the data directory with extracted archives."""

ExportPath = Annotated[
    Path, typer.Argument(metavar="PATH", help="The export: an archive, or its directory.")
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Only tell what would be imported, what wouldn't, and why. Write nothing."
    ),
]
Opened = Callable[[Path], Source]
"""Opens the source, with a directory for extracted files."""


def run(config: Config, opened: Opened, *, is_dry: bool, as_json: bool) -> None:
    """Import from the source that `opened` opens, show progress, and print the report."""
    work = config.data_path / DIRECTORY
    for directory in (config.data_path, work):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        source = opened(work)
    except SourceError as error:
        raise CommandFailed(str(error)) from None
    try:
        progress = asyncio.run(_imported(config, source, is_dry=is_dry))
    except (SourceError, ImportRefused) as error:
        raise CommandFailed(str(error)) from None
    finally:
        source.close()
    shutil.rmtree(work, ignore_errors=True)
    if as_json:
        import json

        typer.echo(json.dumps(_json(progress), ensure_ascii=False))
        return
    for line in _lines(progress, is_dry=is_dry):
        typer.echo(line)


async def _imported(config: Config, source: Source, *, is_dry: bool) -> Progress:
    if is_dry:
        return await asyncio.to_thread(dry_run, source, _Bar().show)
    vault = opened_vault(config, create=True)
    files, disk = config.opened_files()
    bar = _Bar()
    try:
        async with opened_log(config, report) as log:
            if not log.state.is_empty:
                await require_fitting(log, vault)
            importer = Importer(
                log, vault, files, disk, source, site=config.external_url, tell=bar.show
            )
            return await importer.run()
    finally:
        bar.end()
        await files.close()
        vault.close()


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
    if not is_dry:
        lines.append(
            "People sign in after they set a password: by `Forgot password?` on the login page, or"
            " by an invitation."
        )
    return lines


EXAMPLE_ZULIP = "Example: `tertulia import zulip --data-dir data zulip-export.tar.gz`"
EXAMPLES = {"import": EXAMPLE_ZULIP}


def command(name: str, opened: Callable[[Path, Path], Source], about: str) -> None:
    """Add the command that imports exports of one kind."""

    def act(
        config: Config, path: ExportPath, dry_run: DryRun = False, as_json: AsJson = False
    ) -> None:
        run(config, lambda work: opened(path, work), is_dry=dry_run, as_json=as_json)

    act.__doc__ = about
    act.__name__ = name
    app.command(name, epilog=f"Example: `tertulia import {name} --data-dir data export.zip`")(
        configured(act)
    )


Team = Annotated[
    str, typer.Option("--team", metavar="NAME", help="Import only this team, by the name in URLs.")
]


def mattermost(
    config: Config,
    path: ExportPath,
    team: Team = "",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Import a bulk export of Mattermost: the archive of `mmctl export create`, or its .jsonl
    file."""
    from tertulia.imports.mattermost.source import MattermostExport

    run(
        config,
        lambda work: MattermostExport(path, work, team),
        is_dry=dry_run,
        as_json=as_json,
    )


app.command(
    "mattermost", epilog="Example: `tertulia import mattermost --data-dir data export.zip`"
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
    as_json: AsJson = False,
) -> None:
    """Import a dump of Rocket.Chat's database: the directory that `mongodump` writes, or an archive
    of it."""
    from tertulia.imports.rocketchat.source import RocketChatDump

    run(
        config,
        lambda work: RocketChatDump(path, work, files),
        is_dry=dry_run,
        as_json=as_json,
    )


app.command("rocketchat", epilog="Example: `tertulia import rocketchat --data-dir data dump`")(
    configured(rocketchat)
)


def _zulip(path: Path, work: Path) -> Source:
    from tertulia.imports.zulip.source import ZulipExport

    return ZulipExport(path, work)


command(
    "zulip",
    _zulip,
    "Import an export of a Zulip server from 2023 or later: export.tar.gz, or its directory. In a"
    " new organization, all IDs stay, so links and bots keep working.",
)
