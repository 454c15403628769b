"""`tertulia create-bot`: an account for a program."""

import asyncio
from typing import Annotated

import typer

from tertulia.app.composition import opened_organization
from tertulia.app.config import load
from tertulia.cli import accounts
from tertulia.cli.accounts import Account
from tertulia.cli.errors import Failed
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.domain.accounts import bots
from tertulia.model.users import BotKind
from tertulia.service.config import Config

EXAMPLE = (
    "Example: `tertulia create-bot --data-dir data --owner ann@example.com --short-name weather"
    " --full-name 'Weather'`"
)


def create_bot(
    owner: Annotated[str, typer.Option(help="Email address of the owner.")],
    short_name: Annotated[str, typer.Option(help="First part of the bot's email address.")],
    full_name: Annotated[str, typer.Option(help="Name of the bot.")],
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Create a bot for a person who is allowed to create bots.

    Prints the bot's user ID, email address, and API key, which are all that a program needs. The
    server can keep running.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    account = asyncio.run(_create_bot(settings, owner, short_name, full_name))
    accounts.show(account, as_json=as_json)


async def _create_bot(settings: Config, owner: str, short_name: str, full_name: str) -> Account:
    async with opened_organization(settings, lambda line: typer.echo(line, err=True)) as (
        log,
        vault,
    ):
        person = log.state.user_with_address(owner)
        if person is None:
            raise Failed(f"No account has the address '{owner}'.")
        new = bots.NewBot(
            full_name=full_name,
            short_name=short_name,
            kind=BotKind.GENERIC,
            host=settings.address_host,
            credential=await vault.credential(0, None),
        )
        bot = await log.submit(person.id, bots.create, new)
        return accounts.account_of(log.state, vault, bot)
