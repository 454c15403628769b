"""User groups and their members: tables, indexes, and folds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import msgspec
from pyroaring import BitMap

from tertulia.model import changes
from tertulia.model.groups import GroupSetting, Members, SystemGroup, UserGroup
from tertulia.model.nouns import Noun
from tertulia.model.organization import Realm
from tertulia.model.users import Role, User
from tertulia.state.folds import FOLDS, revised
from tertulia.state.tables import Grouped, Index, Table, TableIndex, Unique, next_version
from tertulia.state.users import UserTable

if TYPE_CHECKING:
    from tertulia.state.state import State

_ROLE_OF_GROUP = {
    SystemGroup.OWNERS: Role.OWNER,
    SystemGroup.ADMINISTRATORS: Role.ADMINISTRATOR,
    SystemGroup.MODERATORS: Role.MODERATOR,
    SystemGroup.MEMBERS: Role.MEMBER,
    SystemGroup.EVERYONE: Role.GUEST,
}


class GroupTable(Table[UserGroup]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_name = Unique(self, lambda group: group.name.casefold())
        self.of_creator = Grouped(self, lambda group: group.creator_id)
        self.named_members = NamedMembers(self)


class NamedMembers(TableIndex[UserGroup]):
    """The accounts that each group lists as members, including deactivated ones."""

    def __init__(self, groups: Table[UserGroup]) -> None:
        self._members: dict[int, frozenset[int]] = {}
        super().__init__(groups)

    def _update(self, before: UserGroup | None, after: UserGroup | None) -> None:
        if after is not None and (before is None or before.members != after.members):
            self._members[after.id] = frozenset(after.members)

    def _detach(self, records: Collection[UserGroup]) -> None:
        self._members = {**self._members}

    def __getitem__(self, group_id: int) -> frozenset[int]:
        return self._members[group_id]


class Memberships(Index):
    """Members of groups: listed accounts, accounts with a role, and members of subgroups. Results
    are cached until something changes."""

    def __init__(self, users: UserTable, groups: GroupTable, realms: Table[Realm]) -> None:
        self._users, self._groups, self._realms = users, groups, realms
        self.version = next_version()
        """Changes when a group or its members change."""
        self._members: dict[int, frozenset[int]] = {}
        self._limited: BitMap | None = None
        self.follow(users, self._user_changed)
        self.follow(groups, self._forget)
        self.follow(realms, self._forget)

    def with_tables(self, instead: Callable[[Any], Any]) -> Memberships:
        made = self._copy_over(instead)
        made._users, made._groups = instead(self._users), instead(self._groups)
        made._realms = instead(self._realms)
        made._forget()
        return made

    def _user_changed(self, before: User | None, after: User | None) -> None:
        if before is None or after is None or _decisive(before) != _decisive(after):
            self._forget()

    def _forget(self, *_: object) -> None:
        self._members = {}
        self._limited = None
        self.version = next_version()

    # Members of a group

    def direct_members(self, group: UserGroup) -> Collection[int]:
        """Return the active accounts that are direct members of the group."""
        users = self._users
        if not group.is_system:
            return [user_id for user_id in group.members if users[user_id].is_active]
        kind = SystemGroup(group.id)
        if kind is SystemGroup.FULL_MEMBERS:
            members = users.active_by_role.keys(Role.MEMBER)
            return [user_id for user_id in members if self.is_full_member(users[user_id])]
        role = _ROLE_OF_GROUP.get(kind)
        return () if role is None else users.active_by_role.keys(role)

    def members(self, setting: GroupSetting) -> frozenset[int]:
        """Return the active accounts in the group (or with the permission), directly or through
        subgroups. The result is cached."""
        if isinstance(setting, Members):
            people = {
                user_id for user_id in setting.direct_members if self._users[user_id].is_active
            }
            return frozenset(people).union(
                *(self.members(group_id) for group_id in setting.direct_subgroups)
            )
        member = self._members.get(setting)
        if member is None:
            groups = [self._groups[group_id] for group_id in (setting, *self.subgroups(setting))]
            member = frozenset().union(*(self.direct_members(group) for group in groups))
            self._members[setting] = member
        return member

    def subgroups(self, group_id: int) -> frozenset[int]:
        """Return the groups in the group, directly or through others."""
        result: set[int] = set()
        pending = list(self._groups[group_id].subgroups)
        while pending:
            subgroup_id = pending.pop()
            if subgroup_id not in result:
                result.add(subgroup_id)
                pending.extend(self._groups[subgroup_id].subgroups)
        return frozenset(result)

    # Groups of an account

    def groups_of(self, user: User) -> tuple[int, ...]:
        """Return the groups that the account is a direct member of while it is active,
        ascending."""
        members = self._groups.named_members
        named = [g.id for g in self._groups if not g.is_system and user.id in members[g.id]]
        return tuple(sorted([*self.system_groups_of(user), *named]))

    def system_groups_of(self, user: User) -> tuple[int, ...]:
        """Return the system groups that the account is directly in, ascending."""
        if user.is_system_bot:
            return ()
        groups = [group.value for group, role in _ROLE_OF_GROUP.items() if role is user.role]
        if user.role is Role.MEMBER and self.is_full_member(user):
            groups.append(SystemGroup.FULL_MEMBERS.value)
        return tuple(sorted(groups))

    def is_full_member(self, user: User) -> bool:
        """Whether a member's waiting period has ended. Higher roles are full members too. The log
        records when it ends (`FullMembersChanged`), so that all readers of an entry agree."""
        if user.role is not Role.MEMBER:
            return user.role < Role.MEMBER
        joined_by = self._realms[1].full_members_joined_by
        return joined_by is None or user.joined_at <= joined_by

    def holds(self, user: User, setting: GroupSetting) -> bool:
        """Whether the user is in the group (or has the permission), directly or through
        subgroups."""
        if not user.is_active:
            return False
        if isinstance(setting, Members):
            if user.id in setting.direct_members:
                return True
            pending = list(setting.direct_subgroups)
        else:
            pending = [setting]
        seen: set[int] = set()
        while pending:
            group_id = pending.pop()
            if group_id in seen:
                continue
            seen.add(group_id)
            group = self._groups.get(group_id)
            if group is None:
                continue
            if group.is_system:
                if self._is_in_system_group(user, SystemGroup(group.id)):
                    return True
                continue
            if user.id in self._groups.named_members[group.id]:
                return True
            pending.extend(group.subgroups)
        return False

    def _is_in_system_group(self, user: User, group: SystemGroup) -> bool:
        match group:
            case SystemGroup.NOBODY:
                return False
            case SystemGroup.FULL_MEMBERS:
                return self.is_full_member(user)
            case SystemGroup.INTERNET:
                return True
            case _:
                return user.role <= _ROLE_OF_GROUP[group]

    # Limited guests

    def is_limited_guest(self, user: User) -> bool:
        """Whether the account, if active, has the rights of a guest who can't see all accounts. A
        bot has its owner's rights (see `permissions.role_of`)."""
        accounts = [user]
        if user.bot is not None and user.bot.owner_id is not None:
            owner = self._users[user.bot.owner_id]
            if not owner.is_active:
                return True
            accounts.append(owner)
        if not any(account.is_guest for account in accounts):
            return False
        active = (msgspec.structs.replace(account, is_active=True) for account in accounts)
        setting = self._realms[1].can_access_all_users_group
        return not all(self.holds(user, setting) for user in active)

    @property
    def limited_guests(self) -> BitMap:
        """The limited guests; empty if the organization limits none. Don't change it."""
        if self._limited is None:
            users = self._users
            self._limited = BitMap(
                user_id for user_id in users.maybe_guests if self.is_limited_guest(users[user_id])
            )
        return self._limited


def _decisive(user: User) -> tuple[Role, int, bool, int | None]:
    """Return the fields that decide the account's system groups and rights."""
    owner_id = None if user.bot is None else user.bot.owner_id
    return user.role, user.joined_at, user.is_active, owner_id


FOLDS.puts(changes.UserGroupCreated, "groups", "group")
FOLDS.revises(changes.UserGroupChanged, "groups", "group_id")


@FOLDS.of(changes.UserGroupMembersChanged)
def _(state: State, change: changes.UserGroupMembersChanged) -> None:
    group = state.groups[change.group_id]
    members = {*group.members, *change.added} - set(change.removed)
    subgroups = {*group.subgroups, *change.added_groups} - set(change.removed_groups)
    values = {"members": tuple(sorted(members)), "subgroups": tuple(sorted(subgroups))}
    state.groups.put(revised(group, values))


@FOLDS.of(changes.FullMembersChanged)
def _(state: State, change: changes.FullMembersChanged) -> None:
    values = {
        "waiting_period_applied": change.period,
        "full_members_joined_by": change.joined_by,
    }
    state.realms.put(revised(state.realm, values))
