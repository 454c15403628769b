"""`tertulia invitations` and `tertulia invite`: links that people join with."""

from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from tertulia.cli.accounts import role_name
from tertulia.cli.commands import (
    Column,
    Printed,
    command,
    configured,
    done,
    group,
    listing,
    opened,
    report,
)
from tertulia.cli.errors import UsageError
from tertulia.cli.options import ROLES, RoleName
from tertulia.cli.tables import moment, plain
from tertulia.domain.accounts import invitations as verbs
from tertulia.domain.accounts.invitations import MAX_MINUTES, InvitationTerms
from tertulia.domain.accounts.users import first_owner
from tertulia.model.errors import Refused
from tertulia.model.invitations import Invitation
from tertulia.model.mail import MailKind
from tertulia.service.config import Config
from tertulia.service.links import Links
from tertulia.service.node import Caller
from tertulia.store import outbox
from tertulia.store.outbox import QueuedMail

EXAMPLES = {
    "invite": "Example: `tertulia invite --data-dir data` for a link that anyone can use, or"
    " `tertulia invite --data-dir data --email ben@example.com` for one person"
}
_MINUTES_PER_DAY: Final = 24 * 60


class _Email(StrEnum):
    """Whether an invitation was emailed."""

    NONE = "none"
    """No email was requested, or the server sends none: share the link yourself."""
    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"
    """The mail server rejected it, or it was retried for too long."""


invitations = group("invitations", "Manage pending invitations: list, create, and revoke them.")


@configured
async def invite(
    config: Config,
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
            max=MAX_MINUTES // _MINUTES_PER_DAY,
            help="Days until the link expires; 0 for never. Default: the setting"
            " invitation_link_validity_minutes.",
        ),
    ] = None,
    send: Annotated[
        bool,
        typer.Option("--send", help="Email the link to the address given with --email."),
    ] = False,
) -> Printed:
    """Create an invitation link on behalf of the organization's owner, and print it.

    People who join with it are subscribed to the default channels. Without --send, share the link
    yourself. It leads to external_url or, if that isn't set, to the address that the server listens
    on. The server can keep running. It sends the email; `tertulia mail` lists pending ones.
    """
    if send and email is None:
        raise UsageError("--send requires --email, the address to send the link to.")
    if send and not config.smtp_host:
        raise UsageError("--send requires the setting smtp_host. Nothing was created.")
    minutes: int | None = config.invitation_link_validity_minutes
    if days is not None:
        minutes = days * _MINUTES_PER_DAY or None
    terms = InvitationTerms(minutes=minutes, role=ROLES[role], default_channels=True)
    async with opened(config) as (log, vault):
        inviter_id, nonce = first_owner(log.state), vault.nonce()
        if email is None:
            made = await log.submit(inviter_id, verbs.create_server_link, terms, nonce)
        else:
            site = config.mail_site if send else None
            made = await log.submit(
                inviter_id, verbs.create_personal_link, email, terms, nonce, site
            )
        link = Links(vault).invitation(config.mail_site, made)
    if send:
        # Not on standard output, because scripts read the link there.
        report(
            f"The server emails it to {made.address} when it runs."
            " `tertulia invitations list` shows whether that worked."
        )
    status = _Email.WAITING if send else _Email.NONE
    return Printed({"invite_link": link, "email_status": status}, [link])


_CREATE = (
    "Example: `tertulia invitations create --data-dir data` for a link that anyone can use, or"
    " `tertulia invitations create email=ben@example.com --data-dir data` for one person"
)
invitations.command("create", epilog=_CREATE)(invite)


_PROBLEMS: Final = {
    _Email.WAITING: "isn't emailed yet, and is retried",
    _Email.FAILED: "couldn't be emailed, so share its link",
}


def _email_status(
    invitation: Invitation, queued: QueuedMail | None, config: Config
) -> tuple[_Email, str | None]:
    """Return whether the invitation was emailed, and the reason if it wasn't yet. `queued` is its
    newest email in the outbox."""
    if not invitation.sent_at or not config.smtp_host:
        return _Email.NONE, None
    if queued is None or int(queued.asked_at) < invitation.sent_at[-1]:
        return _Email.SENT, None  # An email that was given up earlier can still be in the outbox.
    if queued.given_up:
        return _Email.FAILED, queued.given_up
    return _Email.WAITING, queued.trouble or None


@command(invitations, "list", "invitations list --data-dir data")
async def list_invitations(caller: Caller) -> Printed:
    """List all pending invitations: whether they were emailed, and the links that you can share."""
    config, links = caller.node.config, caller.node.links
    queued = {
        one.mail.about: one
        for one in await caller.node.store.read(outbox.queued)
        if one.mail.kind is MailKind.INVITATION
    }
    rows: list[dict[str, Any]] = []
    for invitation in verbs.visible_to(caller.state, caller.user, caller.now):
        status, reason = _email_status(invitation, queued.get(invitation.id), config)
        rows.append(
            {
                "id": invitation.id,
                "email": invitation.address,
                "invited_by": caller.state.users[invitation.inviter_id].address,
                "role": role_name(invitation.role),
                "created_at": invitation.created_at,
                "expires_at": invitation.expires_at,
                "email_status": status,
                "email_problem": reason,
                # A link that only its email contains proves the address, so it isn't shown.
                "invite_link": links.invitation(config.mail_site, invitation)
                if status is _Email.NONE or reason
                else None,
            }
        )
    columns: dict[str, Column] = {
        "ID": "id",
        "FOR": ("email", lambda email: email or "anyone with the link"),
        "ROLE": "role",
        "INVITED BY": "invited_by",
        "CREATED": ("created_at", moment),
        "EXPIRES": ("expires_at", lambda at: "never" if at is None else moment(at)),
        "EMAIL": "email_status",
        "LINK": "invite_link",
    }
    problems = [
        f"Invitation {row['id']} {_PROBLEMS[row['email_status']]}: {plain(row['email_problem'])}"
        for row in rows
        if row["email_problem"]
    ]
    printed = listing("invitations", columns, rows)
    return Printed(printed.answer, [*printed.lines, *problems])


@command(invitations, "revoke", "invitations revoke 3 --data-dir data")
async def revoke(
    caller: Caller,
    invitation_id: Annotated[int, typer.Argument(help="ID, as shown by `invitations list`.")],
) -> Printed:
    """Revoke an invitation. People who have already joined keep their accounts."""
    invitation = caller.state.invitations.get(invitation_id)
    if invitation is None:
        raise Refused(f"No invitation has the ID {invitation_id}.")
    verb = verbs.revoke_link if invitation.is_reusable else verbs.revoke
    await caller.submit(verb, invitation_id)
    return done(f"Invitation {invitation_id} is revoked.")
