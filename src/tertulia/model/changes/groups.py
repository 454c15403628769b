"""User groups, and which channels become visible to their members."""

from typing import Any

from msgspec import Struct

from tertulia.model.changes.base import Change
from tertulia.model.groups import UserGroup


class ChannelSight(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who can see that a channel exists because of a change, and who cannot any more.

    Both ascending. `subscribers` are those of that moment, where somebody gained sight of it;
    `archived` is whether the channel is archived.
    """

    channel_id: int
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    subscribers: tuple[int, ...] = ()
    archived: bool = False


class UserGroupCreated(Change, frozen=True, tag="user_group_created"):
    """A group exists."""

    group: UserGroup


class UserGroupChanged(Change, frozen=True, tag="user_group_changed"):
    """The named fields of a group (`name`, `can_join_group`, `deactivated`, …) are new.

    `deactivated` is whether it was that before.
    """

    group_id: int
    values: dict[str, Any]
    deactivated: bool = False


class UserGroupMembersChanged(Change, frozen=True, tag="user_group_members_changed"):
    """Users and other groups came into a group, or are directly in it no more.

    `deactivated` is whether the group is that.
    """

    group_id: int
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    added_groups: tuple[int, ...] = ()
    removed_groups: tuple[int, ...] = ()
    sight: tuple[ChannelSight, ...] = ()
    deactivated: bool = False


class FullMembersChanged(Change, frozen=True, tag="full_members_changed"):
    """Members' waiting period is over, or there is another period.

    `period` is in days. Full members are those who joined by `joined_by` (UNIX seconds), all for
    None. `joined` are those who are full members now and were not, `left` the contrary.
    """

    period: int
    joined_by: int | None
    joined: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    sight: tuple[ChannelSight, ...] = ()
