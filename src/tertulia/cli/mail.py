"""`tertulia mail`: the mails that wait, and whether mails arrive at all."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer
from msgspec import Struct

from tertulia.app.composition import opened_organization
from tertulia.app.config import load
from tertulia.cli.commands import done, show
from tertulia.cli.errors import Failed
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.domain import names
from tertulia.model.counts import counted
from tertulia.outbound.transports import NotSent
from tertulia.service import mail_trials
from tertulia.service.config import Config
from tertulia.service.mailing import FOLDER
from tertulia.store import outbox
from tertulia.store.outbox import Waiting

EXAMPLE = "Example: `tertulia mail --data-dir data --test you@example.com`"


class WaitingMail(Struct, frozen=True, kw_only=True):
    """A mail that waits, for the one who runs the server. Times are in UNIX seconds."""

    id: str
    kind: str
    to: str
    asked_at: int
    due_at: int
    attempts: int
    trouble: str


def mail(
    test: Annotated[
        str | None,
        typer.Option(
            "--test",
            metavar="ADDRESS",
            help="Send a test email to this address, and report whether it worked.",
        ),
    ] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """List pending emails and why they're pending, or send a test email.

    A running server sends emails by itself, according to the smtp_… settings. Without smtp_host,
    they're written to the directory `mail` in the data directory.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    if test is not None:
        show(done(asyncio.run(send_trial(settings, names.address(test)))), as_json=as_json)
        return
    found = asyncio.run(_waiting(settings))
    if as_json:
        typer.echo(msgspec.json.encode({"waiting": found}).decode())
        return
    if not found:
        typer.echo("No pending emails.")
    for one in found:
        typer.echo(f"{_time(one.asked_at)}  {one.kind:<16} {one.to}")
        if one.trouble:
            tried = counted(one.attempts, "time")
            typer.echo(f"  tried {tried}, next attempt at {_time(one.due_at)}: {one.trouble}")


async def _waiting(settings: Config) -> list[WaitingMail]:
    async with opened_organization(settings, _report) as (log, _):
        return [_shown(one) for one in await log.store.read(outbox.waiting)]


def _shown(waiting: Waiting) -> WaitingMail:
    return WaitingMail(
        id=waiting.id,
        kind=waiting.mail.kind.value,
        to=waiting.mail.to,
        asked_at=int(waiting.asked_at),
        due_at=int(waiting.due_at),
        attempts=waiting.attempts,
        trouble=waiting.trouble,
    )


async def send_trial(settings: Config, address: str) -> str:
    """Send a mail. A sentence about where it went; Failed where it did not leave."""
    async with opened_organization(settings, _report) as (log, vault):
        try:
            await mail_trials.send_trial(settings, log, vault, address)
        except NotSent as error:
            raise Failed(f"The email couldn't be sent. {error}") from None
    if settings.smtp_host:
        return f"Sent a test email to {address} through {settings.smtp_host}."
    return f"Wrote a test email to {address} to the directory {settings.data_path / FOLDER}."


def _report(line: str) -> None:
    typer.echo(line, err=True)


def _time(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
