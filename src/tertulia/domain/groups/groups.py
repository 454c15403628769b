"""Creating, changing, deactivating, and reactivating user groups."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import channel_access, permissions, quotas
from tertulia.domain import names as lookalikes
from tertulia.domain import names as names
from tertulia.domain.channels import subscriptions, visibility
from tertulia.domain.channels.subscriptions import MAX_BULK_NEW_SUBSCRIPTION_MESSAGES
from tertulia.domain.groups import group_settings
from tertulia.domain.groups.group_settings import (
    CHANNEL_SETTINGS,
    GROUP_CREATOR,
    GROUP_SETTINGS,
    REALM_SETTINGS,
    PermissionUpdate,
)
from tertulia.domain.messages import bot_messages
from tertulia.domain.messages.bot_messages import BotMessage, Render
from tertulia.model.changes import (
    AnyChange,
    UserGroupChanged,
    UserGroupCreated,
    UserGroupMembersChanged,
)
from tertulia.model.errors import GroupInUse, GroupUse, Refused
from tertulia.model.groups import ChannelSight, GroupSetting, Members, UserGroup
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State


class NewGroup(Struct, frozen=True, kw_only=True):
    """A group to create. Permissions that aren't in `settings` have their defaults."""

    name: str
    description: str
    members: tuple[int, ...]
    subgroups: tuple[int, ...] = ()
    settings: Mapping[str, GroupSetting] = {}


class GroupEdit(Struct, frozen=True, kw_only=True):
    """New values for a group. UNSET fields don't change."""

    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    reactivate: bool | UnsetType = UNSET
    """True reactivates the group; False changes nothing."""
    settings: Mapping[str, PermissionUpdate] = {}


# Finding


def existing_group(state: State, group_id: int) -> UserGroup:
    """Return the group, active or deactivated. Raise Refused if it doesn't exist."""
    group = state.groups.get(group_id)
    if group is None:
        raise Refused(f"No user group with ID {group_id} exists.")
    return group


def active_groups(state: State, group_ids: Iterable[int]) -> tuple[int, ...]:
    """Return the groups' IDs, each once, ascending. Raise Refused if one doesn't exist or is
    deactivated."""
    result = tuple(sorted(set(group_ids)))
    for group_id in result:
        if existing_group(state, group_id).deactivated:
            raise Refused(f"No user group with ID {group_id} exists.")
    return result


def possible_members(context: CommandContext, user_ids: tuple[int, ...]) -> tuple[int, ...]:
    """Return the IDs of accounts that can become members, each once, ascending. Raise the same
    Refused for accounts that don't exist, are deactivated, or can't be seen."""
    return tuple(sorted(user.id for user in subscriptions.named_accounts(context, user_ids)))


def managed_group(context: CommandContext, group_id: int) -> UserGroup:
    """Return the group. Raise Refused unless the actor can change it."""
    state = context.state
    group = existing_group(state, group_id)
    permissions.require(
        permissions.manages_group(state, context.actor, group),
        "You don't have permission to change this group.",
    )
    return group


def _free_name(state: State, text: str, group_id: int | None = None) -> str:
    name = names.group_name(text)
    others = (group.name for group in state.groups if group.id != group_id)
    if next(lookalikes.alike_among(name, others), None) is not None:
        raise Refused(f"A group named '{name}' already exists.")
    return name


# Creating and changing


def create(context: CommandContext, new: NewGroup) -> Decision[UserGroup]:
    """Create a group. Its creator can choose any first members and subgroups. Raise Refused without
    permission, for invalid or taken names, unknown people or groups, and invalid permissions."""
    state, actor, now = context.state, context.actor, context.now
    permissions.require(
        permissions.may_create_groups(state, actor), "You don't have permission to create groups."
    )
    quotas.check(state, actor, quotas.GROUPS)
    creator = Members((actor.id,), ())
    settings: dict[str, GroupSetting] = {
        name: creator
        for name, rule in GROUP_SETTINGS.items()
        if rule.default_group_name == GROUP_CREATOR
    }
    settings |= {
        name: group_settings.validated_setting(state, name, GROUP_SETTINGS[name], value)
        for name, value in new.settings.items()
    }
    group = UserGroup(
        id=state.groups.next_id(),
        name=_free_name(state, new.name),
        description=names.group_description(new.description),
        created_at=int(now),
        creator_id=actor.id,
        members=possible_members(context, new.members),
        subgroups=active_groups(state, new.subgroups),
    )
    group = msgspec.structs.replace(group, **settings)
    return Decision(group, [UserGroupCreated(group=group)])


