"""Events of user groups and their members, including channels that members gain or lose access
to."""

from collections.abc import Collection, Hashable, Iterable
from enum import Enum
from typing import Any, Final, NamedTuple

from tertulia.domain import channel_access
from tertulia.domain.groups.group_settings import GROUP_SETTINGS
from tertulia.model.changes import (
    FullMembersChanged,
    UserGroupChanged,
    UserGroupCreated,
    UserGroupMembersChanged,
)
from tertulia.model.groups import SystemGroup
from tertulia.model.users import Named
from tertulia.state.folds import revised
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
    ProjectionContext,
    Projections,
    Viewer,
    projected,
    to_everybody,
)


class GroupAddEvent(Event, kw_only=True, tag="user_group"):
    """A group was created, or was reactivated and the client doesn't support deactivated groups."""

    op: str = "add"
    group: UserGroupObject


class GroupUpdateEvent(Event, kw_only=True, tag="user_group"):
    """Properties of a group changed."""

    op: str = "update"
    group_id: int
    data: dict[str, str | bool | GroupSettingValue]


class GroupMembersEvent(Event, kw_only=True, tag="user_group"):
    """Users were added to a group (`add_members`) or removed from it (`remove_members`)."""

    op: str
    group_id: int
    user_ids: list[int]


class GroupSubgroupsEvent(Event, kw_only=True, tag="user_group"):
    """Subgroups were added to a group (`add_subgroups`) or removed from it (`remove_subgroups`)."""

    op: str
    group_id: int
    direct_subgroup_ids: list[int]


class GroupRemoveEvent(Event, kw_only=True, tag="user_group"):
    """A group was deactivated, and the client doesn't support deactivated groups."""

    op: str = "remove"
    group_id: int


def members_added(group_ids: Iterable[int], user_id: int) -> Iterable[Event]:
    for group_id in group_ids:
        yield GroupMembersEvent(op="add_members", group_id=group_id, user_ids=[user_id])


def members_removed(group_ids: Iterable[int], user_id: int) -> Iterable[Event]:
    for group_id in group_ids:
        yield GroupMembersEvent(op="remove_members", group_id=group_id, user_ids=[user_id])


def groups_known(
    group_ids: Iterable[int], deactivated: Collection[int], viewer: Viewer
) -> tuple[int, ...]:
    """Return the groups that the client knows, given those that were `deactivated` at the time of
    the entry."""
    knows_all = viewer.registration.capabilities.include_deactivated_groups
    return tuple(g for g in group_ids if knows_all or g not in deactivated)


def _knows(viewer: Viewer, *, deactivated: bool) -> bool:
    return not deactivated or viewer.registration.capabilities.include_deactivated_groups


class _Effect(Enum):
    """The effect of a change of a group on a client."""

    APPEARED = "appeared"
    GONE = "gone"
    CHANGED = "changed"


def _changed_view(
    _: ProjectionContext, change: UserGroupChanged, viewer: Viewer
) -> Hashable | None:
    """The view for clients that don't support deactivated groups: a deactivated group is deleted
    and a reactivated one is new."""
    deactivated = change.values.get("deactivated", change.deactivated)
    if viewer.registration.capabilities.include_deactivated_groups:
        return _Effect.CHANGED
    if deactivated:
        return None if change.deactivated else _Effect.GONE
    return _Effect.APPEARED if change.deactivated else _Effect.CHANGED


def _changed(context: ProjectionContext, change: UserGroupChanged, view: Any) -> Iterable[Event]:
    state = context.state
    group = revised(state.groups[change.group_id], change.values)
    match view:
        case _Effect.APPEARED:
            yield GroupAddEvent(group=user_group(state, group))
        case _Effect.GONE:
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


def _members_view(
    context: ProjectionContext, change: UserGroupMembersChanged, viewer: Viewer
) -> Hashable | None:
    known = _knows(viewer, deactivated=change.deactivated)
    channels = visibility_changes(context, change.sight, viewer)
    return _MembersView(known, channels) if known or channels else None


def _members_changed(
    context: ProjectionContext, change: UserGroupMembersChanged, view: Any
) -> Iterable[Event]:
    if view.known:
        yield from _member_events(change.group_id, change.added, change.removed)
        for op, group_ids in (
            ("add_subgroups", change.added_groups),
            ("remove_subgroups", change.removed_groups),
        ):
            if group_ids:
                yield GroupSubgroupsEvent(
                    op=op, group_id=change.group_id, direct_subgroup_ids=list(group_ids)
                )
    yield from visibility_events(context, view.channels)


def _full_members_changed(
    context: ProjectionContext, change: FullMembersChanged, view: Any
) -> Iterable[Event]:
    yield from _member_events(SystemGroup.FULL_MEMBERS.value, change.joined, change.left)
    yield from visibility_events(context, view)


def _member_events(group_id: int, added: Iterable[int], removed: Iterable[int]) -> Iterable[Event]:
    for op, user_ids in (("add_members", list(added)), ("remove_members", list(removed))):
        if user_ids:
            yield GroupMembersEvent(op=op, group_id=group_id, user_ids=user_ids)


def named_in_sight(
    context: ProjectionContext, named: Named, deactivated: Collection[int], viewer: Viewer
) -> Named:
    """Return the settings that the viewer may see, given the groups that were `deactivated` at the
    time of the entry."""
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
    """Return the events with the current values of the settings."""
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
    projected(UserGroupChanged, _changed_view, _changed),
    projected(UserGroupMembersChanged, _members_view, _members_changed),
    projected(
        FullMembersChanged,
        lambda context, change, viewer: visibility_changes(context, change.sight, viewer),
        _full_members_changed,
        audience=lambda _, change: None if change.joined or change.left else (),
    ),
)
