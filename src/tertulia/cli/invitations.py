"""`tertulia invitations`: those with which somebody can still join."""

from typing import Annotated

import typer
from msgspec import Struct

from tertulia.cli import invite
from tertulia.cli.accounts import role_name
from tertulia.cli.commands import Printed, command, done, group
from tertulia.cli.tables import moment, table
from tertulia.domain.accounts import invitations
from tertulia.model.errors import Refused
from tertulia.model.invitations import Invitation
from tertulia.service.caller import Caller

app = group("invitations", "Manage pending invitations: list, create, and revoke them.")
app.command("create", epilog=invite.EXAMPLE)(invite.invite)


class InvitationShown(Struct, frozen=True, kw_only=True):
    """An invitation. Times are UNIX seconds."""

    id: int
    email: str | None
    """Whose it is; None for a link that whoever has it can use."""
    invited_by: str
    role: str
    created_at: int
    expires_at: int | None
    """None for never."""
    invite_link: str | None
    """None where it is mailed, which shows that the address is theirs."""


class Invitations(Struct, frozen=True, kw_only=True):
    """Invitations, in the order in which they were made."""

    invitations: list[InvitationShown]


@command(app, "list", "invitations list --data-dir data")
async def list_invitations(caller: Caller) -> Printed:
    """List all pending invitations, with the links that you can share."""
    found = [
        _shown(caller, one) for one in invitations.shown(caller.state, caller.user, caller.now)
    ]
    headings = ("ID", "FOR", "ROLE", "INVITED BY", "CREATED", "EXPIRES", "LINK")
    rows = (
        (
            *(str(one.id), one.email or "anyone with the link", one.role, one.invited_by),
            moment(one.created_at),
            "never" if one.expires_at is None else moment(one.expires_at),
            one.invite_link or "emailed",
        )
        for one in found
    )
    return Printed(Invitations(invitations=found), table(headings, rows))


def _shown(caller: Caller, one: Invitation) -> InvitationShown:
    config = caller.node.config
    is_handed_over = one.is_reusable or not config.smtp_host
    links = caller.node.links
    return InvitationShown(
        id=one.id,
        email=one.address,
        invited_by=caller.state.users[one.inviter_id].address,
        role=role_name(one.role),
        created_at=one.created_at,
        expires_at=one.expires_at,
        invite_link=links.invitation(config.mail_site, one) if is_handed_over else None,
    )


@command(app, "revoke", "invitations revoke 3 --data-dir data")
async def revoke(
    caller: Caller,
    invitation_id: Annotated[int, typer.Argument(help="ID, as shown by `invitations list`.")],
) -> Printed:
    """Revoke an invitation. People who have already joined keep their accounts."""
    found = caller.state.invitations.get(invitation_id)
    if found is None:
        raise Refused(f"No invitation has the ID {invitation_id}.")
    verb = invitations.revoke_link if found.is_reusable else invitations.revoke
    await caller.submit(verb, invitation_id)
    return done(f"Invitation {invitation_id} is revoked.")
