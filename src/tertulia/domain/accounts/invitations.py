"""Invitations: emails to one address each, and links that anyone can use."""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.accounts import addresses, admission
from tertulia.model.changes import InvitationChanged, InvitationSentAgain, InvitationsMade
from tertulia.model.channels import Channel
from tertulia.model.errors import Refused
from tertulia.model.groups import UserGroup
from tertulia.model.invitations import Invitation, InvitationStatus
from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import Role, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

DAY: Final = 86400
MAX_WELCOME_TEXT: Final = 8000
"""Code points."""
MAX_MINUTES: Final = 100 * 366 * 24 * 60
"""The longest time until an invitation expires, in minutes. Invitations can also never expire."""
_BETWEEN: Final = re.compile(r"[,\n\r]+")
_NAMED: Final = re.compile(r"[^<>]*<([^<>]*)>")


class InvitationTerms(Struct, frozen=True, kw_only=True):
    """The role, groups, and channels that an invitation grants. If `minutes` is None, it never
    expires. `welcome_text` is as in `Invitation`."""

    minutes: int | None
    role: Role = Role.MEMBER
    channel_ids: tuple[int, ...] = ()
    group_ids: tuple[int, ...] = ()
    default_channels: bool = False
    tell_inviter: bool = False
    welcome_text: str | None = None


class InvitationUpdate(Struct, frozen=True, kw_only=True):
    """New terms of a link. UNSET keeps the current value; the fields are as in
    `InvitationTerms`."""

    minutes: int | UnsetType | None = UNSET
    role: Role | UnsetType = UNSET
    channel_ids: tuple[int, ...] | UnsetType = UNSET
    group_ids: tuple[int, ...] | UnsetType = UNSET
    default_channels: bool | UnsetType = UNSET
    welcome_text: str | UnsetType | None = UNSET


class InvitationDelivery(Struct, frozen=True, kw_only=True):
    """The server's URL and a nonce for invitation links, and the daily limit of emailed
    invitations."""

    site: str
    nonce: str
    per_day: int


class NotInvited(Struct, frozen=True):
    """An address that wasn't invited, and the reason."""

    address: str
    reason: str
    is_deactivated: bool = False
    """Whether the address belongs to a deactivated account."""


class InviteResult(Struct, frozen=True, kw_only=True):
    invited: tuple[Invitation, ...] = ()
    not_invited: tuple[NotInvited, ...] = ()
    daily_limit_reached: bool = False


# Inviting


def invite(
    context: CommandContext, addressees: str, terms: InvitationTerms, post: InvitationDelivery
) -> Decision[InviteResult]:
    """Invite the addresses, separated by commas or line breaks, by email. Addresses with an account
    are skipped. If an address is invalid or not allowed, or the daily limit would be exceeded,
    nobody is invited, and the result says why.

    Raise Refused if the actor can't invite people or can't offer these terms, and if there is no
    address.
    """
    state, actor = context.state, context.actor
    _require_person(actor)
    permissions.require(
        permissions.holds_as_member(state, actor, state.realm.can_invite_users_group),
        "You don't have permission to invite people.",
    )
    wanted = _addresses(addressees)
    if not wanted:
        raise Refused("Enter at least one email address.")
    example = _invitation_on_terms(context, terms, post.nonce)
    bad: list[NotInvited] = []
    known: list[NotInvited] = []
    fresh: list[str] = []
    for text in wanted:
        try:
            address = names.address(text)
            admission.require_allowed_email(state, address)
        except Refused as refusal:
            bad.append(NotInvited(text[:100], str(refusal)))
            continue
        user = state.user_with_address(address)
        if user is None:
            fresh.append(address)
        else:
            reason = "An account with this email address already exists."
            known.append(NotInvited(address, reason, not user.is_active))
    if bad or not fresh:
        return Decision(InviteResult(not_invited=(*bad, *known)))
    if sent_today(state, context.now) + len(fresh) > post.per_day:
        return Decision(InviteResult(daily_limit_reached=True))
    made = tuple(
        _copy_for(context, example, state.invitations.next_id() + number, address)
        for number, address in enumerate(fresh)
    )
    return Decision(
        InviteResult(invited=made, not_invited=tuple(known)),
        [InvitationsMade(invitations=made)],
        [_mail(invitation, post.site) for invitation in made],
    )


def _addresses(text: str) -> list[str]:
    """Return the unique addresses in the text, without display names."""
    result: dict[str, str] = {}
    for part in _BETWEEN.split(text):
        named = _NAMED.fullmatch(part.strip())
        address = (named[1] if named else part).strip()
        if address:
            result.setdefault(address.casefold(), address)
    return list(result.values())


