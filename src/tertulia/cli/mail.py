"""`tertulia mail`: pending emails, and test emails."""

from typing import Annotated, Any

import typer

from tertulia.cli.commands import Printed, add_default_command, configured, done, opened
from tertulia.cli.errors import CommandFailed
from tertulia.cli.tables import utc
from tertulia.domain import names
from tertulia.model.numbers import counted
from tertulia.outbound.transports import NotSent
from tertulia.service import mailing
from tertulia.service.config import Config
from tertulia.service.mailing import FOLDER
from tertulia.store import outbox
from tertulia.store.outbox import QueuedMail

app = typer.Typer(
    name="mail", help="List pending emails, or send a test email.", rich_markup_mode="markdown"
)


@configured
async def mail(
    config: Config,
    test: Annotated[
        str | None,
        typer.Option(
            "--test", metavar="ADDRESS", help="Send a test email, as `tertulia mail test` does."
        ),
    ] = None,
) -> Printed:
    """List pending emails and why they're pending, or send a test email."""
    return await _list(config) if test is None else await _test(config, test)


@configured
async def list_mail(config: Config) -> Printed:
    """List pending emails and why they're pending.

    A running server sends emails by itself, according to the smtp_… settings. Without smtp_host,
    they're written to the directory `mail` in the data directory. Open invitations that the mail
    server rejected are listed, too.
    """
    return await _list(config)


add_default_command(app, mail, "Example: `tertulia mail --data-dir data`", list_only=list_mail)


@app.command("test", epilog="Example: `tertulia mail test you@example.com --data-dir data`")
@configured
async def test_mail(
    config: Config,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Where to send it.")],
) -> Printed:
    """Send a test email, and report whether it worked."""
    return await _test(config, address)


async def _test(config: Config, address: str) -> Printed:
    return done(await send_test(config, names.address(address)))


async def _list(config: Config) -> Printed:
    async with opened(config) as (log, _):
        emails = [_shown(mail) for mail in await log.store.read(outbox.queued)]
    lines = [] if emails else ["No pending emails."]
    for email in emails:
        lines.append(f"{utc(email['asked_at'])}  {email['kind']:<16} {email['to']}")
        if email["given_up"]:
            lines.append(
                f"  given up: {email['trouble']}. `tertulia invitations list` shows the link"
            )
        elif email["trouble"]:
            tried = counted(email["attempts"], "time")
            lines.append(
                f"  tried {tried}, next attempt at {utc(email['due_at'])}: {email['trouble']}"
            )
    return Printed({"waiting": emails}, lines)


def _shown(waiting: QueuedMail) -> dict[str, Any]:
    return {
        "id": waiting.id,
        "kind": waiting.mail.kind.value,
        "to": waiting.mail.to,
        "asked_at": int(waiting.asked_at),
        "due_at": int(waiting.due_at),
        "attempts": waiting.attempts,
        "trouble": waiting.given_up or waiting.trouble,
        "given_up": bool(waiting.given_up),
    }


async def send_test(config: Config, address: str) -> str:
    """Send a test email, and return a sentence that says where it was sent. Raise CommandFailed if
    it wasn't."""
    async with opened(config) as (log, vault):
        try:
            await mailing.send_test(config, log, vault, address)
        except NotSent as error:
            raise CommandFailed(f"The email couldn't be sent. {error}") from None
    if config.smtp_host:
        return f"Sent a test email to {address} through {config.smtp_host}."
    return f"Wrote a test email to {address} to the directory {config.data_path / FOLDER}."
