"""User groups and permission settings on the wire."""

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain.groups.group_settings import PermissionUpdate
from tertulia.model.groups import GroupSetting, Members, UserGroup
from tertulia.state.state import State
from tertulia.wire.http.fragments import Fragments, JsonParts, encode
from tertulia.wire.http.parameters import Int


class MembersObject(Struct, kw_only=True):
    """A permission held by an anonymous group."""

    direct_members: list[int]
    direct_subgroups: list[int]


GroupSettingValue = int | MembersObject


def group_setting(state: State, setting: GroupSetting) -> GroupSettingValue:
    """A permission's holder; deactivated users are left out."""
    if isinstance(setting, Members):
        return MembersObject(
            direct_members=[u for u in setting.direct_members if state.users[u].is_active],
            direct_subgroups=list(setting.direct_subgroups),
        )
    return int(setting)


class GivenMembers(Struct, kw_only=True, frozen=True):
    """A permission to be held by an anonymous group."""

    direct_members: list[Int]
    direct_subgroups: list[Int]


GivenSetting = Int | GivenMembers
"""A permission's holder as a client sends it."""


class GivenChange(Struct, kw_only=True, frozen=True):
    """A new holder of a permission, and who the client believes it to be now."""

    new: GivenSetting
    old: GivenSetting | UnsetType = UNSET


def given_setting(given: GivenSetting) -> GroupSetting:
    """What a client sent, as yet unchecked."""
    if isinstance(given, int):
        return given
    return Members(tuple(given.direct_members), tuple(given.direct_subgroups))


def given_change(given: GivenChange) -> PermissionUpdate:
    """The same for a change."""
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
    """All groups in ascending order of ID; those with more than `most` members name none, nor some
    with more than half as many."""
    if most is not None:
        # A power of two: whoever counts through all numbers fills no memory with as many answers.
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
    """The group with its direct members as of now; without them where they are more than `most`."""
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
        can_add_members_group=group_setting(state, group.can_add_members_group),
        can_join_group=group_setting(state, group.can_join_group),
        can_leave_group=group_setting(state, group.can_leave_group),
        can_manage_group=group_setting(state, group.can_manage_group),
        can_mention_group=group_setting(state, group.can_mention_group),
        can_remove_members_group=group_setting(state, group.can_remove_members_group),
    )