def create_link(
    context: CommandContext, terms: InvitationTerms, nonce: str
) -> Decision[Invitation]:
    """Create an invitation link that anyone can use. Raise Refused if the actor can't invite people
    or can't offer these terms."""
    state, actor = context.state, context.actor
    _require_person(actor)
    permissions.require(
        permissions.holds_as_member(state, actor, state.realm.create_multiuse_invite_group),
        "You don't have permission to create invitation links.",
    )
    return create_server_link(context, terms, nonce)


def create_server_link(
    context: CommandContext, terms: InvitationTerms, nonce: str
) -> Decision[Invitation]:
    """Create a link in the actor's name, for the server's operator, who isn't bound by the
    organization's settings."""
    made = _invitation_on_terms(context, terms, nonce)
    return Decision(made, [InvitationsMade(invitations=(made,))])


def create_personal_link(
    context: CommandContext,
    text: str,
    terms: InvitationTerms,
    nonce: str,
    email_from: str | None = None,
) -> Decision[Invitation]:
    """Create a link for one address, and email it if `email_from`, the server's URL, is given.
    Raise Refused for an address that is taken or not allowed."""
    like = _invitation_on_terms(context, terms, nonce)
    address = addresses.allowed_address(context.state, text)
    made = _copy_for(context, like, like.id, address, mailed=email_from is not None)
    emails = [] if email_from is None else [_mail(made, email_from)]
    return Decision(made, [InvitationsMade(invitations=(made,))], emails)


def _require_person(actor: User) -> None:
    if actor.is_bot:
        raise Refused("Bots can't invite people.")


def _invitation_on_terms(context: CommandContext, terms: InvitationTerms, nonce: str) -> Invitation:
    """Return a reusable invitation with these terms. Raise Refused if the actor can't offer
    them."""
    state, actor = context.state, context.actor
    _require_role(state, actor, terms.role)
    return Invitation(
        id=state.invitations.next_id(),
        inviter_id=actor.id,
        created_at=int(context.now),
        expires_at=_expiry(context, terms.minutes),
        role=terms.role,
        channel_ids=_channels(context, terms.channel_ids),
        group_ids=_groups(context, terms.group_ids),
        default_channels=terms.default_channels,
        welcome_text=_welcome_text(context, terms.welcome_text),
        tell_inviter=terms.tell_inviter,
        nonce=nonce,
    )


def _require_role(state: State, inviter: User, role: Role) -> None:
    permissions.require(
        role >= permissions.role_of(state, inviter),
        "You can't invite people to a role with more permissions than yours.",
    )


def _expiry(context: CommandContext, minutes: int | None) -> int | None:
    return None if minutes is None else int(context.now) + minutes * 60


def _welcome_text(context: CommandContext, text: str | None) -> str | None:
    if not permissions.is_administrator(context.state, context.actor):
        return None
    if text is not None and len(text) > MAX_WELCOME_TEXT:
        raise Refused(f"Welcome messages can have at most {MAX_WELCOME_TEXT} characters.")
    return text


def _copy_for(
    context: CommandContext,
    like: Invitation,
    invitation_id: int,
    address: str,
    *,
    mailed: bool = True,
) -> Invitation:
    """Return a copy of the invitation for one address."""
    return Invitation(
        id=invitation_id,
        inviter_id=like.inviter_id,
        address=address,
        created_at=like.created_at,
        expires_at=like.expires_at,
        role=like.role,
        channel_ids=like.channel_ids,
        group_ids=like.group_ids,
        default_channels=like.default_channels,
        welcome_text=like.welcome_text,
        tell_inviter=like.tell_inviter,
        nonce=like.nonce,
        sent_at=(int(context.now),) if mailed else (),
    )


def _channels(context: CommandContext, channel_ids: Iterable[int]) -> tuple[int, ...]:
    state, actor = context.state, context.actor
    channels: dict[int, Channel] = {}
    for channel_id in channel_ids:
        channel = state.channels.get(channel_id)
        if (
            channel is None
            or channel.is_archived
            or not channel_access.sees_channel(state, actor, channel)
        ):
            raise Refused(f"No channel with ID {channel_id} exists. No invitations were sent.")
        channels[channel.id] = channel
    if not channels:
        return ()
    allowed = {
        channel.id
        for channel in channels.values()
        if channel_access.may_subscribe_others(state, actor, channel)
    }
    permissions.require(
        channel_access.may_add_subscribers_at_all(state, actor) or bool(allowed),
        "You don't have permission to subscribe other people to channels.",
    )
    for channel in channels.values():
        permissions.require(
            channel.is_default or channel.id in allowed,
            f"You don't have permission to subscribe other people to '{channel.name}'.",
        )
    return tuple(channels)


