"""Groups of default channels that new users can choose."""

from typing import Annotated, Any, Final, Literal

from tertulia.domain import permissions
from tertulia.domain.channels import default_groups
from tertulia.service.caller import Caller
from tertulia.wire.api.administration import NewId, default_group_objects
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import ApiResponse


class CreateGroup(Params, kw_only=True, frozen=True):
    group_name: str
    description: str
    stream_names: list[str]


async def create_default_group(call: Caller, params: CreateGroup) -> NewId:
    """Create a group of default channels. Administrators only."""
    group_id = await call.submit(
        default_groups.create, params.group_name, params.description, params.stream_names
    )
    return NewId(id=group_id)


class OneGroup(Params, kw_only=True, frozen=True):
    group_id: Annotated[Int, Path()]


class DescribeGroup(OneGroup, kw_only=True, frozen=True):
    new_group_name: str | None = None
    new_description: str | None = None


async def describe_default_group(call: Caller, params: DescribeGroup) -> ApiResponse:
    """Change the name or description of a group of default channels. Administrators only."""
    await call.submit(
        default_groups.describe, params.group_id, params.new_group_name, params.new_description
    )
    return ApiResponse()


class ChangeGroup(OneGroup, kw_only=True, frozen=True):
    op: Literal["add", "remove"]
    stream_names: list[str]


async def change_default_group(call: Caller, params: ChangeGroup) -> ApiResponse:
    """Add channels to a group of default channels, or remove them. Administrators only."""
    verb = default_groups.add if params.op == "add" else default_groups.remove_channels
    await call.submit(verb, params.group_id, params.stream_names)
    return ApiResponse()


async def remove_default_group(call: Caller, params: OneGroup) -> ApiResponse:
    """Delete a group of default channels. Administrators only. Its channels stay."""
    await call.submit(default_groups.remove, params.group_id)
    return ApiResponse()


def default_groups_section(context: SectionContext) -> dict[str, Any]:
    """The groups of channels that new users can choose; none for guests and spectators."""
    state, viewer = context.state, context.viewer
    is_member = viewer is not None and not permissions.is_guest(state, viewer)
    return {"realm_default_stream_groups": default_group_objects(state) if is_member else []}


SECTIONS: Final[Sections] = {("default_stream_groups",): default_groups_section}
