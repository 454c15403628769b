"""Who may use and manage an invitation, what it gives, and the changes that end it."""

from collections.abc import Sequence

from tertulia.domain import permissions
from tertulia.model.changes import (
    AnyChange,
    ConfirmationsEnded,
    InvitationsEnded,
    InvitationsRedacted,
)
from tertulia.model.channels import Channel
from tertulia.model.groups import UserGroup
from tertulia.model.invitations import Invitation, InvitationStatus
from tertulia.model.users import Role, User
from tertulia.state.organization import State


def is_usable(state: State, invitation: Invitation, now: float) -> bool:
    """Whether somebody can join with it: it is open, and its inviter is active, no guest, and could
    still give such a role."""
    inviter = state.users[invitation.inviter_id]
    return (
        invitation.is_open(now)
        and inviter.is_active
        and not permissions.is_guest(state, inviter)
        and permissions.role_of(state, inviter) <= invitation.role
    )


def channels(state: State, invitation: Invitation) -> list[Channel]:
    """The channels that it names and its inviter may still invite to, ascending."""
    inviter = state.users[invitation.inviter_id]
    named = (state.channels.get(channel_id) for channel_id in sorted(invitation.channel_ids))
    return [
        channel
        for channel in named
        if channel is not None and permissions.may_invite_to(state, inviter, channel)
    ]


def groups(state: State, invitation: Invitation) -> list[UserGroup]:
    """The groups that it names and to which its inviter may still add members."""
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
    """Whether the viewer may change it and see its link: its inviter and administrators; only
    owners where it gives the role of an owner."""
    if not is_usable(state, invitation, now):
        return False
    if invitation.inviter_id == viewer.id:
        return True
    role = permissions.role_of(state, viewer)
    return role <= Role.ADMINISTRATOR and role <= invitation.role


def ended(invitations: Sequence[Invitation], status: InvitationStatus) -> list[AnyChange]:
    """The change that ends the invitations; none where there are none."""
    if not invitations:
        return []
    return [
        InvitationsEnded(
            invitation_ids=tuple(sorted(one.id for one in invitations)),
            inviter_ids=tuple(sorted({one.inviter_id for one in invitations})),
            status=status,
        )
    ]


def withdrawn(state: State, inviter: User) -> list[AnyChange]:
    """The change that ends the open invitations of a user who is deactivated."""
    mine = [
        one
        for one in state.invitations
        if one.inviter_id == inviter.id and one.status is InvitationStatus.OPEN
    ]
    return ended(mine, InvitationStatus.REVOKED)


def redacted(state: State, address: str) -> list[AnyChange]:
    """The change that removes the address from its invitations, which must be over (`answered`)."""
    folded = address.casefold()
    made = (one for one in state.invitations if one.address)
    ids = tuple(sorted(one.id for one in made if (one.address or "").casefold() == folded))
    return [InvitationsRedacted(invitation_ids=ids)] if ids else []


def answered(state: State, address: str) -> list[AnyChange]:
    """The changes that end all open invitations and confirmations of the address, which has an
    account now."""
    folded = address.casefold()
    used = [
        one
        for one in state.invitations
        if one.status is InvitationStatus.OPEN
        and one.address is not None
        and one.address.casefold() == folded
    ]
    confirmed = [c.id for c in state.confirmations if c.address.casefold() == folded]
    changes = ended(used, InvitationStatus.USED)
    if confirmed:
        changes.append(ConfirmationsEnded(confirmation_ids=tuple(sorted(confirmed))))
    return changes
