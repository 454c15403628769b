"""Finding, linking, and creating accounts for people whom an identity provider identifies, and
syncing their roles and groups from it."""

from collections.abc import Mapping
from typing import Final

from tertulia.domain import names, permissions
from tertulia.domain.accounts import addresses, admission, signup, users
from tertulia.domain.accounts.signup import NewMember
from tertulia.domain.groups import groups
from tertulia.domain.messages.bot_messages import Render
from tertulia.model.changes import (
    AnyChange,
    IdentitiesUnlinked,
    IdentityLinked,
)
from tertulia.model.errors import AccountDeactivated, LastOfKind, NoSuchItem, Refused
from tertulia.model.groups import UserGroup
from tertulia.model.identities import Identity, ProvenIdentity, RecognitionRules
from tertulia.model.invitations import Invitation, InvitationStatus
from tertulia.model.users import Credential, Role, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_SUBJECT: Final = 500
"""Longest ID at a provider, in characters."""


class NotRecognized(Refused):
    """The provider identified the person, but they can't use this organization. The message says
    why."""

    def __init__(self, reason: str, message: str, **arguments: str) -> None:
        """`reason` and `arguments` are for a translated message."""
        super().__init__(message.format(**arguments))
        self.reason = reason
        self.arguments = arguments


def recognize(
    context: CommandContext,
    proven: ProvenIdentity,
    rules: RecognitionRules,
    credential: Credential,
    site: str,
    render: Render,
    invitation_id: int | None = None,
) -> Decision[User]:
    """Return the person's account: the one linked to the identity, else the one with its verified
    address, which is then linked, else a new one. Its role and groups are synced from the provider.

    `credential` (without a password), `site` (the server's URL), and `invitation_id` (a reusable
    invitation that the person opened) are for a new account. Raise NotRecognized if there is no
    account, or it can't be used; AccountDeactivated; and Refused if the organization doesn't allow
    the address.
    """
    state = context.state
    if not proven.subject or len(proven.subject) > MAX_SUBJECT:
        raise NotRecognized(
            "not_named",
            "{title} didn't say who you are. Ask an administrator for help.",
            title=rules.title,
        )
    linked = state.identities.by_subject.get((proven.method, proven.subject))
    if linked is not None:
        owner = _usable(state.users[state.identities[linked].user_id])
        return Decision(owner, sync_changes(context, owner, proven.groups, rules))
    address = _verified_address(proven, rules)
    if (user := state.user_with_address(address)) is None:
        invitation = invitation_for(state, address, context.now) or _opened_invitation(
            state, invitation_id, context.now
        )
        return _join(context, proven, rules, address, credential, site, render, invitation)
    if user.is_bot:
        raise NotRecognized(
            "address_of_bot",
            "The address {address} belongs to a bot. Ask an administrator for help.",
            address=address,
        )
    _usable(user)
    if any(identity.method == proven.method for identity in state.identities.of_user[user.id]):
        # The address was given to someone else, or the provider was set up again.
        raise NotRecognized(
            "linked_elsewhere",
            "The account with the address {address} is linked to another person at {title}. Ask"
            " the people who run this server to unlink it.",
            address=address,
            title=rules.title,
        )
    linking = link_changes(context, user.id, proven)
    return Decision(user, [*linking, *sync_changes(context, user, proven.groups, rules)])


def _opened_invitation(state: State, invitation_id: int | None, now: float) -> Invitation | None:
    """Return the reusable invitation with that ID, if it can be used."""
    invitation = None if invitation_id is None else state.invitations.get(invitation_id)
    if invitation is None or not invitation.is_reusable:
        return None
    return invitation if admission.is_usable(state, invitation, now) else None


def _verified_address(proven: ProvenIdentity, rules: RecognitionRules) -> str:
    if not proven.address:
        raise NotRecognized(
            "no_address",
            "{title} didn't send your email address. Ask an administrator for help.",
            title=rules.title,
        )
    if not proven.is_address_verified:
        raise NotRecognized(
            "address_unverified",
            "{title} hasn't verified your email address {address}. Verify it there, and sign in"
            " again.",
            title=rules.title,
            address=proven.address[:254],
        )
    return names.address(proven.address)


def _usable(user: User) -> User:
    if not user.is_active:
        raise AccountDeactivated("This account is deactivated.")
    return user


def _join(
    context: CommandContext,
    proven: ProvenIdentity,
    rules: RecognitionRules,
    address: str,
    credential: Credential,
    site: str,
    render: Render,
    invitation: Invitation | None,
) -> Decision[User]:
    """Create the account, with what the person's invitation grants if they have one."""
    state = context.state
    if not rules.creates and invitation is None:
        raise NotRecognized(
            "no_such_account",
            "No account here has the address {address}. Ask an administrator to invite you.",
            address=address,
        )
    if rules.is_public and invitation is None and state.realm.invite_required:
        raise NotRecognized(
            "invitation_needed",
            "You need an invitation to join this organization. Ask a member to invite the address"
            " {address}.",
            address=address,
        )
    if invitation is None:
        addresses.allowed_address(state, address)
    values = proven.groups or frozenset()
    joining = NewMember(
        address=address,
        full_name=free_name(state, proven.full_name, address),
        credential=credential,
        site=site,
        role=min((role for role, text in rules.roles.items() if text in values), default=None),
        group_ids=tuple(
            group.id
            for name, value in rules.groups.items()
            if value in values and (group := _group(state, name)) is not None
        ),
    )
    joined = signup.join(context, invitation, address, joining, render)
    changes = [*joined.changes, *link_changes(context, joined.result.id, proven)]
    return Decision(joined.result, changes, joined.mails)


