"""Groups of channels that new users can choose. Only administrators can change them."""

from collections.abc import Sequence
from typing import Final

import msgspec

from tertulia.domain import channel_access, names, permissions
from tertulia.model.changes import DefaultChannelGroupRemoved, DefaultChannelGroupSet
from tertulia.model.channels import Channel
from tertulia.model.errors import Refused
from tertulia.model.organization import DefaultChannelGroup
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_NAME: Final = 60
MAX_DESCRIPTION: Final = 1024


def create(
    context: CommandContext, name: str, description: str, channel_names: Sequence[str]
) -> Decision[int]:
    """Create a group of channels and return its ID. Raise Refused for an invalid or taken name, and
    for channels as in `add_channels`."""
    permissions.require_administrator(context.state, context.actor)
    state = context.state
    group = DefaultChannelGroup(
        id=state.default_channel_groups.next_id(),
        name=_free_name(state, name),
        description=names.description(description, MAX_DESCRIPTION),
    )
    group = _with(context, group, channel_names)
    return Decision(group.id, (DefaultChannelGroupSet(group=group),))


def describe(
    context: CommandContext, group_id: int, name: str | None, description: str | None
) -> Decision[None]:
    """Change a group's name or description; None keeps the current value. Raise Refused if both are
    None, the group doesn't exist, or the name is taken."""
    permissions.require_administrator(context.state, context.actor)
    group = _existing_group(context.state, group_id)
    if name is None and description is None:
        raise Refused("Nothing to change: give the group a new name or a new description.")
    after = group
    if name is not None:
        after = msgspec.structs.replace(after, name=_free_name(context.state, name, group_id))
    if description is not None:
        after = msgspec.structs.replace(
            after, description=names.description(description, MAX_DESCRIPTION)
        )
    return _became(group, after)


def add_channels(
    context: CommandContext, group_id: int, channel_names: Sequence[str]
) -> Decision[None]:
    """Add channels to a group.

    Raise NoSuchChannel for channels that the actor can't see; Refused for an unknown group and for
    channels that are in it, private, archived, or default channels for everyone.
    """
    permissions.require_administrator(context.state, context.actor)
    group = _existing_group(context.state, group_id)
    return _became(group, _with(context, group, channel_names))


def remove_channels(
    context: CommandContext, group_id: int, channel_names: Sequence[str]
) -> Decision[None]:
    """Remove channels from a group. Raise Refused for channels that aren't in it."""
    permissions.require_administrator(context.state, context.actor)
    group = _existing_group(context.state, group_id)
    gone = {_channel(context, name).id for name in channel_names}
    if gone - set(group.channel_ids):
        raise Refused("Some of these channels aren't in the group.")
    left = tuple(channel_id for channel_id in group.channel_ids if channel_id not in gone)
    return _became(group, msgspec.structs.replace(group, channel_ids=left))


def remove(context: CommandContext, group_id: int) -> Decision[None]:
    """Delete a group; its channels stay."""
    permissions.require_administrator(context.state, context.actor)
    _existing_group(context.state, group_id)
    return Decision(None, (DefaultChannelGroupRemoved(group_id=group_id),))


def removal_changes(state: State, channel: Channel) -> list[DefaultChannelGroupSet]:
    """Return the changes that remove a channel from all groups, because it's no longer open to
    everyone."""
    return [
        DefaultChannelGroupSet(
            group=msgspec.structs.replace(
                group, channel_ids=tuple(c for c in group.channel_ids if c != channel.id)
            )
        )
        for group in state.default_channel_groups
        if channel.id in group.channel_ids
    ]


def _became(before: DefaultChannelGroup, after: DefaultChannelGroup) -> Decision[None]:
    return Decision(None, () if after == before else (DefaultChannelGroupSet(group=after),))


def _existing_group(state: State, group_id: int) -> DefaultChannelGroup:
    group = state.default_channel_groups.get(group_id)
    if group is None:
        raise Refused("This group of default channels doesn't exist.")
    return group


def _free_name(state: State, text: str, group_id: int | None = None) -> str:
    name = text.strip()
    if not 0 < len(name) <= MAX_NAME or not names.is_plain(name):
        raise Refused(f"A group's name must have 1 to {MAX_NAME} visible characters.")
    if any(
        names.look_alike(group.name, name)
        for group in state.default_channel_groups
        if group.id != group_id
    ):
        raise Refused("Another group of default channels already has this name.")
    return name


def _channel(context: CommandContext, name: str) -> Channel:
    return channel_access.visible_channel(context.state, context.actor, name=name)


def _with(
    context: CommandContext, group: DefaultChannelGroup, channel_names: Sequence[str]
) -> DefaultChannelGroup:
    channel_ids = set(group.channel_ids)
    for name in channel_names:
        channel = _channel(context, name)
        if channel.is_default:
            raise Refused(f"'{channel.name}' is already a default channel for everyone.")
        if channel.is_private or channel.is_archived:
            raise Refused(f"'{channel.name}' is private or archived.")
        if channel.id in channel_ids:
            raise Refused(f"'{channel.name}' is already in the group.")
        channel_ids.add(channel.id)
    return msgspec.structs.replace(group, channel_ids=tuple(sorted(channel_ids)))
