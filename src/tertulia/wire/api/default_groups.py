"""Groups of channels that new users can subscribe to together."""

from typing import Any, Final, Literal

from msgspec import Struct, convert, field

from tertulia.domain import permissions
from tertulia.domain.channels import default_groups
from tertulia.model import changes
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, to_everybody
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.parameters import IntPath
from tertulia.wire.http.routing import CreatedResponse


class DefaultChannelGroupObject(Struct, kw_only=True):
    """Channels that new users can subscribe to together."""

    id: int
    name: str
    description: str
    channel_ids: list[int] = field(name="streams")


def default_group_objects(state: State) -> list[DefaultChannelGroupObject]:
    """Return all default channel groups, by ID."""
    groups = sorted(state.default_channel_groups, key=lambda group: group.id)
    return convert(groups, list[DefaultChannelGroupObject], from_attributes=True)


class DefaultChannelGroupsEvent(Event, kw_only=True, tag="default_stream_groups"):
    """The default channel groups changed. Contains all of them."""

    default_stream_groups: list[DefaultChannelGroupObject]


def default_channel_groups(state: State) -> DefaultChannelGroupsEvent:
    return DefaultChannelGroupsEvent(default_stream_groups=default_group_objects(state))


async def create_default_group(
    call: Caller, group_name: str, description: str, stream_names: list[str]
) -> CreatedResponse:
    """Create a default channel group. Requires an administrator."""
    group_id = await call.submit(default_groups.create, group_name, description, stream_names)
    return CreatedResponse(id=group_id)


async def describe_default_group(
    call: Caller,
    group_id: IntPath,
    new_group_name: str | None = None,
    new_description: str | None = None,
) -> None:
    """Change a default channel group's name or description. Requires an administrator."""
    await call.submit(default_groups.describe, group_id, new_group_name, new_description)


async def change_default_group(
    call: Caller, group_id: IntPath, op: Literal["add", "remove"], stream_names: list[str]
) -> None:
    """Add channels to a default channel group, or remove them. Requires an administrator."""
    verb = default_groups.add_channels if op == "add" else default_groups.remove_channels
    await call.submit(verb, group_id, stream_names)


async def remove_default_group(call: Caller, group_id: IntPath) -> None:
    """Delete a default channel group, but not its channels. Requires an administrator."""
    await call.submit(default_groups.remove, group_id)


def _event(context: ProjectionContext, change: Any) -> Event:
    return default_channel_groups(context.state)


def _is_not_guest(context: ProjectionContext, change: Any, viewer: Viewer) -> bool:
    return not permissions.is_guest(context.state, viewer.user)


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
