"""Who can use and manage invitations, what they give, and which email addresses are allowed."""

from collections.abc import Sequence

from tertulia.domain import channel_access, permissions
from tertulia.model.changes import (
    AnyChange,
    ConfirmationsEnded,
    InvitationsEnded,
    InvitationsRedacted,
)
from tertulia.model.channels import Channel
from tertulia.model.errors import Refused
from tertulia.model.groups import UserGroup
from tertulia.model.invitations import Invitation, InvitationStatus
from tertulia.model.users import Role, User
from tertulia.state.state import State


def is_usable(state: State, invitation: Invitation, now: float) -> bool:
    """Whether people can join with the invitation: it's open, and its inviter is active, no guest,
    and could still give its role."""
    inviter = state.users[invitation.inviter_id]
    return (
        invitation.is_open(now)
        and inviter.is_active
        and not permissions.is_guest(state, inviter)
        and permissions.role_of(state, inviter) <= invitation.role
    )


def channels_of_invitation(state: State, invitation: Invitation) -> list[Channel]:
    """Return the channels of the invitation that its inviter can still invite to, ascending."""
    inviter = state.users[invitation.inviter_id]
    named = (state.channels.get(channel_id) for channel_id in sorted(invitation.channel_ids))
    return [
        channel
        for channel in named
        if channel is not None and channel_access.may_invite_to(state, inviter, channel)
    ]


def groups_of_invitation(state: State, invitation: Invitation) -> list[UserGroup]:
    """Return the groups of the invitation that its inviter can still add members to."""
    inviter = state.users[invitation.inviter_id]
    named = (state.groups.get(group_id) for group_id in invitation.group_ids)
    return [
        group
        for group in named
        if group is not None
        and not group.deactivated
        and permissions.may_add_members(state, inviter, group)
    ]


def is_managed(state: State, invitation: Invitation, viewer: User, now: float) -> bool:
    """Whether the viewer can change the invitation and see its link: its inviter and
    administrators, or only owners if it gives the role of an owner."""
    if not is_usable(state, invitation, now):
        return False
    if invitation.inviter_id == viewer.id:
        return True
    role = permissions.role_of(state, viewer)
    return role <= Role.ADMINISTRATOR and role <= invitation.role


def invitations_ended(
    invitations: Sequence[Invitation], status: InvitationStatus
) -> list[AnyChange]:
    """Return the change that ends the invitations, if any."""
    if not invitations:
        return []
    return [
        InvitationsEnded(
            invitation_ids=tuple(sorted(invitation.id for invitation in invitations)),
            inviter_ids=tuple(sorted({invitation.inviter_id for invitation in invitations})),
            status=status,
        )
    ]


def invitations_withdrawn(state: State, inviter: User) -> list[AnyChange]:
    """Return the change that ends the open invitations of a user who is deactivated."""
    mine = [
        invitation
        for invitation in state.invitations
        if invitation.inviter_id == inviter.id and invitation.status is InvitationStatus.OPEN
    ]
    return invitations_ended(mine, InvitationStatus.REVOKED)


def invitations_redacted(state: State, user: User) -> list[AnyChange]:
    """Return the change that erases the addresses of invitations to the user and from them, which
    must have ended."""
    folded = user.address.casefold()
    made = (invitation for invitation in state.invitations if invitation.address)
    ids = tuple(
        sorted(
            invitation.id
            for invitation in made
            if (invitation.address or "").casefold() == folded or invitation.inviter_id == user.id
        )
    )
    return [InvitationsRedacted(invitation_ids=ids)] if ids else []


def invitations_accepted(state: State, address: str) -> list[AnyChange]:
    """Return the changes that end all open invitations and confirmations of the address, which has
    an account now."""
    folded = address.casefold()
    used = [
        invitation
        for invitation in state.invitations
        if invitation.status is InvitationStatus.OPEN
        and invitation.address is not None
        and invitation.address.casefold() == folded
    ]
    confirmed = [c.id for c in state.confirmations if c.address.casefold() == folded]
    changes = invitations_ended(used, InvitationStatus.USED)
    if confirmed:
        changes.append(ConfirmationsEnded(confirmation_ids=tuple(sorted(confirmed))))
    return changes


class NotAdmitted(Refused):
    """The organization doesn't allow accounts with such an email address."""


def require_allowed_email(state: State, address: str) -> None:
    """Raise NotAdmitted for an address that the organization doesn't allow. If it restricts
    domains, that includes addresses with `+`, since one mailbox has many."""
    local, _, host = address.casefold().rpartition("@")
    if not state.realm.emails_restricted_to_domains:
        if state.realm.disallow_disposable_email_addresses and is_disposable(host):
            raise NotAdmitted("This organization doesn't accept disposable email addresses.")
        return
    if "+" in local:
        raise NotAdmitted("This organization doesn't accept email addresses that contain '+'.")
    if not any(
        host == domain.name or (domain.allow_subdomains and host.endswith("." + domain.name))
        for domain in state.domains
    ):
        raise NotAdmitted("This organization doesn't accept email addresses in this domain.")


def is_disposable(host: str) -> bool:
    """Whether the domain, or one above it, gives out disposable addresses."""
    from disposable_email_domains import blocklist  # Large, and rarely needed.

    labels = host.casefold().split(".")
    return any(".".join(labels[start:]) in blocklist for start in range(len(labels) - 1))
