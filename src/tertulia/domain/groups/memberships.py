"""Who is in which user group: people, and other groups."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.channels import visibility
from tertulia.domain.channels.subscriptions import MAX_BULK_NEW_SUBSCRIPTION_MESSAGES
from tertulia.domain.groups import groups
from tertulia.domain.messages import notices
from tertulia.domain.messages.notices import Notice, Render
from tertulia.model.changes import AnyChange, ChannelSight, UserGroupMembersChanged
from tertulia.model.errors import Refused
from tertulia.model.groups import UserGroup
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State


class MembersEdit(Struct, frozen=True, kw_only=True):
    """Users and groups to bring into a group, and to take out of it."""

    add: tuple[int, ...] = ()
    remove: tuple[int, ...] = ()
    add_groups: tuple[int, ...] = ()
    remove_groups: tuple[int, ...] = ()


def change(moment: Moment, group_id: int, edit: MembersEdit, render: Render) -> Decision[None]:
    """Change who is directly in a group: all of it, or nothing. People whom somebody else brings
    in or takes out are told.

    Refused for groups and people that do not exist, without the right to each part of it, for
    those who are members already or are none, and where a group would come to contain itself.
    """
    state = moment.state
    group = groups.known(state, group_id)
    permissions.require(
        not group.is_system,
        "You can't change the members of a system group directly. Change people's roles instead.",
    )
    if edit == MembersEdit():
        raise Refused("Nothing to change: list members or subgroups to add or remove.")
    _check_permitted(moment, group, edit)
    change = UserGroupMembersChanged(
        group_id=group.id,
        added=_new_members(moment, group, edit.add),
        removed=_present_members(state, group, edit.remove),
        added_groups=_new_subgroups(state, group, edit.add_groups),
        removed_groups=_present_subgroups(group, edit.remove_groups),
        deactivated=group.deactivated,
    )
    change = msgspec.structs.replace(change, sight=_visibility_changes(state, group, change))
    changes: list[AnyChange] = [change]
    changes.extend(notices.sent(moment, _messages(moment, group, change), render))
    return Decision(None, changes)


def _check_permitted(moment: Moment, group: UserGroup, edit: MembersEdit) -> None:
    state, actor = moment.state, moment.actor
    own = {actor.id}
    if edit.add_groups or set(edit.add) - own:
        permissions.require(
            permissions.may_add_members(state, actor, group),
            "You don't have permission to add members to this group.",
        )
    elif edit.add:
        permissions.require(
            permissions.may_join(state, actor, group),
            "You don't have permission to join this group.",
        )
    if edit.remove_groups or set(edit.remove) - own:
        permissions.require(
            permissions.may_remove_members(state, actor, group),
            "You don't have permission to remove members from this group.",
        )
    elif edit.remove:
        permissions.require(
            permissions.may_leave(state, actor, group),
            "You don't have permission to leave this group.",
        )


def _new_members(moment: Moment, group: UserGroup, user_ids: tuple[int, ...]) -> tuple[int, ...]:
    found = groups.members(moment, user_ids)
    for user_id in found:
        if user_id in moment.state.groups.named_members[group.id]:
            raise Refused(f"User {user_id} is already in the group.")
    return found


def _present_members(state: State, group: UserGroup, user_ids: Iterable[int]) -> tuple[int, ...]:
    found = tuple(sorted(set(user_ids)))
    members = frozenset(state.memberships.direct_members(group)) if found else frozenset()
    for user_id in found:
        if user_id not in members:
            raise Refused(f"User {user_id} isn't in the group.")
    return found


def _new_subgroups(state: State, group: UserGroup, group_ids: Iterable[int]) -> tuple[int, ...]:
    found = groups.in_use(state, group_ids)
    for group_id in found:
        if group_id in group.subgroups:
            raise Refused(f"Group {group_id} is already in the group.")
        if group_id == group.id or group.id in state.memberships.subgroups(group_id):
            raise Refused(f"Group {group_id} contains this group, so you can't add it.")
    return found


def _present_subgroups(group: UserGroup, group_ids: Iterable[int]) -> tuple[int, ...]:
    found = tuple(sorted(set(group_ids)))
    for group_id in found:
        if group_id not in group.subgroups:
            raise Refused(f"Group {group_id} isn't in the group.")
    return found


def _visibility_changes(
    state: State, group: UserGroup, change: UserGroupMembersChanged
) -> tuple[ChannelSight, ...]:
    others = (*change.added_groups, *change.removed_groups)
    people = {*change.added, *change.removed}.union(*map(state.memberships.members, others))
    after = msgspec.structs.replace(
        group,
        members=tuple({*group.members, *change.added} - {*change.removed}),
        subgroups=tuple({*group.subgroups, *change.added_groups} - {*change.removed_groups}),
    )
    return visibility.moved(state, state.with_changes(after), group.id, people)


def _messages(moment: Moment, group: UserGroup, change: UserGroupMembersChanged) -> list[Notice]:
    """The messages to people whom somebody else added or removed; none where they are too many."""
    state, actor = moment.state, moment.actor
    people = [*change.added, *change.removed]
    if len(people) > MAX_BULK_NEW_SUBSCRIPTION_MESSAGES:
        return []
    return [
        notices.group_changed(actor, user_id, group, added=user_id in change.added)
        for user_id in people
        if user_id != actor.id and not state.users[user_id].is_bot
    ]
