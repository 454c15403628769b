"""`tertulia default-groups`: channels that new people can choose together."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import typer

from tertulia.cli import assignments
from tertulia.cli.assignments import Shown
from tertulia.cli.commands import Printed, group
from tertulia.cli.errors import UsageError
from tertulia.cli.nouns import Noun, Verbs
from tertulia.model.organization import DefaultChannelGroup
from tertulia.service.caller import Caller
from tertulia.state.organization import State
from tertulia.wire.api.resources.default_groups import (
    ChangeGroup,
    CreateGroup,
    DescribeGroup,
    OneGroup,
    change_default_group,
    create_default_group,
    describe_default_group,
    remove_default_group,
)
from tertulia.wire.http.parameters import Params

app = group(
    "default-groups",
    "Manage groups of default channels, which new users can choose from. (To subscribe all new"
    " users to a channel: `channels change NAME is_default=true`.)",
)

_NAMES = {name: name for name in ("name", "description", "channels")}


class New(Params, kw_only=True, frozen=True):
    """A group of channels."""

    name: str
    description: str = ""
    channels: list[str] = []


class Described(OneGroup, kw_only=True, frozen=True):
    """What it is called from now on."""

    name: str | None = None
    description: str | None = None


def _records(state: State) -> list[DefaultChannelGroup]:
    return sorted(state.default_channel_groups, key=lambda one: one.id)


def _shown(state: State, one: DefaultChannelGroup) -> dict[str, Shown]:
    channels = [state.channels[channel_id].name for channel_id in one.channel_ids]
    return {"name": one.name, "description": one.description, "channels": channels}


def _channel(state: State, text: str) -> str:
    """A channel's name, of its name or ID as it is typed."""
    channel = state.channels.get(int(assignments.channel_typed(state, text)))
    if channel is None:
        raise UsageError(f"Channel '{text[:50]}' doesn't exist.")
    return channel.name


def _sent(state: State, _: Any, typed: Mapping[str, str]) -> dict[str, str]:
    sent = dict(typed)
    text = sent.get("channels", "[").strip()
    if not text.startswith("["):
        names = [_channel(state, one) for one in text.split(",") if one.strip()]
        sent["channels"] = msgspec.json.encode(names).decode()
    return sent


async def _create(caller: Caller, params: New) -> int:
    answer = await create_default_group(
        caller,
        CreateGroup(
            group_name=params.name,
            description=params.description,
            stream_names=params.channels,
        ),
    )
    return answer.id


async def _describe(caller: Caller, params: Described) -> None:
    await describe_default_group(
        caller,
        DescribeGroup(
            group_id=params.group_id,
            new_group_name=params.name,
            new_description=params.description,
        ),
    )


_verbs = Verbs(
    app,
    Noun(
        several="default groups",
        one="default group",
        records=_records,
        shown=_shown,
        columns=tuple(_NAMES),
        names=_NAMES,
        sent=_sent,
        takes={"channels": "names of channels, separated by commas, or a JSON list"},
    ),
)
_verbs.list()
_verbs.show("Kitchen")
_verbs.make("create", New, _create, int, "name=Kitchen channels=recipes,orders")
_verbs.change(Described, _describe, "Kitchen 'description=All about food'")

_Group = Annotated[
    str, typer.Argument(metavar="DEFAULT-GROUP", help="Name or ID, as shown by `list`.")
]
_Channels = Annotated[
    list[str], typer.Argument(metavar="CHANNEL…", help="Names or IDs of channels.")
]


@_verbs.add("add-channels", "Kitchen dishes")
async def add_channels(caller: Caller, which: _Group, channels: _Channels) -> Printed:
    """Add public channels to a group, except channels that all new users are subscribed to."""
    return await _change_channels(caller, which, channels, "add")


@_verbs.add("remove-channels", "Kitchen dishes")
async def remove_channels(caller: Caller, which: _Group, channels: _Channels) -> Printed:
    """Remove channels from a group. Existing subscriptions don't change."""
    return await _change_channels(caller, which, channels, "remove")


async def _change_channels(
    caller: Caller, which: str, channels: list[str], op: Literal["add", "remove"]
) -> Printed:
    state = caller.state
    one = _verbs.found(state, which)
    names = [_channel(state, channel) for channel in channels]
    await change_default_group(
        caller,
        ChangeGroup(group_id=one.id, op=op, stream_names=names),
    )
    return _verbs.printed(caller.state, _verbs.found(caller.state, str(one.name)))


_verbs.end(
    "remove",
    OneGroup,
    remove_default_group,
    "Remove a group. Its channels are kept.",
    "Kitchen",
)