def _groups(context: CommandContext, group_ids: Iterable[int]) -> tuple[int, ...]:
    state, actor = context.state, context.actor
    groups: dict[int, UserGroup] = {}
    for group_id in group_ids:
        group = state.groups.get(group_id)
        if group is None or group.deactivated:
            raise Refused(f"No user group with ID {group_id} exists. No invitations were sent.")
        permissions.require(
            permissions.may_add_members(state, actor, group),
            f"You don't have permission to add members to '{group.name}'.",
        )
        groups[group.id] = group
    return tuple(groups)


def _mail(invitation: Invitation, site: str) -> Mail:
    return Mail(
        kind=MailKind.INVITATION, to=invitation.address or "", site=site, about=invitation.id
    )


def sent_today(state: State, now: float) -> int:
    """Return the number of invitations that were emailed in the last 24 hours."""
    return sum(at > now - DAY for invitation in state.invitations for at in invitation.sent_at)


# Managing


def visible_to(state: State, viewer: User, now: float) -> list[Invitation]:
    """Return the usable invitations that the viewer manages, oldest first."""
    return sorted(
        (
            invitation
            for invitation in state.invitations
            if admission.is_managed(state, invitation, viewer, now)
        ),
        key=lambda invitation: invitation.id,
    )


def revoke(context: CommandContext, invitation_id: int) -> Decision[None]:
    """Revoke an email invitation. Raise the same Refused for unknown invitations, expired ones, and
    those that the actor can't revoke."""
    invitation = _managed(context, invitation_id, reusable=False)
    return Decision(None, admission.invitation_end_changes([invitation], InvitationStatus.REVOKED))


def revoke_link(context: CommandContext, invitation_id: int) -> Decision[None]:
    """Revoke an invitation link. Raise as `revoke`."""
    invitation = _managed(context, invitation_id, reusable=True)
    return Decision(None, admission.invitation_end_changes([invitation], InvitationStatus.REVOKED))


def change_link(
    context: CommandContext, invitation_id: int, new: InvitationUpdate
) -> Decision[None]:
    """Change the terms of an invitation link. Raise as `revoke_link` and `create_link`."""
    state = context.state
    invitation = _managed(context, invitation_id, reusable=True)
    values: dict[str, Any] = {}
    if not isinstance(new.role, UnsetType):
        values["role"] = new.role
        for person in (context.actor, state.users[invitation.inviter_id]):
            _require_role(state, person, new.role)
    if not isinstance(new.minutes, UnsetType):
        values["expires_at"] = _expiry(context, new.minutes)
    if not isinstance(new.channel_ids, UnsetType):
        values["channel_ids"] = _channels(context, new.channel_ids)
    if not isinstance(new.group_ids, UnsetType):
        values["group_ids"] = _groups(context, new.group_ids)
    if not isinstance(new.default_channels, UnsetType):
        values["default_channels"] = new.default_channels
    if not isinstance(new.welcome_text, UnsetType):
        permissions.require_administrator(state, context.actor)
        values["welcome_text"] = _welcome_text(context, new.welcome_text)
    changed = msgspec.structs.replace(invitation, **values)
    if changed == invitation:
        return Decision(None)
    return Decision(None, [InvitationChanged(invitation=changed)])


def resend(context: CommandContext, invitation_id: int, post: InvitationDelivery) -> Decision[None]:
    """Email an invitation again. Its expiry doesn't change. Raise as `revoke`, and Refused at the
    daily limit."""
    invitation = _managed(context, invitation_id, reusable=False)
    if sent_today(context.state, context.now) >= post.per_day:
        raise Refused(
            "This organization can't send any more email invitations today. Try again tomorrow."
        )
    change = InvitationSentAgain(
        invitation_id=invitation.id, inviter_id=invitation.inviter_id, at=int(context.now)
    )
    return Decision(None, [change], [_mail(invitation, post.site)])


def _managed(context: CommandContext, invitation_id: int, *, reusable: bool) -> Invitation:
    state, actor = context.state, context.actor
    invitation = state.invitations.get(invitation_id)
    if (
        invitation is None
        or invitation.is_reusable is not reusable
        or not admission.is_managed(state, invitation, actor, context.now)
    ):
        raise Refused("This invitation doesn't exist.")
    return invitation
