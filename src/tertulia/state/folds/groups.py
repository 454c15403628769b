"""Folds of user groups."""

from tertulia.model import changes
from tertulia.state.folds.registry import Folds, revised
from tertulia.state.organization import State

FOLDS = Folds()


@FOLDS.of(changes.UserGroupCreated)
def _(state: State, change: changes.UserGroupCreated) -> None:
    state.groups.put(change.group)


@FOLDS.of(changes.UserGroupChanged)
def _(state: State, change: changes.UserGroupChanged) -> None:
    state.groups.put(revised(state.groups[change.group_id], change.values))


@FOLDS.of(changes.UserGroupMembersChanged)
def _(state: State, change: changes.UserGroupMembersChanged) -> None:
    group = state.groups[change.group_id]
    members = {*group.members, *change.added} - set(change.removed)
    subgroups = {*group.subgroups, *change.added_groups} - set(change.removed_groups)
    values = {"members": tuple(sorted(members)), "subgroups": tuple(sorted(subgroups))}
    state.groups.put(revised(group, values))


@FOLDS.of(changes.FullMembersChanged)
def _(state: State, change: changes.FullMembersChanged) -> None:
    values = {
        "waiting_period_applied": change.period,
        "full_members_joined_by": change.joined_by,
    }
    state.realms.put(revised(state.realm, values))