def invitation_for(state: State, address: str, now: float) -> Invitation | None:
    """Return the newest usable invitation for the address."""
    invitations = reversed(state.invitations.of_address[address.casefold()])
    return next(
        (invitation for invitation in invitations if admission.is_usable(state, invitation, now)),
        None,
    )


def free_name(state: State, proven: str, address: str, user_id: int | None = None) -> str:
    """Return the proven name, or a similar one that no account other than `user_id` has. Raise
    NotRecognized if none is allowed."""
    local, plain = address.partition("@")[0], plain_name(proven)
    for name in (plain, f"{plain} ({local})"[: names.MAX_FULL_NAME], local, f"{local} (new)"):
        try:
            return users.free_name(state, name, user_id)
        except Refused:
            continue
    raise NotRecognized(
        "name_unusable",
        "Your name can't be used here. Ask an administrator for help.",
    )


def plain_name(proven: str) -> str:
    """Remove characters that names can't contain."""
    plain = "".join(text if text not in '*`\\>"@|' else " " for text in proven)
    return " ".join(plain.split())[: names.MAX_FULL_NAME].strip()


# Links


def link_changes(
    context: CommandContext, user_id: int, proven: ProvenIdentity
) -> list[IdentityLinked]:
    """Return the change that links an account to an identity, which must not be linked yet."""
    identity = Identity(
        id=context.state.identities.next_id(),
        user_id=user_id,
        method=proven.method,
        subject=proven.subject,
        linked_at=int(context.now),
    )
    return [IdentityLinked(identity=identity)]


def unlink_changes(
    state: State, user_id: int, method: str | None = None
) -> list[IdentitiesUnlinked]:
    """Return the change that removes an account's links to the method, or to all, if any."""
    identities = state.identities.of_user[user_id]
    ids = tuple(sorted(identity.id for identity in identities if method in {None, identity.method}))
    return [IdentitiesUnlinked(user_id=user_id, identity_ids=ids)] if ids else []


def unlink(context: CommandContext, user_id: int, method: str | None = None) -> Decision[int]:
    """Remove an account's links to a sign-in method, or to all, so that the next sign-in finds it
    by its email address. Return the number of removed links. For the server's operator."""
    changes = unlink_changes(context.state, user_id, method)
    return Decision(sum(len(change.identity_ids) for change in changes), changes)


def unlink_managed(context: CommandContext, user_id: int) -> Decision[int]:
    """Remove all links of an account. Return the number of removed links. Raise Refused unless the
    actor is an owner."""
    permissions.require_owner(context.state, context.actor)
    return unlink(context, permissions.visible_user(context.state, context.actor, user_id).id)


def unlink_own(
    context: CommandContext, identity_id: int, methods: frozenset[str]
) -> Decision[None]:
    """Remove one of the actor's links. `methods` are the configured sign-in methods. Raise
    NoSuchItem for others' links, and Refused if the actor couldn't sign in anymore."""
    state, actor = context.state, context.actor
    linked = state.identities.of_user[actor.id]
    gone = [identity for identity in linked if identity.id == identity_id]
    if not gone:
        raise NoSuchItem("identity")
    has_password = (
        state.realm.password_sign_in and state.credentials[actor.id].password_hash is not None
    )
    factors = state.second_factors
    has_passkey = any(factor.id in factors.passkeys.ids for factor in factors.of_user[actor.id])
    others = {identity.method for identity in linked if identity.id != identity_id}
    if not (has_password or has_passkey or others & methods):
        raise Refused("You couldn't sign in anymore. Set a password or add a passkey first.")
    return Decision(None, [IdentitiesUnlinked(user_id=actor.id, identity_ids=(identity_id,))])


# Roles and groups


def sync_changes(
    context: CommandContext,
    user: User,
    values: frozenset[str] | None,
    rules: RecognitionRules,
) -> list[AnyChange]:
    """Return the changes that sync the user's role and groups with the provider's `values`; no
    changes if the provider doesn't send any (None).

    Only groups and roles that the rules name are added or removed. What an invitation granted
    stays, and the last owner stays an owner.
    """
    if values is None:
        return []
    state, changes = context.state, list[AnyChange]()
    role = _role(state, user, values, rules.roles)
    if role is not user.role:
        changes += users.account_changes(context, user, {"role": role})
    for name, value in rules.groups.items():
        group = _group(state, name)
        if group is None or (value not in values and group.id in user.invited_group_ids):
            continue
        present, absent = ((user.id,), ()) if value in values else ((), (user.id,))
        changes += groups.sync_changes(state, group, present, absent)
    return changes


def _role(state: State, user: User, values: frozenset[str], roles: Mapping[Role, str]) -> Role:
    is_invited = user.invited_role is user.role or _is_invited_by_address(state, user)
    # Keep a role that an invitation granted, or that the rules don't name.
    otherwise = Role.MEMBER if user.role in roles and not is_invited else user.role
    role = min((role for role, value in roles.items() if value in values), default=otherwise)
    if user.role is not Role.OWNER or role is Role.OWNER:
        return role
    if Role.OWNER not in roles:
        return Role.OWNER
    try:
        users.require_another_owner(state, user)
    except LastOfKind:
        return Role.OWNER
    return role


def _is_invited_by_address(state: State, user: User) -> bool:
    """Whether an invitation of the address gave the role. Accounts of version 0.1.0 don't record
    it."""
    return any(
        invitation.status is InvitationStatus.USED and invitation.role is user.role
        for invitation in state.invitations.of_address[user.address.casefold()]
    )


def _group(state: State, name: str) -> UserGroup | None:
    group_id = state.groups.by_name.get(name.casefold())
    group = None if group_id is None else state.groups[group_id]
    return None if group is None or group.is_system or group.deactivated else group
