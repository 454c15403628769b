"""User groups."""

from typing import Annotated

from msgspec import Meta

from tertulia.wire.call import Call
from tertulia.wire.objects.groups import UserGroupObject, user_group
from tertulia.wire.parameters import Params
from tertulia.wire.routing import Answer


class GetUserGroups(Params, kw_only=True, frozen=True):
    """Which groups."""

    include_deactivated_groups: Annotated[
        bool, Meta(description="Whether groups that are out of use are wanted, too.")
    ] = False


class UserGroups(Answer, kw_only=True):
    """Groups in ascending order of ID, with their direct members."""

    user_groups: list[UserGroupObject]


async def get_user_groups(call: Call, params: GetUserGroups) -> UserGroups:
    """The organization's groups, those of the roles among them."""
    state, now = call.state, call.now
    return UserGroups(
        user_groups=[
            user_group(state, group, now)
            for group in sorted(state.groups, key=lambda group: group.id)
            if params.include_deactivated_groups or not group.deactivated
        ]
    )
