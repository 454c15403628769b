"""User groups and permission settings as JSON objects."""

from collections.abc import Iterable

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain.groups.group_settings import GROUP_SETTINGS, PermissionUpdate
from tertulia.model.groups import GroupSetting, Members, UserGroup
from tertulia.state.state import State
from tertulia.wire.http.parameters import Int, Params
from tertulia.wire.http.responses import Fragments, JsonParts, encode


class MembersObject(Struct, kw_only=True):
    """The members and subgroups of an anonymous group that has a permission."""

    direct_members: list[int]
    direct_subgroups: list[int]


GroupSettingValue = int | MembersObject


def group_setting(state: State, setting: GroupSetting) -> GroupSettingValue:
    """Return the holders of the permission, without deactivated users."""
    if isinstance(setting, Members):
        return MembersObject(
            direct_members=[u for u in setting.direct_members if state.users[u].is_active],
            direct_subgroups=list(setting.direct_subgroups),
        )
    return int(setting)


class GivenMembers(Struct, kw_only=True, frozen=True):
    """The members and subgroups of an anonymous group to give a permission to."""

    direct_members: list[Int]
    direct_subgroups: list[Int]


GivenSetting = Int | GivenMembers
"""The holders of a permission, as sent by a client: a group's ID or an anonymous group."""


class GivenChange(Struct, kw_only=True, frozen=True):
    """A new value for a permission, and optionally the value that the client believes it to
    have."""

    new: GivenSetting
    old: GivenSetting | UnsetType = UNSET


def given_setting(given: GivenSetting) -> GroupSetting:
    if isinstance(given, int):
        return given
    return Members(tuple(given.direct_members), tuple(given.direct_subgroups))


def given_settings(params: Params, names: Iterable[str]) -> dict[str, GroupSetting]:
    """Return the permissions of those `names` that were sent, unchecked."""
    given = ((name, getattr(params, name)) for name in names)
    return {name: given_setting(v) for name, v in given if v is not UNSET and v is not None}


def given_changes(params: Params, names: Iterable[str]) -> dict[str, PermissionUpdate]:
    """Return the changes of permissions that were sent, unchecked."""
    given = ((name, getattr(params, name)) for name in names)
    return {name: given_change(value) for name, value in given if value is not UNSET}


def given_change(given: GivenChange) -> PermissionUpdate:
    return PermissionUpdate(
        new=given_setting(given.new),
        old=None if given.old is UNSET else given_setting(given.old),
    )


class UserGroupObject(Struct, kw_only=True):
    """A user group."""

    id: int
    name: str
    description: str
    date_created: int | None
    creator_id: int | None
    members: list[int]
    direct_subgroup_ids: list[int]
    is_system_group: bool
    deactivated: bool
    can_add_members_group: GroupSettingValue
    can_join_group: GroupSettingValue
    can_leave_group: GroupSettingValue
    can_manage_group: GroupSettingValue
    can_mention_group: GroupSettingValue
    can_remove_members_group: GroupSettingValue


def all_groups(
    fragments: Fragments, state: State, *, with_deactivated: bool, most: int | None = None
) -> JsonParts:
    """Return all groups in ascending order of ID. Groups with more than `most` members, or in some
    cases more than half as many, have an empty member list."""
    if most is not None:
        # Round to a power of two, so that few responses are cached whatever clients ask for.
        most = 1 << most.bit_length() >> 1

    def listed() -> bytes:
        return encode(
            [
                user_group(state, group, most)
                for group in sorted(state.groups, key=lambda group: group.id)
                if with_deactivated or not group.deactivated
            ]
        )

    key = ("user_groups", with_deactivated, most)
    return JsonParts([fragments.get(key, state.memberships.version, listed)])


def user_group(state: State, group: UserGroup, most: int | None = None) -> UserGroupObject:
    """Return the group with its direct members, or with an empty list if there are more than
    `most`."""
    members = state.memberships.direct_members(group)
    return UserGroupObject(
        id=group.id,
        name=group.name,
        description=group.description,
        date_created=group.created_at,
        creator_id=group.creator_id,
        members=sorted(members) if most is None or len(members) <= most else [],
        direct_subgroup_ids=list(group.subgroups),
        is_system_group=group.is_system,
        deactivated=group.deactivated,
        **{name: group_setting(state, getattr(group, name)) for name in GROUP_SETTINGS},
    )
