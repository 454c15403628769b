"""User groups, and values of permission settings."""

from enum import IntEnum
from typing import Any

from msgspec import Struct

from tertulia.model.change import Change


class SystemGroup(IntEnum):
    """Groups that follow roles. Every organization has them, with these IDs.

    Their members are derived from roles (`Memberships.direct_members`), not stored.
    """

    NOBODY = 1
    OWNERS = 2
    ADMINISTRATORS = 3
    MODERATORS = 4
    FULL_MEMBERS = 5
    MEMBERS = 6
    EVERYONE = 7
    INTERNET = 8


class Members(Struct, frozen=True):
    """An anonymous group: the value of a permission that isn't a single group."""

    direct_members: tuple[int, ...] = ()
    direct_subgroups: tuple[int, ...] = ()


GroupSetting = int | Members
"""Holders of a permission: the ID of a user group, or an anonymous group."""


def normalized(setting: GroupSetting) -> GroupSetting:
    """Return the normalized setting: sorted, without duplicates, and a single subgroup as its
    ID."""
    if isinstance(setting, int):
        return setting
    people = tuple(sorted(set(setting.direct_members)))
    groups = tuple(sorted(set(setting.direct_subgroups)))
    if not people and len(groups) == 1:
        return groups[0]
    return Members(people, groups)


class UserGroup(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named set of users and groups."""

    id: int
    name: str
    description: str = ""
    created_at: int | None = None
    """UNIX seconds; None for system groups."""
    creator_id: int | None = None
    members: tuple[int, ...] = ()
    subgroups: tuple[int, ...] = ()
    is_system: bool = False
    deactivated: bool = False
    can_add_members_group: GroupSetting = SystemGroup.NOBODY.value
    can_join_group: GroupSetting = SystemGroup.NOBODY.value
    can_leave_group: GroupSetting = SystemGroup.EVERYONE.value
    can_manage_group: GroupSetting = SystemGroup.NOBODY.value
    can_mention_group: GroupSetting = SystemGroup.EVERYONE.value
    can_remove_members_group: GroupSetting = SystemGroup.NOBODY.value


_NOBODY = SystemGroup.NOBODY.value


def _system(group: SystemGroup, name: str, description: str, *below: SystemGroup) -> UserGroup:
    return UserGroup(
        id=group.value,
        name=f"role:{name}",
        description=description,
        subgroups=tuple(g.value for g in below),
        is_system=True,
        can_leave_group=_NOBODY,
        can_mention_group=_NOBODY,
    )


SYSTEM_GROUPS: tuple[UserGroup, ...] = (
    _system(SystemGroup.NOBODY, "nobody", "Nobody"),
    _system(SystemGroup.OWNERS, "owners", "Owners of this organization"),
    _system(
        SystemGroup.ADMINISTRATORS,
        "administrators",
        "Administrators of this organization, including owners",
        SystemGroup.OWNERS,
    ),
    _system(
        SystemGroup.MODERATORS,
        "moderators",
        "Moderators of this organization, including administrators",
        SystemGroup.ADMINISTRATORS,
    ),
    _system(
        SystemGroup.FULL_MEMBERS,
        "fullmembers",
        "Members of this organization past the waiting period, excluding guests",
        SystemGroup.MODERATORS,
    ),
    _system(
        SystemGroup.MEMBERS,
        "members",
        "Members of this organization, excluding guests",
        SystemGroup.FULL_MEMBERS,
    ),
    _system(
        SystemGroup.EVERYONE,
        "everyone",
        "Everyone in this organization, including guests",
        SystemGroup.MEMBERS,
    ),
    _system(
        SystemGroup.INTERNET,
        "internet",
        "Everyone on the Internet",
        SystemGroup.EVERYONE,
    ),
)
"""The system groups. Each contains the next stricter one."""


class ChannelSight(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Users who gained and lost sight of a channel, ascending.

    If there are `gained`, `subscribers` are the channel's subscribers then.
    """

    channel_id: int
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    subscribers: tuple[int, ...] = ()
    archived: bool = False


class UserGroupCreated(Change, frozen=True, tag="user_group_created"):
    group: UserGroup


class UserGroupChanged(Change, frozen=True, tag="user_group_changed"):
    """Fields of a group (`name`, `can_join_group`, `deactivated`, …) have new values. `deactivated`
    is the value before."""

    group_id: int
    values: dict[str, Any]
    deactivated: bool = False


class UserGroupMembersChanged(Change, frozen=True, tag="user_group_members_changed"):
    """Direct members of a group, users and groups, were added or removed."""

    group_id: int
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    added_groups: tuple[int, ...] = ()
    removed_groups: tuple[int, ...] = ()
    sight: tuple[ChannelSight, ...] = ()
    deactivated: bool = False


class FullMembersChanged(Change, frozen=True, tag="full_members_changed"):
    """Waiting periods of members ended, or their length changed.

    `period` is in days. Full members joined by `joined_by` (UNIX seconds); None means all members.
    `joined` became full members, `left` no longer are.
    """

    period: int
    joined_by: int | None
    joined: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    sight: tuple[ChannelSight, ...] = ()