def change(context: CommandContext, group_id: int, edit: GroupEdit) -> Decision[None]:
    """Change or reactivate a group.

    Raise Refused for unknown groups, groups that the actor can't change, and empty requests, and as
    `create`; StaleExpectation if someone else has changed a permission.
    """
    state = context.state
    group = managed_group(context, group_id)
    if edit == GroupEdit():
        raise Refused("Nothing to change: the request has no new value.")
    values: dict[str, Any] = {}
    if edit.name is not UNSET:
        values["name"] = _free_name(state, edit.name, group.id)
    if edit.description is not UNSET:
        values["description"] = names.group_description(edit.description)
    if edit.reactivate:
        values["deactivated"] = False
    for name, given in edit.settings.items():
        present = getattr(group, name)
        values[name] = group_settings.updated_setting(
            state, name, GROUP_SETTINGS[name], present, given
        )
    return Decision(None, _group_changes(group, values))


def _group_changes(group: UserGroup, values: Mapping[str, Any]) -> list[UserGroupChanged]:
    new = {name: value for name, value in values.items() if getattr(group, name) != value}
    if not new:
        return []
    return [UserGroupChanged(group_id=group.id, values=new, deactivated=group.deactivated)]


# Deactivating


def deactivate(context: CommandContext, group_id: int) -> Decision[None]:
    """Deactivate a group, so that nobody can mention it or use it in a permission.

    Raise Refused for unknown groups, groups that the actor can't change, and deactivated groups;
    GroupInUse if permissions or other groups refer to it.
    """
    group = managed_group(context, group_id)
    permissions.require(not group.deactivated, "This group is already deactivated.")
    uses = tuple(_uses(context, group))
    if uses:
        raise GroupInUse(uses)
    return Decision(None, _group_changes(group, {"deactivated": True}))


def _uses(context: CommandContext, group: UserGroup) -> Iterable[GroupUse]:
    """Yield the uses of the group in permissions and other groups, except by itself, archived
    channels, and deactivated groups."""
    state = context.state
    others = [other for other in state.groups if other.id != group.id and not other.deactivated]
    supergroups = tuple(sorted(other.id for other in others if group.id in other.subgroups))
    if supergroups:
        yield GroupUse("subgroup", supergroups)
    for channel in sorted(state.channels, key=lambda channel: channel.id):
        settings = () if channel.is_archived else _naming(channel, CHANNEL_SETTINGS, group)
        if settings:
            seen = channel_access.sees_channel(state, context.actor, channel)
            yield GroupUse("channel", (channel.id,) if seen else (), settings)
    for other in sorted(others, key=lambda other: other.id):
        settings = _naming(other, GROUP_SETTINGS, group)
        if settings:
            yield GroupUse("user_group", (other.id,), settings)
    settings = _naming(state.realm, REALM_SETTINGS, group)
    if settings:
        yield GroupUse("realm", (), settings)


def _naming(record: Struct, names: Iterable[str], group: UserGroup) -> tuple[str, ...]:
    return tuple(
        name for name in names if group.id in visibility.setting_groups(getattr(record, name))
    )


class MembersEdit(Struct, frozen=True, kw_only=True):
    """Users and groups to add to a group, and to remove from it."""

    add: tuple[int, ...] = ()
    remove: tuple[int, ...] = ()
    add_groups: tuple[int, ...] = ()
    remove_groups: tuple[int, ...] = ()


def change_members(
    context: CommandContext, group_id: int, edit: MembersEdit, render: Render
) -> Decision[None]:
    """Change a group's direct members, all or none. People whom someone else adds or removes get a
    message.

    Raise Refused for unknown groups and people, without permission for each change, for adding
    members and removing people who aren't members, and if a group would contain itself.
    """
    state = context.state
    group = existing_group(state, group_id)
    permissions.require(
        not group.is_system,
        "You can't change the members of a system group directly. Change people's roles instead.",
    )
    if edit == MembersEdit():
        raise Refused("Nothing to change: list members or subgroups to add or remove.")
    _check_permitted(context, group, edit)
    change = UserGroupMembersChanged(
        group_id=group.id,
        added=_new_members(context, group, edit.add),
        removed=_present_members(state, group, edit.remove),
        added_groups=_new_subgroups(state, group, edit.add_groups),
        removed_groups=_present_subgroups(group, edit.remove_groups),
        deactivated=group.deactivated,
    )
    changes: list[AnyChange] = [_with_sight(state, group, change)]
    changes.extend(bot_messages.posting_changes(context, _messages(context, group, change), render))
    return Decision(None, changes)


