"""`tertulia folders` and `tertulia default-groups`: lists of channels that administrators
create."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec
import typer

from tertulia.cli import assignments
from tertulia.cli.assignments import Shown
from tertulia.cli.commands import Printed
from tertulia.cli.errors import UsageError
from tertulia.cli.nouns import ManagedNoun, by_id, fields
from tertulia.domain.channels import folders as folder_verbs
from tertulia.model.organization import DefaultChannelGroup
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api import default_groups as api
from tertulia.wire.api import folders as folders_api
from tertulia.wire.http.parameters import IntPath, Params

_folders = ManagedNoun(
    "folders",
    "Manage channel folders: list, create, change, archive, and reorder them.",
    singular="folder",
    records=folder_verbs.in_order,
    shown=fields("name", "description", "is_archived"),
    columns=("name", "description", "is_archived"),
    settings=("name", "description", "is_archived"),
)
folders = _folders.app
_folders.list()
_folders.create(
    "create",
    folders_api.create_channel_folder,
    "name=Projects description=",
    attrgetter("channel_folder_id"),
)
_folders.change(folders_api.update_channel_folder, "Projects is_archived=true")
_folders.order(folders_api.reorder_channel_folders, "Projects Teams")


# Default groups: the API's endpoints for them have other parameters than those for other nouns.


class NewDefaultGroup(Params, kw_only=True, frozen=True):
    """A group of channels that new users can choose."""

    name: str
    description: str = ""
    channels: list[str] = []


class DescribedDefaultGroup(Params, kw_only=True, frozen=True):
    """A new name or description."""

    group_id: IntPath
    name: str | None = None
    description: str | None = None


def _shown(state: State, group: DefaultChannelGroup) -> dict[str, Shown]:
    channels = [state.channels[channel_id].name for channel_id in group.channel_ids]
    return {"name": group.name, "description": group.description, "channels": channels}


def _channel(state: State, text: str) -> str:
    """The name of a channel, from its name or ID."""
    channel = state.channels.get(int(assignments.channel_typed(state, text)))
    if channel is None:
        raise UsageError(f"Channel '{text[:50]}' doesn't exist.")
    return channel.name


def _sent(state: State, _: Any, typed: Mapping[str, str]) -> dict[str, str]:
    sent = dict(typed)
    text = sent.get("channels", "[").strip()
    if not text.startswith("["):
        names = [_channel(state, name) for name in text.split(",") if name.strip()]
        sent["channels"] = msgspec.json.encode(names).decode()
    return sent


async def _create(caller: Caller, params: NewDefaultGroup) -> int:
    response = await api.create_default_group(
        caller, params.name, params.description, params.channels
    )
    return response.id


async def _describe(caller: Caller, params: DescribedDefaultGroup) -> None:
    await api.describe_default_group(caller, params.group_id, params.name, params.description)


_groups = ManagedNoun(
    "default-groups",
    "Manage groups of default channels, which new users can choose from. (To subscribe all new"
    " users to a channel: `channels change NAME is_default=true`.)",
    singular="default group",
    records=by_id("default_channel_groups"),
    shown=_shown,
    columns=("name", "description", "channels"),
    settings=("name", "description", "channels"),
    sent=_sent,
    takes={"channels": "names of channels, separated by commas, or a JSON list"},
)
default_groups = _groups.app
_groups.list()
_groups.show("Kitchen")
_groups.create("create", _create, "name=Kitchen channels=recipes,orders", int)
_groups.change(_describe, "Kitchen 'description=All about food'")

_Group = Annotated[
    str, typer.Argument(metavar="DEFAULT-GROUP", help="Name or ID, as shown by `list`.")
]
_Channels = Annotated[
    list[str], typer.Argument(metavar="CHANNEL…", help="Names or IDs of channels.")
]


@_groups.add("add-channels", "Kitchen dishes")
async def add_channels(caller: Caller, which: _Group, channels: _Channels) -> Printed:
    """Add public channels to a group, except channels that all new users are subscribed to."""
    return await _change_channels(caller, which, channels, "add")


@_groups.add("remove-channels", "Kitchen dishes")
async def remove_channels(caller: Caller, which: _Group, channels: _Channels) -> Printed:
    """Remove channels from a group. Existing subscriptions don't change."""
    return await _change_channels(caller, which, channels, "remove")


async def _change_channels(
    caller: Caller, which: str, channels: list[str], op: Literal["add", "remove"]
) -> Printed:
    group = _groups.found(caller.state, which)
    names = [_channel(caller.state, channel) for channel in channels]
    await api.change_default_group(caller, group.id, op, names)
    return _groups.printed(caller.state, _groups.found(caller.state, group.name))


_groups.end("remove", api.remove_default_group, "Remove a group. Its channels are kept.", "Kitchen")
