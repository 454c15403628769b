"""`tertulia password`: another password for an account."""

import asyncio
from typing import Annotated

import typer

from tertulia.app.composition import opened_organization
from tertulia.app.config import load
from tertulia.cli.accounts import person_with
from tertulia.cli.commands import done, show
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Password
from tertulia.cli.password_input import password_from
from tertulia.domain.accounts import sessions
from tertulia.service.config import Config
from tertulia.service.passwords import password_rules

EXAMPLE = "Example: `tertulia password --data-dir data --email ben@example.com`"


def password(
    email: Annotated[str, typer.Option(help="Email address of the account.")],
    password: Password = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Set a new password for a person's account.

    This signs out all browsers, replaces the API key, and emails the person about it. The server
    can keep running.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    asyncio.run(_replace(settings, email, password_from(password, settings, email)))
    sentence = f"Set a new password for {email}. All browsers and programs have to sign in again."
    show(done(sentence), as_json=as_json)


async def _replace(settings: Config, email: str, password: str) -> None:
    async with opened_organization(settings, lambda line: typer.echo(line, err=True)) as (
        log,
        vault,
    ):
        user = person_with(log.state, email)
        password_rules(settings).require(password, (user.full_name, log.state.realm.name))
        hashed = await vault.hash_password(password)
        await log.submit(
            None, sessions.replace_password, user.id, hashed, vault.new_key(), settings.mail_site
        )
