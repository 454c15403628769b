"""`tertulia create-user`: one more account."""

import asyncio
from typing import Annotated

import typer

from tertulia.app.composition import opened_organization
from tertulia.app.config import load
from tertulia.cli import accounts
from tertulia.cli.accounts import Account
from tertulia.cli.options import ROLES, AsJson, ConfigFile, DatabaseUrl, DataDir, Password, RoleName
from tertulia.cli.password_input import password_from
from tertulia.domain import names
from tertulia.domain.accounts import users
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.service.passwords import password_rules

EXAMPLE = (
    "Example: `tertulia create-user --data-dir data --email ben@example.com --full-name 'Ben'"
    " --role moderator`"
)


def create_user(
    email: Annotated[str, typer.Option(help="Email address.")],
    full_name: Annotated[str, typer.Option(help="Full name.")],
    role: Annotated[RoleName, typer.Option(help="Role of the account.")] = RoleName.MEMBER,
    password: Password = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Create an account for a person, and subscribe it to the default channels.

    Prints its user ID, email address, and API key. The server can keep running.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    names.address(email)
    names.full_name(full_name)
    chosen = ROLES[role]
    typed = password_from(password, settings, email, full_name)
    account = asyncio.run(_create_user(settings, email, full_name, chosen, typed))
    accounts.show(account, as_json=as_json)


async def _create_user(
    settings: Config, email: str, full_name: str, role: Role, password: str
) -> Account:
    async with opened_organization(settings, lambda line: typer.echo(line, err=True)) as (
        log,
        vault,
    ):
        password_rules(settings).require(password, (email, full_name, log.state.realm.name))
        credential = await vault.credential(0, password)
        new = users.NewUser(address=email, full_name=full_name, role=role, credential=credential)
        user = await log.submit(None, users.create, new)
        return accounts.account_of(log.state, vault, user)
