"""Groups of channels that a new user can choose together."""

from typing import Annotated, Literal

from tertulia.domain.channels import default_groups
from tertulia.service.caller import Caller
from tertulia.wire.api.administration import NewId
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import ApiResponse


class CreateGroup(Params, kw_only=True, frozen=True):
    """A group of channels."""

    group_name: str
    description: str
    stream_names: list[str]


async def create_default_group(call: Caller, params: CreateGroup) -> NewId:
    """Create a group of channels, for administrators."""
    group_id = await call.submit(
        default_groups.create, params.group_name, params.description, params.stream_names
    )
    return NewId(id=group_id)


class OneGroup(Params, kw_only=True, frozen=True):
    """A group of channels that is there."""

    group_id: Annotated[Int, Path()]


class DescribeGroup(OneGroup, kw_only=True, frozen=True):
    """What it is called from now on."""

    new_group_name: str | None = None
    new_description: str | None = None


async def describe_default_group(call: Caller, params: DescribeGroup) -> ApiResponse:
    """Give a group of channels another name or description, for administrators."""
    await call.submit(
        default_groups.describe, params.group_id, params.new_group_name, params.new_description
    )
    return ApiResponse()


class ChangeGroup(OneGroup, kw_only=True, frozen=True):
    """Channels that come into the group, or go out of it."""

    op: Literal["add", "remove"]
    stream_names: list[str]


async def change_default_group(call: Caller, params: ChangeGroup) -> ApiResponse:
    """Add channels to a group, or take them out of it, for administrators."""
    verb = default_groups.add if params.op == "add" else default_groups.remove_channels
    await call.submit(verb, params.group_id, params.stream_names)
    return ApiResponse()


async def remove_default_group(call: Caller, params: OneGroup) -> ApiResponse:
    """Remove a group, for administrators. Its channels stay."""
    await call.submit(default_groups.remove, params.group_id)
    return ApiResponse()
