"""Roles, and permissions held through groups (for channels and messages, see
`domain/channel_access.py`). Every verb and query asks this module. Groups define who has a
permission; this module adds the limits of guests and the rights of administrators, and treats
anything that a user can't see as if it didn't exist."""

from tertulia.model.errors import NotPermitted, Refused
from tertulia.model.groups import GroupSetting, Members, UserGroup
from tertulia.model.users import AddressVisibility, BotKind, Role, User
from tertulia.state.state import State

# Roles


def role_of(state: State, user: User) -> Role:
    """Return the role whose rights the account has now. A bot has the lower of its own role and its
    owner's, and a guest's rights if the owner is deactivated. Clients see the assigned role
    instead."""
    if user.bot is None or user.bot.owner_id is None:
        return user.role
    owner = owner_of(state, user)
    return Role.GUEST if owner is None else max(user.role, owner.role)


def is_guest(state: State, user: User) -> bool:
    return role_of(state, user) is Role.GUEST


def is_moderator(state: State, user: User) -> bool:
    """Whether the account has at least the rights of a moderator."""
    return role_of(state, user) <= Role.MODERATOR


def is_administrator(state: State, user: User) -> bool:
    """Whether the account has at least the rights of an administrator."""
    return role_of(state, user) <= Role.ADMINISTRATOR


def is_owner(state: State, user: User) -> bool:
    """Whether the account has the rights of an organization's owners."""
    return role_of(state, user) is Role.OWNER


def require(allowed: bool, otherwise: str) -> None:
    """Raise Refused with the message `otherwise` unless allowed."""
    if not allowed:
        raise Refused(otherwise)


def require_administrator(state: State, actor: User) -> None:
    if not is_administrator(state, actor):
        raise NotPermitted("You must be an organization administrator.")


def require_owner(state: State, actor: User) -> None:
    if not is_owner(state, actor):
        raise NotPermitted("You must be an organization owner.")


def holds(state: State, user: User, setting: GroupSetting) -> bool:
    """Whether the user has a permission that guests can have too. A bot has it if the permission
    names the bot itself, or if the bot and its owner are both in a group that has it."""
    if not state.memberships.holds(user, setting):
        return False
    if user.bot is None or user.bot.owner_id is None:
        return True
    if isinstance(setting, Members) and user.id in setting.direct_members:
        return True
    owner = owner_of(state, user)
    return owner is not None and state.memberships.holds(owner, setting)


def holds_as_member(state: State, user: User, setting: GroupSetting) -> bool:
    """Whether the user has a permission that guests never have, even as members of a group that has
    it."""
    return not is_guest(state, user) and holds(state, user, setting)


# Channels


def owner_of(state: State, user: User) -> User | None:
    """Return a bot's active owner, if it has one."""
    if user.bot is None or user.bot.owner_id is None:
        return None
    owner = state.users[user.bot.owner_id]
    return owner if owner.is_active else None


# Messages


# People


def sees_user(state: State, viewer: User, other: User) -> bool:
    """Whether the viewer can see the other account. If the organization limits it, guests see only
    people they share a channel or a direct conversation with."""
    if viewer.id == other.id or other.is_bot or sees_everybody(state, viewer):
        return True
    return other.id in state.contacts.of(viewer.id)


def sees_everybody(state: State, viewer: User) -> bool:
    """Whether the viewer can see every account."""
    return not is_guest(state, viewer) or holds(
        state, viewer, state.realm.can_access_all_users_group
    )


def users_seen(state: State, viewer: User | None) -> list[User]:
    """Return the accounts that the viewer (None: not signed in) can see, by ascending ID. Faster
    than `sees_user` for each."""
    if viewer is None or sees_everybody(state, viewer):
        return sorted(state.users, key=lambda user: user.id)
    return [state.users[user_id] for user_id in sorted(contacts_and_bots(state, viewer))]


def contacts_and_bots(state: State, viewer: User) -> set[int]:
    """Return the IDs of the accounts that a limited guest sees: their own, all bots, and their
    contacts."""
    return {viewer.id, *state.users.bots, *state.contacts.of(viewer.id)}


