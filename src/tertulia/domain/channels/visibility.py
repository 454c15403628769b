"""Who comes to see a private channel, and who sees it no more, as the members of groups change.

Which accounts guests see is found in `tertulia.state.user_visibility`, for every change.
"""

from collections.abc import Iterable

from tertulia.domain import permissions
from tertulia.model.changes import ChannelSight
from tertulia.model.channels import Channel
from tertulia.model.groups import GroupSetting, Members
from tertulia.state.organization import State


def moved(
    before: State, after: State, group_id: int, user_ids: Iterable[int], now: float
) -> tuple[ChannelSight, ...]:
    """What these accounts see of the channels after a change of the group's members, compared with
    what they saw before it.

    Only the channels are looked at whose permissions the group's members have by being that.
    """
    through = containing(after, group_id)
    members = set(user_ids)
    bots = {bot.id for user_id in members for bot in before.users.bots_of(user_id)}
    channels = (c for c in before.channels if c.is_private and _opened_to(c, through))
    return compared(before, after, channels, members | bots, now)


def compared(
    before: State, after: State, channels: Iterable[Channel], user_ids: Iterable[int], now: float
) -> tuple[ChannelSight, ...]:
    """What these accounts see of these channels, compared with what they saw of them."""
    found = []
    for channel in channels:
        gained: list[int] = []
        lost: list[int] = []
        for user_id in user_ids:
            saw = permissions.sees_channel(before, before.users[user_id], channel, now)
            if saw is not permissions.sees_channel(after, after.users[user_id], channel, now):
                (lost if saw else gained).append(user_id)
        if gained or lost:
            found.append(
                ChannelSight(
                    channel_id=channel.id,
                    gained=tuple(sorted(gained)),
                    lost=tuple(sorted(lost)),
                    subscribers=before.subscribers(channel.id) if gained else (),
                    archived=channel.is_archived,
                )
            )
    return tuple(found)


def containing(state: State, group_id: int) -> frozenset[int]:
    """The group, and every group that it is in, directly or through others."""
    found = {group_id}
    grown = True
    while grown:
        above = {g.id for g in state.groups if not found.isdisjoint(g.subgroups)}
        grown = not above <= found
        found |= above
    return frozenset(found)


def _opened_to(channel: Channel, group_ids: frozenset[int]) -> bool:
    return any(
        not group_ids.isdisjoint(groups_of(getattr(channel, name)))
        for name in permissions.SIGHT_SETTINGS
    )


def groups_of(setting: GroupSetting) -> tuple[int, ...]:
    """The groups that a permission names."""
    return setting.direct_subgroups if isinstance(setting, Members) else (setting,)
