"""`tertulia invite`: a link by which somebody comes in."""

import asyncio
from typing import Annotated

import msgspec
import typer

from tertulia.app.acting import first_owner
from tertulia.app.composition import opened_organization
from tertulia.app.config import load
from tertulia.cli.options import ROLES, AsJson, ConfigFile, DatabaseUrl, DataDir, RoleName
from tertulia.domain.accounts import invitations
from tertulia.domain.accounts.invitations import MAX_MINUTES, Terms
from tertulia.service.config import Config
from tertulia.service.links import Links

EXAMPLE = (
    "Example: `tertulia invite --data-dir data` for a link that many can use, or"
    " `tertulia invite --data-dir data --email ben@example.com` for one person"
)
MINUTES_PER_DAY = 24 * 60


def invite(
    email: Annotated[
        str | None,
        typer.Option(help="The one person who can join with it; without it, whoever has the link."),
    ] = None,
    role: Annotated[RoleName, typer.Option(help="What they may do.")] = RoleName.MEMBER,
    days: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MAX_MINUTES // MINUTES_PER_DAY,
            help="How long it can be used; 0 is for ever. Without it, as the server is set to.",
        ),
    ] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Make an invitation link, in the name of the organization's owner, and print it.

    Whoever joins with it is subscribed to the default channels. Nothing is mailed: hand the link
    over yourself. It leads to external_url, or where that is not set, to the address that the
    server listens on. The server may be running: it notices.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    minutes: int | None = settings.invitation_link_validity_minutes
    if days is not None:
        minutes = days * MINUTES_PER_DAY or None
    terms = Terms(minutes=minutes, role=ROLES[role], default_channels=True)
    link = asyncio.run(_invite(settings, terms, email))
    typer.echo(msgspec.json.encode({"invite_link": link}).decode() if as_json else link)


async def _invite(settings: Config, terms: Terms, email: str | None) -> str:
    async with opened_organization(settings, lambda line: typer.echo(line, err=True)) as (
        log,
        vault,
    ):
        inviter_id, nonce = first_owner(log.state), vault.nonce()
        if email is None:
            made = await log.submit(inviter_id, invitations.server_link, terms, nonce)
        else:
            made = await log.submit(inviter_id, invitations.personal_link, email, terms, nonce)
        return Links(vault).invitation(settings.mail_site, made)
