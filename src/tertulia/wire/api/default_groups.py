"""Groups of channels that new users can subscribe to together."""

from typing import Any, Final, Literal

from msgspec import Struct, convert, field

from tertulia.domain import permissions
from tertulia.domain.channels import default_groups
from tertulia.model import changes
from tertulia.service.caller import Caller
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, to_everybody
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.parameters import Int, Params, Path


class CreateDefaultGroup(Params, kw_only=True, frozen=True):
    group_name: str
    description: str
    channel_ids: list[int] = field(name="streams")


async def create_default_group(call: Caller, params: CreateDefaultGroup) -> NewId:
    """Create a group of default channels. Administrators only."""
    group_id = await call.submit(
        default_groups.create, params.group_name, params.description, params.stream_names
    )
    return NewId(id=group_id)


class RemoveDefaultGroup(Params, kw_only=True, frozen=True):
    group_id: Annotated[Int, Path()]


class DescribeDefaultGroup(RemoveDefaultGroup, kw_only=True, frozen=True):
    new_group_name: str | None = None
    new_description: str | None = None


async def describe_default_group(call: Caller, params: DescribeDefaultGroup) -> None:
    """Change the name or description of a group of default channels. Administrators only."""
    await call.submit(
        default_groups.describe, params.group_id, params.new_group_name, params.new_description
    )


class ChangeDefaultGroup(RemoveDefaultGroup, kw_only=True, frozen=True):
    op: Literal["add", "remove"]
    stream_names: list[str]


async def change_default_group(call: Caller, params: ChangeDefaultGroup) -> None:
    """Add channels to a group of default channels, or remove them. Administrators only."""
    verb = default_groups.add if params.op == "add" else default_groups.remove_channels
    await call.submit(verb, params.group_id, params.stream_names)


async def remove_default_group(call: Caller, params: RemoveDefaultGroup) -> None:
    """Delete a group of default channels. Administrators only. Its channels stay."""
    await call.submit(default_groups.remove, params.group_id)


def default_groups_section(context: SectionContext) -> dict[str, Any]:
    """The default channel groups; empty for guests and spectators."""
    state, viewer = context.state, context.viewer
    is_member = viewer is not None and not permissions.is_guest(state, viewer)
    return {"realm_default_stream_groups": default_group_objects(state) if is_member else []}


SECTIONS: Final[Sections] = {("default_stream_groups",): default_groups_section}


PROJECTIONS: Final[Projections] = (
    to_everybody(changes.DefaultChannelGroupSet, _event, only_if=_is_not_guest),
    to_everybody(changes.DefaultChannelGroupRemoved, _event, only_if=_is_not_guest),
)
