"""User groups."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from tertulia.domain import permissions
from tertulia.domain.groups import groups
from tertulia.domain.groups.group_settings import GROUP_SETTINGS
from tertulia.domain.groups.groups import GroupEdit, MembersEdit, NewGroup
from tertulia.model.errors import Refused
from tertulia.service.caller import Caller
from tertulia.wire.api.groups.objects import (
    GivenChange,
    GivenSetting,
    UserGroupObject,
    all_groups,
    given_change,
    given_setting,
)
from tertulia.wire.http.call import Call
from tertulia.wire.http.fragments import fragmented
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import ApiResponse


class GetUserGroups(Params, kw_only=True, frozen=True):
    """Which groups."""

    include_deactivated_groups: Annotated[
        bool, Meta(description="Whether groups that are out of use are wanted, too.")
    ] = False


class UserGroups(ApiResponse, kw_only=True):
    """Groups in ascending order of ID, with their direct members."""

    user_groups: list[UserGroupObject]


async def get_user_groups(call: Call, params: GetUserGroups) -> UserGroups:
    """The organization's groups, those of the roles among them."""
    with_deactivated = params.include_deactivated_groups
    listed = all_groups(call.node.fragments, call.state, with_deactivated=with_deactivated)
    return fragmented(UserGroups, {"user_groups": listed})


class CreateUserGroup(Params, kw_only=True, frozen=True):
    """A group to be. Permissions that are not given are everybody's, nobody's or the creator's,
    as `server_supported_permission_settings` says."""

    name: str
    description: str
    members: list[Int]
    subgroups: Annotated[
        list[Int], Meta(description="Groups whose members are the new one's members, too.")
    ] = []
    can_add_members_group: GivenSetting | None = None
    can_join_group: GivenSetting | None = None
    can_leave_group: GivenSetting | None = None
    can_manage_group: GivenSetting | None = None
    can_mention_group: GivenSetting | None = None
    can_remove_members_group: GivenSetting | None = None


class CreatedUserGroup(ApiResponse, kw_only=True):
    """The new group's ID."""

    group_id: int


async def create_user_group(call: Caller, params: CreateUserGroup) -> CreatedUserGroup:
    """Create a user group."""
    given: dict[str, Any] = {name: getattr(params, name) for name in GROUP_SETTINGS}
    new = NewGroup(
        name=params.name,
        description=params.description,
        members=tuple(params.members),
        subgroups=tuple(params.subgroups),
        settings={name: given_setting(v) for name, v in given.items() if v is not None},
    )
    group = await call.submit(groups.create, new)
    return CreatedUserGroup(group_id=group.id)


class UpdateUserGroup(Params, kw_only=True, frozen=True):
    """New values for a group; what is not sent stays."""

    user_group_id: Annotated[Int, Path()]
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    deactivated: Annotated[
        bool | UnsetType,
        Meta(description="Only false: POST /user_groups/{user_group_id}/deactivate deactivates."),
    ] = UNSET
    can_add_members_group: GivenChange | UnsetType = UNSET
    can_join_group: GivenChange | UnsetType = UNSET
    can_leave_group: GivenChange | UnsetType = UNSET
    can_manage_group: GivenChange | UnsetType = UNSET
    can_mention_group: GivenChange | UnsetType = UNSET
    can_remove_members_group: GivenChange | UnsetType = UNSET


async def update_user_group(call: Caller, params: UpdateUserGroup) -> ApiResponse:
    """Change a user group, or take it into use again."""
    if params.deactivated is True:
        raise Refused("To deactivate a group, use POST /user_groups/{user_group_id}/deactivate.")
    given: dict[str, Any] = {name: getattr(params, name) for name in GROUP_SETTINGS}
    edit = GroupEdit(
        name=params.name,
        description=params.description,
        reactivate=params.deactivated is False,
        settings={name: given_change(v) for name, v in given.items() if v is not UNSET},
    )
    await call.submit(groups.change, params.user_group_id, edit)
    return ApiResponse()


class OneUserGroup(Params, kw_only=True, frozen=True):
    """A group."""

    user_group_id: Annotated[Int, Path()]


