"""Who may do what. Every verb and every query asks here.

A permission is held by a group; `Memberships.holds` says whether a user is in it. Here is what the
groups do not say: the limits of guests, the rights that administrators always have, and that what a
user may not see is the same for them as what does not exist.
"""

from tertulia.model.errors import NotPermitted, Refused
from tertulia.model.groups import GroupSetting, Members, UserGroup
from tertulia.model.users import AddressVisibility, BotKind, Role, User
from tertulia.state.state import State

# Roles


def role_of(state: State, user: User) -> Role:
    """The role whose rights the account has at this moment.

    A bot has those of its own role, and of its owner's where that is a lesser one; those of a
    guest where its owner is gone. What is shown of an account is the role it was given.
    """
    if user.bot is None or user.bot.owner_id is None:
        return user.role
    owner = owner_of(state, user)
    return Role.GUEST if owner is None else max(user.role, owner.role)


def is_guest(state: State, user: User) -> bool:
    """Whether the account has no more than a guest's rights."""
    return role_of(state, user) is Role.GUEST


def is_moderator(state: State, user: User) -> bool:
    """Whether the account has the rights of moderators: administrators and owners too."""
    return role_of(state, user) <= Role.MODERATOR


def is_administrator(state: State, user: User) -> bool:
    """Whether the account has the rights of administrators: owners too."""
    return role_of(state, user) <= Role.ADMINISTRATOR


def isowner_of(state: State, user: User) -> bool:
    """Whether the account has the rights of an organization's owners."""
    return role_of(state, user) is Role.OWNER


def require(allowed: bool, otherwise: str) -> None:
    """Refuse with the sentence unless allowed."""
    if not allowed:
        raise Refused(otherwise)


def require_administrator(state: State, actor: User) -> None:
    """Raise NotPermitted for anyone below an administrator."""
    if not is_administrator(state, actor):
        raise NotPermitted("You must be an organization administrator.")


def require_owner(state: State, actor: User) -> None:
    """Raise NotPermitted for anyone below an owner."""
    if not isowner_of(state, actor):
        raise NotPermitted("You must be an organization owner.")


def holds(state: State, user: User, setting: GroupSetting) -> bool:
    """Whether the user has a permission that guests may have as well.

    A bot has it where the permission names the bot itself, or where both it and its owner are in
    the groups that have it.
    """
    if not state.memberships.holds(user, setting):
        return False
    if user.bot is None or user.bot.owner_id is None:
        return True
    if isinstance(setting, Members) and user.id in setting.direct_members:
        return True
    owner = owner_of(state, user)
    return owner is not None and state.memberships.holds(owner, setting)


def holds_as_member(state: State, user: User, setting: GroupSetting) -> bool:
    """The same for a permission that guests never gain, whatever group they are in."""
    return not is_guest(state, user) and holds(state, user, setting)


# Channels


def owner_of(state: State, user: User) -> User | None:
    if user.bot is None or user.bot.owner_id is None:
        return None
    owner = state.users[user.bot.owner_id]
    return owner if owner.is_active else None


# Messages


# People


def sees_user(state: State, viewer: User, other: User) -> bool:
    """Whether the viewer may know of the other account.

    Where the organization limits it, guests see only those with whom they share a channel or a
    direct conversation.
    """
    if viewer.id == other.id or other.is_bot or sees_everybody(state, viewer):
        return True
    return other.id in state.contacts.of(viewer.id)


def sees_everybody(state: State, viewer: User) -> bool:
    """Whether the viewer may know of every account: all but the guests of some organizations."""
    return not is_guest(state, viewer) or holds(
        state, viewer, state.realm.can_access_all_users_group
    )


def users_seen(state: State, viewer: User | None) -> list[User]:
    """The accounts that the viewer (None: nobody signed in) may know of, in ascending order of ID.
    The same as asking `sees_user` for each, and quicker."""
    if viewer is None or sees_everybody(state, viewer):
        return sorted(state.users, key=lambda user: user.id)
    return [state.users[user_id] for user_id in sorted(contacts_and_bots(state, viewer))]


