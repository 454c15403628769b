"""`tertulia init`: a new organization."""

import asyncio
from typing import Annotated

import typer

from tertulia.app import founding
from tertulia.app.config import load
from tertulia.app.opening import opened_log, opened_vault
from tertulia.cli import accounts
from tertulia.cli.accounts import Account
from tertulia.cli.next_steps import next_steps
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Password
from tertulia.cli.password_input import password_from
from tertulia.domain import names
from tertulia.service.config import Config

EXAMPLE = (
    "Example: `tertulia init --data-dir data --org 'Example' --email ann@example.com"
    " --full-name 'Ann'`"
)


def init(
    org: Annotated[str, typer.Option(help="The organization's name.")],
    email: Annotated[str, typer.Option(help="The owner's e-mail address.")],
    full_name: Annotated[str, typer.Option(help="The owner's name.")],
    password: Password = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Create the organization and its owner, and a first channel for everybody.

    Prints the owner's user ID, e-mail address and API key, and what to do next. The secret that
    seals API keys is made in the directory: keep it with your backups.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    founder = founding.Founder(
        organization=org,
        address=names.address(email),
        full_name=names.full_name(full_name),
        password=password_from(password, settings, email, full_name, org),
    )
    owner = asyncio.run(_init(settings, founder))
    accounts.show(owner, as_json=as_json)
    if not as_json:
        for line in next_steps(settings, owner.email):
            typer.echo(line, err=True)  # What a program reads is the account.


async def _init(settings: Config, founder: founding.Founder) -> Account:
    async with opened_log(settings, lambda line: typer.echo(line, err=True)) as log:
        founding.require_empty(log.state)
        vault = opened_vault(settings, create=True)
        try:
            owner = await founding.found(log, vault, founder)
            return accounts.account_of(log.state, vault, owner)
        finally:
            vault.close()
