"""Finding the accounts that gain or lose sight of channels when groups or roles change. For the
accounts that guests see, see `tertulia.state.user_visibility`."""

from collections.abc import Iterable

from tertulia.domain import channel_access
from tertulia.model.channels import Channel
from tertulia.model.groups import ChannelSight, GroupSetting, Members
from tertulia.state.state import State


def compare_by_membership(
    before: State, after: State, group_id: int, user_ids: Iterable[int]
) -> tuple[ChannelSight, ...]:
    """Return which of these accounts gain or lose sight of private channels when the group's
    members change. Only channels with a permission that includes the group, directly or through
    other groups, are compared."""
    through = supergroups(after, group_id)
    members = set(user_ids)
    bots = {bot.id for user_id in members for bot in before.users.bots_of(user_id)}
    channels = (c for c in before.channels if c.is_private and _opened_to(c, through))
    return compare_sight(before, after, channels, members | bots)


def compare_sight(
    before: State, after: State, channels: Iterable[Channel], user_ids: Iterable[int]
) -> tuple[ChannelSight, ...]:
    """Return which of these accounts gain or lose sight of these channels between the two
    states."""
    result = []
    for channel in channels:
        gained: list[int] = []
        lost: list[int] = []
        for user_id in user_ids:
            saw = channel_access.sees_channel(before, before.users[user_id], channel)
            if saw is not channel_access.sees_channel(after, after.users[user_id], channel):
                (lost if saw else gained).append(user_id)
        if gained or lost:
            result.append(
                ChannelSight(
                    channel_id=channel.id,
                    gained=tuple(sorted(gained)),
                    lost=tuple(sorted(lost)),
                    subscribers=before.subscribers(channel.id) if gained else (),
                    archived=channel.is_archived,
                )
            )
    return tuple(result)


def supergroups(state: State, group_id: int) -> frozenset[int]:
    """Return the group and all groups that contain it, directly or through others."""
    result = {group_id}
    grown = True
    while grown:
        above = {g.id for g in state.groups if not result.isdisjoint(g.subgroups)}
        grown = not above <= result
        result |= above
    return frozenset(result)


def _opened_to(channel: Channel, group_ids: frozenset[int]) -> bool:
    return any(
        not group_ids.isdisjoint(setting_groups(getattr(channel, name)))
        for name in channel_access.VISIBILITY_SETTINGS
    )


def setting_groups(setting: GroupSetting) -> tuple[int, ...]:
    """Return the groups that hold a permission, without their subgroups."""
    return setting.direct_subgroups if isinstance(setting, Members) else (setting,)
