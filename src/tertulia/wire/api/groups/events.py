"""Events of user groups, of their members, and of channels that members gain or lose sight of."""

from collections.abc import Collection, Hashable, Iterable
from enum import Enum
from typing import Any, Final, NamedTuple

from tertulia.domain import channel_access
from tertulia.domain.groups.group_settings import GROUP_SETTINGS
from tertulia.model.changes import (
    FullMembersChanged,
    Named,
    UserGroupChanged,
    UserGroupCreated,
    UserGroupMembersChanged,
)
from tertulia.model.groups import SystemGroup
from tertulia.state.folds import revised
from tertulia.state.state import State
from tertulia.wire.api.channels.events import (
    ChannelUpdateEvent,
    ChannelVisibilityChanges,
    visibility_changes,
    visibility_events,
)
from tertulia.wire.api.channels.objects import excluded
from tertulia.wire.api.events import Event
from tertulia.wire.api.groups.objects import (
    GroupSettingValue,
    UserGroupObject,
    group_setting,
    user_group,
)
from tertulia.wire.api.organization.events import RealmUpdateDictEvent
from tertulia.wire.api.projection import (
    ForEverybody,
    Projection,
    ProjectionContext,
    Projections,
    Viewer,
    to_everybody,
)


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


class GroupSubgroupsEvent(Event, kw_only=True, tag="user_group"):
    """Groups came into a group (`add_subgroups`) or are not in it any more
    (`remove_subgroups`)."""

    op: str
    group_id: int
    direct_subgroup_ids: list[int]


class GroupRemoveEvent(Event, kw_only=True, tag="user_group"):
    """A group is out of use, to clients that know no such groups."""

    op: str = "remove"
    group_id: int


def members_added(group_ids: Iterable[int], user_id: int) -> Iterable[Event]:
    """The user came into the groups."""
    for group_id in group_ids:
        yield GroupMembersEvent(op="add_members", group_id=group_id, user_ids=[user_id])


def members_removed(group_ids: Iterable[int], user_id: int) -> Iterable[Event]:
    """The user is not in the groups any more."""
    for group_id in group_ids:
        yield GroupMembersEvent(op="remove_members", group_id=group_id, user_ids=[user_id])


def groups_known(
    group_ids: Iterable[int], deactivated: Collection[int], viewer: Viewer
) -> tuple[int, ...]:
    """The groups that the client knows: deactivated ones only with the capability. `deactivated`
    are the groups that were deactivated at the time of the entry."""
    knows_all = viewer.registration.capabilities.include_deactivated_groups
    return tuple(g for g in group_ids if knows_all or g not in deactivated)


def _knows(viewer: Viewer, *, deactivated: bool) -> bool:
    return not deactivated or viewer.registration.capabilities.include_deactivated_groups


class _Shown(Enum):
    """What a change of a group is to a client."""

    APPEARED = "appeared"
    """It came back, and the client does not know what it is to be out of use."""
    GONE = "gone"
    CHANGED = "changed"


class UserGroupChangedProjection(ForEverybody[UserGroupChanged]):
    """New values, to everybody; to clients without the capability, that a deactivated group is gone
    or a reactivated one is there."""

    of = UserGroupChanged

    def view(
        self, context: ProjectionContext, change: UserGroupChanged, viewer: Viewer
    ) -> Hashable | None:
        if viewer.registration.capabilities.include_deactivated_groups:
            return _Shown.CHANGED
        deactivated = change.values.get("deactivated", change.deactivated)
        if deactivated:
            return None if change.deactivated else _Shown.GONE
        return _Shown.APPEARED if change.deactivated else _Shown.CHANGED

    def events(
        self, context: ProjectionContext, change: UserGroupChanged, view: Any
    ) -> Iterable[Event]:
        state = context.state
        group = revised(state.groups[change.group_id], change.values)
        match view:
            case _Shown.APPEARED:
                yield GroupAddEvent(group=user_group(state, group))
            case _Shown.GONE:
                yield GroupRemoveEvent(group_id=group.id)
            case _:
                data: dict[str, str | bool | GroupSettingValue] = {}
                for name in change.values:
                    value = getattr(group, name)
                    data[name] = group_setting(state, value) if name in GROUP_SETTINGS else value
                yield GroupUpdateEvent(group_id=group.id, data=data)


