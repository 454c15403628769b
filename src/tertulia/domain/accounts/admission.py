"""Rules for using and managing invitations, for what they grant, and for allowed email
addresses."""

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
    """Whether people can join with the invitation: it's open, and its inviter is active, isn't a
    guest, and may still grant its role."""
    inviter = state.users[invitation.inviter_id]
    return (
        invitation.is_open(now)
        and inviter.is_active
        and not permissions.is_guest(state, inviter)
        and permissions.role_of(state, inviter) <= invitation.role
    )


def channels_of_invitation(state: State, invitation: Invitation) -> list[Channel]:
    """Return the invitation's channels that its inviter may still invite people to, by ascending
    ID."""
    inviter = state.users[invitation.inviter_id]
    named = (state.channels.get(channel_id) for channel_id in sorted(invitation.channel_ids))
    return [
        channel
        for channel in named
        if channel is not None and channel_access.may_invite_to(state, inviter, channel)
    ]


def groups_of_invitation(state: State, invitation: Invitation) -> list[UserGroup]:
    """Return the invitation's groups that its inviter may still add members to."""
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
    """Whether the viewer can change the invitation and see its link. Its inviter and administrators
    can; if it grants the owner role, only owners can."""
    if not is_usable(state, invitation, now):
        return False
    if invitation.inviter_id == viewer.id:
        return True
    role = permissions.role_of(state, viewer)
    return role <= Role.ADMINISTRATOR and role <= invitation.role


def invitation_end_changes(
    invitations: Sequence[Invitation], status: InvitationStatus
) -> list[AnyChange]:
    """Return the change that sets these invitations to an ended status; nothing if the sequence is
    empty."""
    if not invitations:
        return []
    return [
        InvitationsEnded(
            invitation_ids=tuple(sorted(invitation.id for invitation in invitations)),
            inviter_ids=tuple(sorted({invitation.inviter_id for invitation in invitations})),
            status=status,
        )
    ]


def invitation_withdrawal_changes(state: State, inviter: User) -> list[AnyChange]:
    """Return the change that ends the open invitations of a user who is being deactivated."""
    mine = [
        invitation
        for invitation in state.invitations
        if invitation.inviter_id == inviter.id and invitation.status is InvitationStatus.OPEN
    ]
    return invitation_end_changes(mine, InvitationStatus.REVOKED)


def invitation_redaction_changes(state: State, user: User) -> list[AnyChange]:
    """Return the change that erases the addresses in ended invitations to and from the user."""
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


def invitation_acceptance_changes(state: State, address: str) -> list[AnyChange]:
    """Return the changes that end all open invitations and confirmations of an address that now
    belongs to an account."""
    folded = address.casefold()
    used = [
        invitation
        for invitation in state.invitations
        if invitation.status is InvitationStatus.OPEN
        and invitation.address is not None
        and invitation.address.casefold() == folded
    ]
    confirmed = [c.id for c in state.confirmations if c.address.casefold() == folded]
    changes = invitation_end_changes(used, InvitationStatus.USED)
    if confirmed:
        changes.append(ConfirmationsEnded(confirmation_ids=tuple(sorted(confirmed))))
    return changes


class NotAdmitted(Refused):
    """The organization doesn't allow accounts with such an email address."""


def require_allowed_email(state: State, address: str) -> None:
    """Raise NotAdmitted for an address that the organization doesn't allow. If domains are
    restricted, that includes addresses with `+`, because one mailbox has any number of them."""
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
    """Whether the domain, or one of its parents, is known for disposable addresses."""
    from disposable_email_domains import blocklist  # Large, and rarely needed.

    labels = host.casefold().split(".")
    return any(".".join(labels[start:]) in blocklist for start in range(len(labels) - 1))
