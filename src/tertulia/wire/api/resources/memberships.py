"""Who is in a user group: people, and other groups."""

from typing import Annotated

from msgspec import Meta

from tertulia.domain import permissions
from tertulia.domain.groups import groups, memberships
from tertulia.domain.groups.memberships import MembersEdit
from tertulia.service.caller import Caller
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer

# People

_DIRECT_MEMBER = Meta(description="Whether members of its subgroups do not count.")


class GetMembers(Params, kw_only=True, frozen=True):
    """A group, and which of its members."""

    user_group_id: Annotated[Int, Path()]
    direct_member_only: Annotated[bool, _DIRECT_MEMBER] = False


class GroupMembers(Answer, kw_only=True):
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


class IsMember(Answer, kw_only=True):
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


async def update_group_members(call: Caller, params: UpdateMembers) -> Answer:
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


class Subgroups(Answer, kw_only=True):
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


async def update_subgroups(call: Call, params: UpdateSubgroups) -> Answer:
    """Change which groups are directly in a user group: all that is asked for, or nothing."""
    edit = MembersEdit(add_groups=tuple(params.add), remove_groups=tuple(params.delete))
    return await _change(call, params.user_group_id, edit)


async def _change(call: Caller, group_id: int, edit: MembersEdit) -> Answer:
    await call.submit(memberships.change, group_id, edit, call.render)
    return Answer()