def sync_members(
    context: CommandContext, group_id: int, add: Iterable[int], remove: Iterable[int]
) -> Decision[None]:
    """Add and remove a group's direct members as a directory says, for the server's operator,
    without messages. Accounts that are already in the group, that aren't in it, or that are
    deactivated are skipped. Raise Refused for unknown groups and people, and for system groups."""
    state = context.state
    group = existing_group(state, group_id)
    permissions.require(not group.is_system, "You can't change the members of a system group.")
    for user_id in add:
        if user_id not in state.users:
            raise Refused(f"No user with ID {user_id} exists.")
    return Decision(None, sync_changes(state, group, add, remove))


def sync_changes(
    state: State, group: UserGroup, add: Iterable[int], remove: Iterable[int]
) -> list[AnyChange]:
    """Return the change that adds and removes these people, except those that `sync_members`
    skips."""
    present = state.groups.named_members[group.id]
    change = UserGroupMembersChanged(
        group_id=group.id,
        added=tuple(sorted(i for i in set(add) - present if state.users[i].is_active)),
        removed=tuple(sorted(i for i in set(remove) & present if state.users[i].is_active)),
        added_groups=(),
        removed_groups=(),
        deactivated=group.deactivated,
    )
    return [_with_sight(state, group, change)] if change.added or change.removed else []


def _with_sight(
    state: State, group: UserGroup, change: UserGroupMembersChanged
) -> UserGroupMembersChanged:
    return msgspec.structs.replace(change, sight=compare_sight(state, group, change))


def _check_permitted(context: CommandContext, group: UserGroup, edit: MembersEdit) -> None:
    state, actor = context.state, context.actor
    creator = {actor.id}
    if edit.add_groups or set(edit.add) - creator:
        permissions.require(
            permissions.may_add_members(state, actor, group),
            "You don't have permission to add members to this group.",
        )
    elif edit.add:
        permissions.require(
            permissions.may_join(state, actor, group),
            "You don't have permission to join this group.",
        )
    if edit.remove_groups or set(edit.remove) - creator:
        permissions.require(
            permissions.may_remove_members(state, actor, group),
            "You don't have permission to remove members from this group.",
        )
    elif edit.remove:
        permissions.require(
            permissions.may_leave(state, actor, group),
            "You don't have permission to leave this group.",
        )


def _new_members(
    context: CommandContext, group: UserGroup, user_ids: tuple[int, ...]
) -> tuple[int, ...]:
    new_members = possible_members(context, user_ids)
    for user_id in new_members:
        if user_id in context.state.groups.named_members[group.id]:
            raise Refused(f"User {user_id} is already in the group.")
    return new_members


def _present_members(state: State, group: UserGroup, user_ids: Iterable[int]) -> tuple[int, ...]:
    removed = tuple(sorted(set(user_ids)))
    members = frozenset(state.memberships.direct_members(group)) if removed else frozenset()
    for user_id in removed:
        if user_id not in members:
            raise Refused(f"User {user_id} isn't in the group.")
    return removed


def _new_subgroups(state: State, group: UserGroup, group_ids: Iterable[int]) -> tuple[int, ...]:
    new_subgroups = active_groups(state, group_ids)
    for group_id in new_subgroups:
        if group_id in group.subgroups:
            raise Refused(f"Group {group_id} is already in the group.")
        if group_id == group.id or group.id in state.memberships.subgroups(group_id):
            raise Refused(f"Group {group_id} contains this group, so you can't add it.")
    return new_subgroups


def _present_subgroups(group: UserGroup, group_ids: Iterable[int]) -> tuple[int, ...]:
    result = tuple(sorted(set(group_ids)))
    for group_id in result:
        if group_id not in group.subgroups:
            raise Refused(f"Group {group_id} isn't in the group.")
    return result


def compare_sight(
    state: State, group: UserGroup, change: UserGroupMembersChanged
) -> tuple[ChannelSight, ...]:
    """Return the accounts that gain and lose sight of channels through the change."""
    others = (*change.added_groups, *change.removed_groups)
    people = {*change.added, *change.removed}.union(*map(state.memberships.members, others))
    after = msgspec.structs.replace(
        group,
        members=tuple({*group.members, *change.added} - {*change.removed}),
        subgroups=tuple({*group.subgroups, *change.added_groups} - {*change.removed_groups}),
    )
    return visibility.compare_by_membership(state, state.with_changes(after), group.id, people)


def _messages(
    context: CommandContext, group: UserGroup, change: UserGroupMembersChanged
) -> list[BotMessage]:
    """Return the messages to people whom someone else added or removed. Return none if there are
    too many people."""
    state, actor = context.state, context.actor
    people = [*change.added, *change.removed]
    if len(people) > MAX_BULK_NEW_SUBSCRIPTION_MESSAGES:
        return []
    return [
        bot_messages.group_change_message(
            state, actor, user_id, group, added=user_id in change.added
        )
        for user_id in people
        if user_id != actor.id and not state.users[user_id].is_bot
    ]
