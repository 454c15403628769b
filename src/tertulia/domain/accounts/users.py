"""Creating, finding, and changing accounts, and their API keys."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.accounts import (
    admission,
    devices,
    full_members,
    profiles,
    signing_out,
)
from tertulia.domain.accounts.profiles import ProfileUpdate
from tertulia.domain.channels import subscription_changes, visibility
from tertulia.domain.organization.imports import require_moved
from tertulia.model.changes import (
    AnyChange,
    CredentialChanged,
    UserChanged,
    UserCreated,
)
from tertulia.model.errors import LastOfKind, NotPermitted, Refused
from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import Credential, NewApiKey, Role, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

# Finding


def find_by_address(state: State, viewer: User | None, address: str, host: str) -> User | None:
    """Return the account with that address, if the viewer can see both. The address is the real
    one, or its stand-in (`user7@` and the organization's host)."""
    user = _account_called(state, viewer, address, host)
    if user is None or (viewer is not None and not permissions.sees_user(state, viewer, user)):
        return None
    return user


def _account_called(state: State, viewer: User | None, address: str, host: str) -> User | None:
    user = state.user_with_address(address)
    if user is not None and permissions.sees_address(state, viewer, user):
        return user
    name, _, given_host = address.strip().casefold().rpartition("@")
    stand_in = re.fullmatch(r"user([0-9]{1,15})", name)
    if stand_in is None or given_host != host.casefold():
        return None
    return state.users.get(int(stand_in[1]))


def first_owner(state: State) -> int:
    """Return the person with the oldest active owner account. Raise Refused if no active owner
    exists."""
    owners = [i for i in state.users.active_by_role.keys(Role.OWNER) if not state.users[i].is_bot]
    if not owners:
        raise Refused(
            "The organization has no active owner, and this command acts on behalf of an owner."
        )
    return int(min(owners))


# Creating


class NewUser(Struct, frozen=True, kw_only=True):
    """A person's account to create. `credential.user_id` is still 0."""

    address: str
    full_name: str
    role: Role = Role.MEMBER
    credential: Credential
    awaits_arrival: bool = False
    """As in `User`."""


def create(context: CommandContext, new: NewUser) -> Decision[User]:
    """Create a person's account, subscribed to the default channels, without checking permissions
    (`create_for_another` does).

    Raise Refused for invalid names and addresses, and taken addresses.
    """
    state = context.state
    user = new_account(context, new.address, new.full_name, new.role)
    user = msgspec.structs.replace(user, awaits_arrival=new.awaits_arrival)
    return Decision(
        user,
        [
            creation_change(state, user, new.credential),
            *subscription_changes.default_subscription_changes(state, user),
            *admission.invitation_acceptance_changes(state, user.address),
        ],
    )


def new_account(
    context: CommandContext, address: str, full_name: str, role: Role = Role.MEMBER
) -> User:
    """Return a new person's account. Raise as `create`."""
    state = context.state
    require_moved(state)
    return User(
        id=state.users.next_id(),
        address=free_address(state, address),
        full_name=free_name(state, full_name),
        role=role,
        joined_at=int(context.now),
        avatar_source=state.realm.default_avatar_source,
    )


def check_new(context: CommandContext, address: str, full_name: str) -> Decision[None]:
    """Raise the errors of `create_for_another`, without hashing the password, which is
    expensive."""
    permissions.require(
        permissions.may_create_users(context.state, context.actor),
        "You don't have permission to create accounts.",
    )
    admission.require_allowed_email(context.state, free_address(context.state, address))
    free_name(context.state, full_name)
    return Decision(None)


def create_for_another(context: CommandContext, new: NewUser) -> Decision[User]:
    """Create a person's account, if the actor has permission. Raise as `create`."""
    check_new(context, new.address, new.full_name)
    return create(context, msgspec.structs.replace(new, awaits_arrival=True))


def arrive(context: CommandContext) -> Decision[None]:
    """Let the actor join if this is the first sign-in to an account that someone else created."""
    if not context.actor.awaits_arrival:
        return Decision(None)
    joined: dict[str, Any] = {"awaits_arrival": False}
    if not context.actor.joined_elsewhere:
        joined["joined_at"] = int(context.now)
    if context.actor.is_placeholder:
        joined["is_placeholder"] = False
    return Decision(None, account_changes(context, context.actor, joined))


def creation_change(
    state: State, user: User, credential: Credential, group_ids: Iterable[int] = ()
) -> UserCreated:
    """Return the change that creates the account with its credential, as a member of these groups
    and of its role's system group."""
    return UserCreated(
        user=user,
        credential=msgspec.structs.replace(credential, user_id=user.id),
        settings=msgspec.structs.replace(state.default_settings, user_id=user.id),
        group_ids=(*state.memberships.system_groups_of(user), *group_ids),
    )


def free_address(state: State, text: str) -> str:
    """Return the normalized address. Raise Refused if an account has it."""
    address = names.address(text)
    if state.user_with_address(address) is not None:
        raise Refused(f"An account with the email address '{address}' already exists.")
    return address


def free_name(state: State, text: str, user_id: int | None = None) -> str:
    """Return the normalized name.

    Raise Refused if it resembles a system bot's name, or looks like the name of an active account
    other than `user_id`. Equal names are allowed unless the organization requires unique names.
    """
    name = names.full_name(text)
    bots = map(state.users.__getitem__, state.users.bots)
    names.require_unlike(name, (bot.full_name for bot in bots if bot.is_system_bot))
    by_name = state.users.by_name
    for taken in names.alike_among(name, by_name):
        if not any(
            state.users[value].is_active for value in by_name.keys(taken) if value != user_id
        ):
            continue
        if state.realm.require_unique_names:
            raise Refused(
                "Someone already has this name, and names must be unique in this organization."
            )
        if names.without_lookalikes(taken) != names.without_lookalikes(name):
            raise Refused(
                f"This name looks the same as '{taken}', which is the name of another account."
            )
    return name


# Changing


class AccountUpdate(Struct, frozen=True, kw_only=True):
    """New values for an account; None keeps the current value."""

    full_name: str | None = None
    role: Role | None = None
    address: str | None = None
    profile: ProfileUpdate | None = None
    site: str = ""
    """The server's URL, for the email about a new address."""


def change(context: CommandContext, user_id: int, update: AccountUpdate) -> Decision[None]:
    """Change an account that the actor manages.

    Raise NotPermitted or LastOfKind if a role requires an owner or is the last owner's; Refused for
    unknown accounts, accounts that the actor can't change, and invalid values.
    """
    state, actor = context.state, context.actor
    target = managed_user(context, user_id)
    values: dict[str, Any] = {}
    over: list[AnyChange] = []
    mails: list[Mail] = []
    if update.full_name not in {None, target.full_name}:
        values["full_name"] = free_name(state, update.full_name, target.id)
    if update.role is not None:
        values["role"] = require_assignable_role(context, target, update.role)
    if update.address is not None:
        permissions.require_administrator(state, actor)
        address = names.address(update.address)
        if address.casefold() != target.address.casefold():
            address = free_address(state, address)
            admission.require_allowed_email(state, address)
            over = admission.invitation_acceptance_changes(state, address)
            mails = emails_to(MailKind.ADDRESS_CHANGED, target, update.site, address=address)
        values["address"] = address
    profile = (
        () if update.profile is None else profiles.profile_changes(context, target, update.profile)
    )
    return Decision(None, [*over, *account_changes(context, target, values), *profile], mails)


def managed_user(context: CommandContext, user_id: int) -> User:
    """Return the account. Raise Refused unless the actor can change it."""
    target = permissions.visible_user(context.state, context.actor, user_id)
    permissions.require(
        not target.is_system_bot
        and permissions.manages_account(context.state, context.actor, target),
        "You don't have permission to do this.",
    )
    return target


def check_managed(context: CommandContext, user_id: int) -> Decision[None]:
    """Raise Refused unless the actor can change the account."""
    managed_user(context, user_id)
    return Decision(None)


def require_assignable_role(context: CommandContext, target: User, role: Role) -> Role:
    """Return the role. Raise as `change` if the actor can't give it to the account."""
    if role is target.role:
        return role
    require_person(context.actor)
    permissions.require_administrator(context.state, context.actor)
    if Role.OWNER in {role, target.role}:
        permissions.require_owner(context.state, context.actor)
        require_another_owner(context.state, target)
    return role


def require_person(actor: User) -> None:
    """Raise NotPermitted for bots."""
    if actor.is_bot:
        raise NotPermitted("Bots can't do this.")


def require_another_owner(state: State, target: User) -> None:
    owners = {
        user_id
        for user_id in state.users.active_by_role.keys(Role.OWNER)
        if _is_person(state, user_id)
    }
    if owners == {target.id}:
        raise LastOfKind(is_last_owner=True)


def _is_person(state: State, user_id: int) -> bool:
    return not state.users[user_id].is_bot


def account_changes(
    context: CommandContext, target: User, values: Mapping[str, Any]
) -> list[AnyChange]:
    """Return the changes that set these fields of the account, if they differ."""
    state, now = context.state, context.now
    new = {name: value for name, value in values.items() if getattr(target, name) != value}
    if not new:
        return []
    change = UserChanged(
        user_id=target.id, values=new, was={name: getattr(target, name) for name in new}
    )
    first: list[AnyChange] = []
    if not new.keys().isdisjoint({"role", "joined_at", "bot"}):
        after = msgspec.structs.replace(target, **new)
        ended = full_members.overdue_changes(state, after, now) if target.is_active else []
        state, first = full_members.with_changes(state, ended), [*ended]
        was_in = set(state.memberships.system_groups_of(target)) if target.is_active else set()
        is_in = set(state.memberships.system_groups_of(after)) if target.is_active else set()
        saw, sees = _channels_seen(state, target), _channels_seen(state, after)
        change = msgspec.structs.replace(
            change,
            left=tuple(sorted(was_in - is_in)),
            joined=tuple(sorted(is_in - was_in)),
            gained=tuple(sorted(sees - saw)),
            lost=tuple(sorted(saw - sees)),
            subscribers={c: state.subscribers(c) for c in sees - saw},
        )
        bots = [target] if target.is_bot else state.users.bots_of(target.id)
        return [*first, *_changes_with_bots(state, change, after, bots)]
    return [*first, change]


def _channels_seen(state: State, user: User) -> set[int]:
    return {c.id for c in state.channels if channel_access.sees_channel(state, user, c)}


def _changes_with_bots(
    state: State, change: UserChanged, after: User, bots: Sequence[User]
) -> Iterable[AnyChange]:
    """Yield the change with its effects on the rights of these bots, and the ends of subscriptions
    that the bots can't have if their owner became a guest."""
    ahead = state.with_changes(after)
    rights: dict[int, tuple[int, int]] = {}
    ended: list[AnyChange] = []
    for bot in bots:
        after_bot = ahead.users[bot.id]
        roles = (permissions.role_of(state, bot), permissions.role_of(ahead, after_bot))
        if roles[0] is not roles[1]:
            rights[bot.id] = (int(roles[0]), int(roles[1]))
        ended += [
            subscription_changes.unsubscription_change(ahead, channel, [after_bot])
            for channel in (
                ahead.channels[channel_id] for channel_id in ahead.channel_ids_of(bot.id)
            )
            if not channel_access.bot_may_be_in(ahead, after_bot, channel)
        ]
    others = [bot.id for bot in bots if bot.id != after.id]
    seen = visibility.compare_sight(state, ahead, state.channels, others)
    yield msgspec.structs.replace(change, rights=rights, sight=seen)
    yield from ended


# Deactivating and reactivating


def free_bot_name(state: State, text: str, user_id: int | None = None) -> str:
    """Return the normalized name of a bot. Raise Refused if another active account has it."""
    name = free_name(state, text, user_id)
    same = state.users.by_name.keys(name) - {user_id}
    if any(state.users[other].is_active for other in same):
        raise Refused("Another account already has this name.")
    return name


# Keys


def replace_key(
    context: CommandContext, user_id: int, key: NewApiKey, site: str
) -> Decision[Credential]:
    """Replace the API key of the actor's account, or of one that the actor manages, and email the
    person; `site` is the server's URL. Return the new credential, which keeps its password."""
    target = context.actor if user_id == context.actor.id else managed_user(context, user_id)
    credential = with_key(context.state.credentials[target.id], key)
    mails = emails_to(MailKind.KEY_CHANGED, target, site)
    return Decision(credential, key_changes(context.state, target.id, key), mails)


def with_key(credential: Credential, key: NewApiKey) -> Credential:
    return msgspec.structs.replace(
        credential, key_digest=key.digest, key_sealed=key.sealed, adopts_key=False
    )


def key_changes(
    state: State, user_id: int, key: NewApiKey, password_hash: str | UnsetType = UNSET
) -> list[AnyChange]:
    """Return the changes that replace an account's API key and, if given, its password. They also
    remove the push tokens, push subscriptions, and access keys that depend on the old key."""
    credential = with_key(state.credentials[user_id], key)
    if password_hash is not UNSET:
        credential = msgspec.structs.replace(credential, password_hash=password_hash)
    void = devices.token_removal_changes(state, user_id)
    agents = signing_out.access_key_end_changes(state, user_id)
    pushes = signing_out.push_end_changes(state, user_id)
    return [CredentialChanged(credential=credential), *void, *agents, *pushes]


_NO_MAIL: Final = (".invalid", ".example")
"""Domains that get no email, because they belong to system bots and the demonstration."""


def emails_to(kind: MailKind, user: User, site: str, **facts: str) -> list[Mail]:
    """Return an email to the account's current address; nothing for bots and addresses that can't
    get email."""
    if user.is_bot or user.address.casefold().endswith(_NO_MAIL):
        return []
    return [Mail(kind=kind, to=user.address, site=site, about=user.id, facts=facts)]
