"""User groups, their members, and their subgroups."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import UNSET, UnsetType

from tertulia.domain import permissions
from tertulia.domain.groups import groups
from tertulia.domain.groups.group_settings import GROUP_SETTINGS
from tertulia.domain.groups.groups import GroupEdit, MembersEdit, NewGroup
from tertulia.service.node import Caller
from tertulia.wire.api.groups.objects import (
    GivenChange,
    GivenSetting,
    UserGroupObject,
    all_groups,
    given_changes,
    given_settings,
)
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.parameters import Doc, Int, IntPath, Params, Path, with_optional
from tertulia.wire.http.responses import fragmented
from tertulia.wire.http.routing import ApiResponse, Call


class UserGroupsResponse(ApiResponse, kw_only=True):
    """Groups in ascending order of ID, with their direct members."""

    user_groups: list[UserGroupObject]


async def get_user_groups(
    call: Call,
    include_deactivated_groups: Annotated[bool, Doc("Include deactivated groups.")] = False,
) -> UserGroupsResponse:
    """List the organization's user groups, including the groups of roles."""
    with_deactivated = include_deactivated_groups
    listed = all_groups(call.node.fragments, call.state, with_deactivated=with_deactivated)
    return fragmented(UserGroupsResponse, {"user_groups": listed})


@with_optional(dict.fromkeys(GROUP_SETTINGS, GivenSetting | None))
class CreateUserGroup(Params, kw_only=True, frozen=True):
    name: str
    description: str
    members: list[Int]
    subgroups: Annotated[
        list[Int], Doc("Groups whose members are also members of the new group.")
    ] = []


class CreateUserGroupResponse(ApiResponse, kw_only=True):
    """The ID of the new group."""

    group_id: int


async def create_user_group(call: Caller, params: CreateUserGroup) -> CreateUserGroupResponse:
    """Create a user group. The defaults of its permissions are in
    `server_supported_permission_settings`."""
    new = NewGroup(
        name=params.name,
        description=params.description,
        members=tuple(params.members),
        subgroups=tuple(params.subgroups),
        settings=given_settings(params, GROUP_SETTINGS),
    )
    group = await call.submit(groups.create, new)
    return CreateUserGroupResponse(group_id=group.id)


@with_optional(dict.fromkeys(GROUP_SETTINGS, GivenChange))
class UpdateUserGroup(Params, kw_only=True, frozen=True):
    user_group_id: Annotated[Int, Path()]
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    deactivated: Annotated[
        bool | UnsetType,
        Doc(
            "False reactivates the group. True changes nothing: to deactivate it, use POST"
            " /user_groups/{user_group_id}/deactivate."
        ),
    ] = UNSET


async def update_user_group(call: Caller, params: UpdateUserGroup) -> None:
    """Change a user group's properties and permissions, or reactivate it. Parameters that you don't
    send stay the same."""
    edit = GroupEdit(
        name=params.name,
        description=params.description,
        reactivate=UNSET if params.deactivated is UNSET else not params.deactivated,
        settings=given_changes(params, GROUP_SETTINGS),
    )
    await call.submit(groups.change, params.user_group_id, edit)


async def deactivate_user_group(call: Caller, user_group_id: IntPath) -> None:
    """Deactivate a user group."""
    await call.submit(groups.deactivate, user_group_id)


# Members

_DIRECT_MEMBER = Doc("Leave out members of subgroups.")


class GroupMembersResponse(ApiResponse, kw_only=True):
    """The IDs of active members, in ascending order."""

    members: list[int]


async def get_group_members(
    call: Call, user_group_id: IntPath, direct_member_only: Annotated[bool, _DIRECT_MEMBER] = False
) -> GroupMembersResponse:
    """List the members of a user group."""
    return GroupMembersResponse(
        members=sorted(_members(call, user_group_id, direct=direct_member_only))
    )


def _members(call: Call, group_id: int, *, direct: bool) -> frozenset[int]:
    state, group = call.state, groups.existing_group(call.state, group_id)
    if direct:
        return frozenset(state.memberships.direct_members(group))
    return state.memberships.members(group.id)


class MembershipResponse(ApiResponse, kw_only=True):
    """Whether the user is a member."""

    is_user_group_member: bool


async def get_group_membership(
    call: Call,
    user_group_id: IntPath,
    user_id: IntPath,
    direct_member_only: Annotated[bool, _DIRECT_MEMBER] = False,
) -> MembershipResponse:
    """Check whether a user is a member of a user group."""
    members = _members(call, user_group_id, direct=direct_member_only)
    user = permissions.visible_user(call.state, call.user, user_id)
    return MembershipResponse(is_user_group_member=user.id in members)


async def update_group_members(
    call: Caller,
    user_group_id: IntPath,
    add: Sequence[Int] = (),
    delete: Sequence[Int] = (),
    add_subgroups: Sequence[Int] = (),
    delete_subgroups: Sequence[Int] = (),
) -> None:
    """Add and remove direct members and subgroups, by ID. If one change isn't allowed, none are
    made."""
    edit = MembersEdit(
        add=tuple(add),
        remove=tuple(delete),
        add_groups=tuple(add_subgroups),
        remove_groups=tuple(delete_subgroups),
    )
    await call.submit(groups.change_members, user_group_id, edit, call.render)


# Subgroups


class SubgroupsResponse(ApiResponse, kw_only=True):
    """The IDs of groups, in ascending order."""

    subgroups: list[int]


async def get_subgroups(
    call: Call,
    user_group_id: IntPath,
    direct_subgroup_only: Annotated[bool, Doc("Leave out subgroups of subgroups.")] = False,
) -> SubgroupsResponse:
    """List the subgroups of a user group."""
    group = groups.existing_group(call.state, user_group_id)
    everything = call.state.memberships.subgroups(group.id)
    return SubgroupsResponse(
        subgroups=sorted(group.subgroups if direct_subgroup_only else everything)
    )


async def update_subgroups(
    call: Call, user_group_id: IntPath, add: Sequence[Int] = (), delete: Sequence[Int] = ()
) -> None:
    """Add and remove direct subgroups. If one change isn't allowed, none are made."""
    edit = MembersEdit(add_groups=tuple(add), remove_groups=tuple(delete))
    await call.submit(groups.change_members, user_group_id, edit, call.render)


def groups_section(context: SectionContext) -> dict[str, Any]:
    """User groups, including the groups of roles. Only clients that support deactivated groups get
    them. Clients that want fewer accounts don't get the members of large groups, but the IDs of the
    viewer's own groups."""
    state, viewer = context.state, context.viewer
    most = context.most_accounts if context.has_more_accounts else None
    groups = all_groups(
        context.node.fragments,
        state,
        with_deactivated=context.registration.capabilities.include_deactivated_groups,
        most=most,
    )
    if most is None:
        return {"realm_user_groups": groups}
    memberships = () if viewer is None else state.memberships.groups_of(viewer)
    return {"realm_user_groups": groups, "realm_user_groups_own": list(memberships)}


SECTIONS: Final[Sections] = {("realm_user_groups",): groups_section}
