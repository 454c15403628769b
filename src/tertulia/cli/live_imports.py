"""`tertulia import zulip-live` and `tertulia import finish`: move from a running Zulip."""

import asyncio
import configparser
import contextlib
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from tertulia.app.founding import opened_log
from tertulia.cli.commands import report
from tertulia.cli.errors import CommandFailed
from tertulia.cli.import_target import opened_target
from tertulia.cli.options import AsJson
from tertulia.imports.lock import DIRECTORY, import_lock
from tertulia.imports.wording import lines_of
from tertulia.jobs.imports import only_import
from tertulia.model.changes import RealmChanged
from tertulia.model.numbers import counted
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import installation
from tertulia.store.notes import FactSet
from tertulia.store.store import READ_SECONDS

if TYPE_CHECKING:
    from tertulia.imports.zulip.live.followed import Followed

RUNNING_SECONDS = 300.0
"""The number of seconds after its last update for which the follower counts as running."""
EXAMPLE = (
    "Example: `tertulia import zulip-live --data-dir data https://zulip.example.com"
    " --email owner@example.com --key-file key`"
)
_Url = Annotated[str, typer.Argument(metavar="URL", help="The address of the Zulip server.")]
_Email = Annotated[
    str | None,
    typer.Option(
        "--email", help="The email address of an owner there. Default: the address in the zuliprc."
    ),
]
_KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="A file with the owner's API key, or a zuliprc. Default: the first line of standard"
        " input.",
    ),
]
_Now = Annotated[
    bool,
    typer.Option(
        "--now",
        help="Open the organization even if `zulip-live` isn't running, without a last check for"
        " newer messages on the other server.",
    ),
]


def zulip_live(
    config: Config,
    url: _Url,
    email: _Email = None,
    key_file: _KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Follow a running Zulip, after importing an export of it or from the beginning.

    People keep writing there: messages, edits, and changes of people and channels arrive here
    within seconds, and here nobody else can write. Stop it with Ctrl+C, and run the command again
    to continue. When people are to use this server, run `tertulia import finish`.
    """
    from tertulia.imports.progress import ImportRefused
    from tertulia.imports.source import SourceError

    known, key = _credentials(key_file)
    address = email or known
    if not address:
        raise CommandFailed("The owner's email address is missing. Add --email.")
    try:
        with import_lock(config.data_path / DIRECTORY):
            followed = asyncio.run(_followed(config, url, address, key))
    except (SourceError, ImportRefused) as error:
        raise CommandFailed(str(error)) from None
    if as_json:
        typer.echo(json.dumps(_json(followed), ensure_ascii=False))
        return
    for line in _lines(followed):
        typer.echo(line)


async def finish(config: Config, now: _Now = False) -> None:
    """Finish the move from a running Zulip: `zulip-live` makes a last catch-up and ends, and people
    can write here."""
    from tertulia.imports.zulip.live.followed import FACT, FINISH_FACT, Followed

    async with opened_log(config, report) as log:
        if log.state.is_empty or not log.state.realm.moving_from:
            raise CommandFailed("No organization is moving here.")

        async def stored() -> Followed | None:
            result = await log.store.read_log(lambda c: installation.value(c, FACT), READ_SECONDS)
            return msgspec.json.decode(result, type=Followed) if result else None

        followed = await stored()
        is_running = followed is not None and time.time() - followed.seen_at < RUNNING_SECONDS
        if not is_running and not now:
            raise CommandFailed(
                "`tertulia import zulip-live` isn't running, so newer messages would be missing."
                " Start it again, or use --now to open the organization without them."
            )
        if now:
            note = FactSet(FINISH_FACT, "")
            change = [RealmChanged(values={"moving_from": ""})]
            if followed is not None:
                followed.step, followed.ended_at = "done", time.time()
            notes = [note, FactSet(FACT, msgspec.json.encode(followed).decode())]

            def opened(_: CommandContext) -> Decision[None]:
                return Decision(None, change)

            await log.submit(None, opened, notes=notes)
            typer.echo("People can use the organization here now.")
            return
        await log.submit(None, _nothing, notes=[FactSet(FINISH_FACT, "1")])
        while log.state.realm.moving_from:
            await asyncio.sleep(0.5)
            await log.catch_up()
            followed = await stored()
            if followed is None or time.time() - followed.seen_at > RUNNING_SECONDS:
                raise CommandFailed("`tertulia import zulip-live` has stopped. Start it again.")
        followed = await stored()
        for line in _lines(followed) if followed is not None else ():
            typer.echo(line)


def _nothing(_: CommandContext) -> Decision[None]:
    return Decision(None)


def _credentials(key_file: Path | None) -> tuple[str, str]:
    """Return the address (empty if unknown) and the API key."""
    if key_file is None:
        if sys.stdin.isatty():
            return "", typer.prompt("API key of the owner", hide_input=True, err=True).strip()
        content = sys.stdin.readline()
    else:
        try:
            content = key_file.read_text()
        except (OSError, UnicodeError) as error:
            raise CommandFailed(f"{key_file} can't be read: {error}.") from None
    if "[api]" in content:
        parser = configparser.ConfigParser(interpolation=None)
        with contextlib.suppress(configparser.Error):
            parser.read_string(content)
            return parser.get("api", "email", fallback=""), parser.get("api", "key", fallback="")
    key = content.strip()
    if not key or "\n" in key:
        raise CommandFailed("The API key is missing: expected one line, or a zuliprc.")
    return "", key


async def _followed(config: Config, url: str, email: str, key: str) -> "Followed":
    from tertulia.imports.zulip.live.following import Follower
    from tertulia.imports.zulip.live.server import ZulipServer

    ended = threading.Event()
    shown = _Status()
    server = ZulipServer(url, email, key, is_ended=ended.is_set, tell=shown.say)
    try:
        with _signals(ended):
            async with opened_target(config, report) as target:
                follower = Follower(target, server, tell=shown.show, is_ended=ended.is_set)
                return await only_import(target.log, config.data_path, follower.run)
    finally:
        shown.end()
        server.close()


@contextlib.contextmanager
def _signals(ended: threading.Event) -> Iterator[None]:
    """End following by a signal; the second one interrupts."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def end(number: int, _: Any) -> None:
        ended.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])


class _Status:
    """Shows the current activity on a terminal."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()

    def show(self, what: str, followed: "Followed") -> None:
        if self._is_shown:
            text = f"{what}: message {followed.position:,}, {counted(followed.events, 'event')}"
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def say(self, sentence: str) -> None:
        report(f"\r\x1b[K{sentence}" if self._is_shown else sentence)

    def end(self) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _json(followed: "Followed") -> dict[str, Any]:
    return {
        "url": followed.url,
        "is_finished": followed.step == "done",
        "started_at": followed.started_at,
        "ended_at": followed.ended_at,
        "events": followed.events,
        "differences": followed.differences,
        **followed.report.to_json(),
    }


def _lines(followed: "Followed") -> list[str]:
    is_finished = followed.step == "done"
    lines = [
        f"Moved from {followed.url}. People can use this server."
        if is_finished
        else f"Stopped following {followed.url}. Run the command again to continue."
    ]
    lines += lines_of(followed.report)
    if followed.differences:
        lines.append("Not brought along:")
        lines += [f"  {difference}" for difference in followed.differences]
    return lines