def visible_user(state: State, viewer: User, user_id: int | None) -> User:
    """Return the account with that ID. Raise Refused unless the viewer can see it."""
    user = state.users.get(user_id)
    if user is None or not sees_user(state, viewer, user):
        raise Refused("This user doesn't exist.")
    return user


_LEAST_ROLE = {
    AddressVisibility.EVERYONE: Role.GUEST,
    AddressVisibility.MEMBERS: Role.MEMBER,
    AddressVisibility.MODERATORS: Role.MODERATOR,
    AddressVisibility.ADMINISTRATORS: Role.ADMINISTRATOR,
}


def address_visibility(state: State, user: User) -> AddressVisibility:
    """Return who can see the account's real email address."""
    settings = state.settings.get(user.id)
    return settings.email_address_visibility if settings else AddressVisibility.EVERYONE


def sees_address(state: State, viewer: User | None, other: User) -> bool:
    """Whether the viewer (None: not signed in) can see the other's real email address."""
    if viewer is not None and viewer.id == other.id:
        return True
    return shows_address(state, other, None if viewer is None else role_of(state, viewer))


def shows_address(state: State, user: User, role: Role | None) -> bool:
    """Whether the account shows its real email address to others with this role (None: not signed
    in)."""
    if user.is_bot:
        return True
    return role is not None and opens_address(address_visibility(state, user), role)


def opens_address(visibility: AddressVisibility, role: Role) -> bool:
    """Whether an account with this setting shows its email address to others with this role."""
    least = _LEAST_ROLE.get(visibility)
    return least is not None and role <= least


def may_create_users(state: State, user: User) -> bool:
    return holds_as_member(state, user, state.realm.can_create_users_group)


def may_create_bot(state: State, user: User, kind: BotKind) -> bool:
    """Whether the user can create that kind of bot. Incoming webhooks, which can only send, have
    their own permission."""
    if holds_as_member(state, user, state.realm.can_create_bots_group):
        return True
    return kind is BotKind.INCOMING_WEBHOOK and holds_as_member(
        state, user, state.realm.can_create_write_only_bots_group
    )


def manages_account(state: State, actor: User, target: User) -> bool:
    """Whether the actor can change the account: as an administrator (for an owner's account, as an
    owner), or as a bot's owner."""
    if target.bot is not None and target.bot.owner_id == actor.id:
        return True
    return is_owner(state, actor) if target.is_owner else is_administrator(state, actor)


def may_lend_rights(state: State, actor: User, owner: User) -> bool:
    """Whether the actor, who has a bot's key, can make another person its owner. A bot has no more
    rights than its owner, except that its owner's rights alone decide where it can send. So nobody
    gains rights that they don't have."""
    if role_of(state, actor) > role_of(state, owner):
        return False
    return is_administrator(state, actor) or all(
        holds(state, actor, channel.can_send_message_group)
        for channel in state.channels
        if holds(state, owner, channel.can_send_message_group)
    )


# User groups


def may_create_groups(state: State, user: User) -> bool:
    return holds_as_member(state, user, state.realm.can_create_groups)


def manages_group(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user can change and deactivate the group and its permissions. Nobody can change
    system groups."""
    return not group.is_system and (
        holds_as_member(state, user, state.realm.can_manage_all_groups)
        or holds_as_member(state, user, group.can_manage_group)
    )


def may_add_members(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user can add anyone, and any group, to the group."""
    return manages_group(state, user, group) or (
        not group.is_system and holds_as_member(state, user, group.can_add_members_group)
    )


def may_remove_members(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user can remove anyone, and any group, from the group."""
    return manages_group(state, user, group) or (
        not group.is_system and holds_as_member(state, user, group.can_remove_members_group)
    )


def may_join(state: State, user: User, group: UserGroup) -> bool:
    return may_add_members(state, user, group) or (
        not group.is_system and holds_as_member(state, user, group.can_join_group)
    )


def may_leave(state: State, user: User, group: UserGroup) -> bool:
    return may_remove_members(state, user, group) or (
        not group.is_system and holds(state, user, group.can_leave_group)
    )


def may_mention_group(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user can mention the group so that its members are notified. Mentions of system
    groups and deactivated groups notify nobody."""
    return not group.deactivated and holds(state, user, group.can_mention_group)
