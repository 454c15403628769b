"""User groups, and which channels become visible to their members."""

from typing import Any

from msgspec import Struct

from tertulia.model.changes.base import Change
from tertulia.model.groups import UserGroup


class ChannelSight(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The users who gained and lost sight of a channel by a change, ascending.

    If there are `gained`, `subscribers` are the channel's subscribers at that moment; `archived` is
    whether the channel is archived.
    """

    channel_id: int
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    subscribers: tuple[int, ...] = ()
    archived: bool = False


class UserGroupCreated(Change, frozen=True, tag="user_group_created"):
    """A group was created."""

    group: UserGroup


class UserGroupChanged(Change, frozen=True, tag="user_group_changed"):
    """Fields of a group (`name`, `can_join_group`, `deactivated`, …) have new values.

    `deactivated` is whether the group was deactivated before.
    """

    group_id: int
    values: dict[str, Any]
    deactivated: bool = False


class UserGroupMembersChanged(Change, frozen=True, tag="user_group_members_changed"):
    """Users and other groups were added to a group as direct members, or removed.

    `deactivated` is whether the group is deactivated.
    """

    group_id: int
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    added_groups: tuple[int, ...] = ()
    removed_groups: tuple[int, ...] = ()
    sight: tuple[ChannelSight, ...] = ()
    deactivated: bool = False


class FullMembersChanged(Change, frozen=True, tag="full_members_changed"):
    """The waiting period of members ended, or its length was changed.

    `period` is in days. Full members are those who joined by `joined_by` (UNIX seconds), all
    members if None. `joined` are those who became full members by it, `left` those who are none
    any more.
    """

    period: int
    joined_by: int | None
    joined: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    sight: tuple[ChannelSight, ...] = ()