class _MembersView(NamedTuple):
    known: bool
    channels: ChannelVisibilityChanges


class UserGroupMembersChangedProjection(ForEverybody[UserGroupMembersChanged]):
    """New and former members, to everybody; to users who gain or lose sight of channels by it,
    these channels."""

    of = UserGroupMembersChanged

    def view(
        self, context: ProjectionContext, change: UserGroupMembersChanged, viewer: Viewer
    ) -> Hashable | None:
        known = _knows(viewer, deactivated=change.deactivated)
        channels = visibility_changes(context, change.sight, viewer)
        return _MembersView(known, channels) if known or channels else None

    def events(
        self, context: ProjectionContext, change: UserGroupMembersChanged, view: Any
    ) -> Iterable[Event]:
        if view.known:
            yield from _changed(change.group_id, change.added, change.removed)
            for op, group_ids in (
                ("add_subgroups", change.added_groups),
                ("remove_subgroups", change.removed_groups),
            ):
                if group_ids:
                    yield GroupSubgroupsEvent(
                        op=op, group_id=change.group_id, direct_subgroup_ids=list(group_ids)
                    )
        yield from visibility_events(context, view.channels)


class FullMembersChangedProjection(Projection[FullMembersChanged]):
    """The same for the full members."""

    of = FullMembersChanged

    def audience(self, state: State, change: FullMembersChanged) -> Collection[int] | None:
        return None if change.joined or change.left else ()

    def view(
        self, context: ProjectionContext, change: FullMembersChanged, viewer: Viewer
    ) -> Hashable:
        return visibility_changes(context, change.sight, viewer)

    def events(
        self, context: ProjectionContext, change: FullMembersChanged, view: Any
    ) -> Iterable[Event]:
        yield from _changed(SystemGroup.FULL_MEMBERS.value, change.joined, change.left)
        yield from visibility_events(context, view)


def _changed(group_id: int, added: Iterable[int], removed: Iterable[int]) -> Iterable[Event]:
    for op, user_ids in (("add_members", list(added)), ("remove_members", list(removed))):
        if user_ids:
            yield GroupMembersEvent(op=op, group_id=group_id, user_ids=user_ids)


def named_in_sight(
    context: ProjectionContext, named: Named, deactivated: Collection[int], viewer: Viewer
) -> Named:
    """The settings that the viewer may know. `deactivated` are the groups that were deactivated at
    the time of the entry."""
    state, user = context.state, viewer.user
    channels = state.channels
    known = groups_known({group_id for group_id, _ in named.groups}, deactivated, viewer)
    return Named(
        channels=tuple(
            (channel_id, name)
            for channel_id, name in named.channels
            if not excluded(channels[channel_id], viewer.registration)
            and channel_access.sees_channel(state, user, channels[channel_id])
        ),
        groups=tuple((group_id, name) for group_id, name in named.groups if group_id in known),
        realm=named.realm,
    )


def holders_changed(context: ProjectionContext, named: Named) -> Iterable[Event]:
    """The settings' present values."""
    state = context.state
    for channel_id, name in named.channels:
        channel = state.channels[channel_id]
        yield ChannelUpdateEvent(
            stream_id=channel_id,
            name=channel.name,
            property=name,
            value=group_setting(state, getattr(channel, name)),
        )
    for group_id, name in named.groups:
        value = group_setting(state, getattr(state.groups[group_id], name))
        yield GroupUpdateEvent(group_id=group_id, data={name: value})
    for name in named.realm:
        value = group_setting(state, getattr(state.realm, name))
        yield RealmUpdateDictEvent(data={name: value})


PROJECTIONS: Final[Projections] = (
    to_everybody(
        UserGroupCreated,
        lambda context, change: GroupAddEvent(group=user_group(context.state, change.group)),
        only_if=lambda _, change, viewer: _knows(viewer, deactivated=change.group.deactivated),
    ),
    UserGroupChangedProjection(),
    UserGroupMembersChangedProjection(),
    FullMembersChangedProjection(),
)
