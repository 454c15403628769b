"""Events of user groups."""

from collections.abc import Hashable, Iterable
from typing import Any

from tertulia.model.changes import UserGroupCreated
from tertulia.state.organization import State
from tertulia.wire.events import Event, Projection, Scene, Viewer
from tertulia.wire.objects.groups import GroupSettingValue, UserGroupObject, user_group


class GroupAddEvent(Event, kw_only=True, tag="user_group"):
    """There is a new group."""

    op: str = "add"
    group: UserGroupObject


class GroupUpdateEvent(Event, kw_only=True, tag="user_group"):
    """Properties of a group have new values."""

    op: str = "update"
    group_id: int
    data: dict[str, str | bool | GroupSettingValue]


class GroupMembersEvent(Event, kw_only=True, tag="user_group"):
    """Users came into a group (`add_members`) or are not in it any more (`remove_members`)."""

    op: str
    group_id: int
    user_ids: list[int]


def members_added(group_ids: Iterable[int], user_id: int) -> Iterable[Event]:
    """The user came into the groups."""
    for group_id in group_ids:
        yield GroupMembersEvent(op="add_members", group_id=group_id, user_ids=[user_id])


def members_removed(group_ids: Iterable[int], user_id: int) -> Iterable[Event]:
    """The user is not in the groups any more."""
    for group_id in group_ids:
        yield GroupMembersEvent(op="remove_members", group_id=group_id, user_ids=[user_id])


def groups_known(scene: Scene, group_ids: Iterable[int], viewer: Viewer) -> tuple[int, ...]:
    """Those of the groups that the client was told of: not all know what a deactivated one is."""
    groups = scene.state.groups
    knows_all = viewer.registration.capabilities.include_deactivated_groups
    return tuple(g for g in group_ids if knows_all or not groups[g].deactivated)


class UserGroupCreatedProjection(Projection[UserGroupCreated]):
    """A new group, to everybody."""

    of = UserGroupCreated

    def audience(self, state: State, change: UserGroupCreated) -> None:
        return None

    def view(self, scene: Scene, change: UserGroupCreated, viewer: Viewer) -> Hashable | None:
        return () if groups_known(scene, (change.group.id,), viewer) else None

    def events(self, scene: Scene, change: UserGroupCreated, view: Any) -> Iterable[Event]:
        group = scene.state.groups[change.group.id]
        yield GroupAddEvent(group=user_group(scene.state, group, scene.at))
