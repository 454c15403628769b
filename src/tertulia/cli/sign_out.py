"""`tertulia sign-out`: end everything that an account is signed in with."""

import asyncio
from typing import Annotated

import typer

from tertulia.app.composition import opened_organization
from tertulia.app.config import load
from tertulia.cli.accounts import person_with
from tertulia.cli.commands import done, show
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.domain.accounts import sessions
from tertulia.model.counts import counted
from tertulia.service.config import Config

EXAMPLE = "Example: `tertulia sign-out --data-dir data --email ben@example.com`"


def sign_out(
    email: Annotated[str, typer.Option(help="Email address of the account.")],
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Sign a person out of all browsers and programs. Their API key is replaced.

    The password doesn't change. The server can keep running.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    count = asyncio.run(_sign_out(settings, email))
    sentence = f"Signed {email} out of {counted(count, 'browser')} and all programs."
    show(done(sentence), as_json=as_json)


async def _sign_out(settings: Config, email: str) -> int:
    async with opened_organization(settings, lambda line: typer.echo(line, err=True)) as (
        log,
        vault,
    ):
        user = person_with(log.state, email)
        return await log.submit(None, sessions.end_access, user.id, vault.new_key())
