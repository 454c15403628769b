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
    "Example: `tertulia invite --data-dir data` for a link that anyone can use, or `tertulia"
    " invite --data-dir data --email ben@example.com` for one person"
)
MINUTES_PER_DAY = 24 * 60


def invite(
    email: Annotated[
        str | None,
        typer.Option(
            help="The only address that can join with the link. Without it, anyone who"
            " has the link can join."
        ),
    ] = None,
    role: Annotated[RoleName, typer.Option(help="Role of people who join.")] = RoleName.MEMBER,
    days: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MAX_MINUTES // MINUTES_PER_DAY,
            help="Days until the link expires; 0 for never. Default: the setting"
            " invitation_link_validity_minutes.",
        ),
    ] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Create an invitation link on behalf of the organization's owner, and print it.

    People who join with it are subscribed to the default channels. No email is sent: share the link
    yourself. It leads to external_url or, if that isn't set, to the address that the server listens
    on. The server can keep running.
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