def contacts_and_bots(state: State, viewer: User) -> set[int]:
    """The accounts that a viewer may know of who may not know of all: itself, all bots, and those
    with which it shares a channel or a direct conversation."""
    return {viewer.id, *state.users.bots, *state.contacts.of(viewer.id)}


def visible_user(state: State, viewer: User, user_id: int | None) -> User:
    """The account of that ID. Refused when there is none that the viewer may know of."""
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
    """To whom the account shows its real address."""
    settings = state.settings.get(user.id)
    return settings.email_address_visibility if settings else AddressVisibility.EVERYONE


def sees_address(state: State, viewer: User | None, other: User) -> bool:
    """Whether the viewer (None: nobody signed in) may see the other's real address."""
    if viewer is not None and viewer.id == other.id:
        return True
    return shows_address(state, other, None if viewer is None else role_of(state, viewer))


def shows_address(state: State, user: User, role: Role | None) -> bool:
    """Whether the account shows its real address to others of that role (None: to those who are
    not signed in)."""
    if user.is_bot:
        return True
    return role is not None and opens_address(address_visibility(state, user), role)


def opens_address(visibility: AddressVisibility, role: Role) -> bool:
    """Whether an account with that setting shows its address to others of that role."""
    least = _LEAST_ROLE.get(visibility)
    return least is not None and role <= least


def may_create_users(state: State, user: User) -> bool:
    """Whether the user may make accounts for others."""
    return holds_as_member(state, user, state.realm.can_create_users_group)


def may_create_bot(state: State, user: User, kind: BotKind) -> bool:
    """Whether the user may have a bot of that kind. Incoming webhooks, which can only send, have
    a permission of their own."""
    if holds_as_member(state, user, state.realm.can_create_bots_group):
        return True
    return kind is BotKind.INCOMING_WEBHOOK and holds_as_member(
        state, user, state.realm.can_create_write_only_bots_group
    )


def manages_account(state: State, actor: User, target: User) -> bool:
    """Whether the actor may change the account: an administrator (an owner for an owner's), or
    the owner of a bot."""
    if target.bot is not None and target.bot.owner_id == actor.id:
        return True
    return isowner_of(state, actor) if target.is_owner else is_administrator(state, actor)


def may_lend_rights(state: State, actor: User, owner: User) -> bool:
    """Whether the actor may let another person own a bot that the actor has the key of.

    Its rights are never more than its own and the owner's, but for writing to channels, where the
    owner's count alone: nobody gains what they do not have.
    """
    if role_of(state, actor) > role_of(state, owner):
        return False
    return is_administrator(state, actor) or all(
        holds(state, actor, channel.can_send_message_group)
        for channel in state.channels
        if holds(state, owner, channel.can_send_message_group)
    )


# User groups


def may_create_groups(state: State, user: User) -> bool:
    """Whether the user may create user groups."""
    return holds_as_member(state, user, state.realm.can_create_groups)


def manages_group(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user may change the group and its permissions, and take it out of use. Nobody
    changes the groups of the roles."""
    return not group.is_system and (
        holds_as_member(state, user, state.realm.can_manage_all_groups)
        or holds_as_member(state, user, group.can_manage_group)
    )


def may_add_members(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user may bring anybody, and any other group, into the group."""
    return manages_group(state, user, group) or (
        not group.is_system and holds_as_member(state, user, group.can_add_members_group)
    )


def may_remove_members(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user may take anybody, and any other group, out of the group."""
    return manages_group(state, user, group) or (
        not group.is_system and holds_as_member(state, user, group.can_remove_members_group)
    )


def may_join(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user may become a member of the group by themselves."""
    return may_add_members(state, user, group) or (
        not group.is_system and holds_as_member(state, user, group.can_join_group)
    )


def may_leave(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user, who is in the group, may end that by themselves."""
    return may_remove_members(state, user, group) or (
        not group.is_system and holds(state, user, group.can_leave_group)
    )


def may_mention_group(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user may notify the group's members by a mention. A mention of a group of the
    roles, or of a deactivated one, notifies nobody."""
    return not group.deactivated and holds(state, user, group.can_mention_group)