async def deactivate_user_group(call: Caller, params: OneUserGroup) -> ApiResponse:
    """Take a user group out of use."""
    await call.submit(groups.deactivate, params.user_group_id)
    return ApiResponse()


# People

_DIRECT_MEMBER = Meta(description="Whether members of its subgroups do not count.")


class GetMembers(Params, kw_only=True, frozen=True):
    """A group, and which of its members."""

    user_group_id: Annotated[Int, Path()]
    direct_member_only: Annotated[bool, _DIRECT_MEMBER] = False


class GroupMembers(ApiResponse, kw_only=True):
    """The IDs of active accounts, ascending."""

    members: list[int]


async def get_group_members(call: Call, params: GetMembers) -> GroupMembers:
    """Who is in a user group."""
    return GroupMembers(
        members=sorted(_members(call, params.user_group_id, direct=params.direct_member_only))
    )


def _members(call: Call, group_id: int, *, direct: bool) -> frozenset[int]:
    state, group = call.state, groups.known(call.state, group_id)
    if direct:
        return frozenset(state.memberships.direct_members(group))
    return state.memberships.members(group.id)


class GetMember(Params, kw_only=True, frozen=True):
    """A group and an account."""

    user_group_id: Annotated[Int, Path()]
    user_id: Annotated[Int, Path()]
    direct_member_only: Annotated[bool, _DIRECT_MEMBER] = False


class IsMember(ApiResponse, kw_only=True):
    """Whether the account is in the group."""

    is_user_group_member: bool


async def get_group_membership(call: Call, params: GetMember) -> IsMember:
    """Whether an account is in a user group."""
    members = _members(call, params.user_group_id, direct=params.direct_member_only)
    user = permissions.visible_user(call.state, call.user, params.user_id)
    return IsMember(is_user_group_member=user.id in members)


class UpdateMembers(Params, kw_only=True, frozen=True):
    """Who is to come into a group, and who is to leave it: by ID, people and other groups."""

    user_group_id: Annotated[Int, Path()]
    add: list[Int] = []
    delete: list[Int] = []
    add_subgroups: list[Int] = []
    delete_subgroups: list[Int] = []


async def update_group_members(call: Caller, params: UpdateMembers) -> ApiResponse:
    """Change who is directly in a user group: all that is asked for, or nothing."""
    edit = MembersEdit(
        add=tuple(params.add),
        remove=tuple(params.delete),
        add_groups=tuple(params.add_subgroups),
        remove_groups=tuple(params.delete_subgroups),
    )
    return await _change(call, params.user_group_id, edit)


# Groups in groups


class GetSubgroups(Params, kw_only=True, frozen=True):
    """A group, and which of the groups in it."""

    user_group_id: Annotated[Int, Path()]
    direct_subgroup_only: Annotated[
        bool, Meta(description="Whether the subgroups of its subgroups do not count.")
    ] = False


class Subgroups(ApiResponse, kw_only=True):
    """The IDs of groups, ascending."""

    subgroups: list[int]


async def get_subgroups(call: Call, params: GetSubgroups) -> Subgroups:
    """Which groups are in a user group."""
    group = groups.known(call.state, params.user_group_id)
    found = (
        group.subgroups
        if params.direct_subgroup_only
        else call.state.memberships.subgroups(group.id)
    )
    return Subgroups(subgroups=sorted(found))


class UpdateSubgroups(Params, kw_only=True, frozen=True):
    """Which groups are to come into a group, and which are to leave it."""

    user_group_id: Annotated[Int, Path()]
    add: list[Int] = []
    delete: list[Int] = []


async def update_subgroups(call: Call, params: UpdateSubgroups) -> ApiResponse:
    """Change which groups are directly in a user group: all that is asked for, or nothing."""
    edit = MembersEdit(add_groups=tuple(params.add), remove_groups=tuple(params.delete))
    return await _change(call, params.user_group_id, edit)


async def _change(call: Caller, group_id: int, edit: MembersEdit) -> ApiResponse:
    await call.submit(groups.change_members, group_id, edit, call.render)
    return ApiResponse()
