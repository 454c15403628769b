"""Group membership in the state."""

from typing import Any

import pytest

from tertulia.model.groups import SYSTEM_GROUPS, Members, SystemGroup, UserGroup
from tertulia.model.organization import Realm
from tertulia.model.users import Bot, BotKind, Role, User
from tertulia.state.state import State

NOW = 0.0


def user(user_id: int, role: Role = Role.MEMBER, **more: Any) -> User:
    return User(id=user_id, address=f"{user_id}@x", full_name=str(user_id), role=role, **more)


@pytest.fixture
def state() -> State:
    """Users 1 (owner), 2 to 4 (members; 4 is new), 5 (a guest), 6 (deactivated), and 7 (the
    notification bot). Group 20 has 2, 5, and 6; group 21 has 3 and group 20; group 22 has group 21
    and the moderators."""
    state = State()
    state.realms.put(
        Realm(uuid="", name="", created_at=0, full_members_joined_by=10, waiting_period_applied=1)
    )
    for group in SYSTEM_GROUPS:
        state.groups.put(group)
    state.users.put(user(1, Role.OWNER))
    state.users.put(user(2))
    state.users.put(user(3, joined_at=10))
    state.users.put(user(4, joined_at=11))
    state.users.put(user(5, Role.GUEST))
    state.users.put(user(6, is_active=False))
    state.users.put(user(7, bot=Bot(kind=BotKind.GENERIC, is_system=True)))
    state.groups.put(UserGroup(id=20, name="a", members=(2, 5, 6)))
    state.groups.put(UserGroup(id=21, name="b", members=(3,), subgroups=(20,)))
    state.groups.put(UserGroup(id=22, name="c", subgroups=(21, SystemGroup.MODERATORS.value)))
    return state


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (SystemGroup.NOBODY.value, set()),
        (SystemGroup.MODERATORS.value, {1}),
        (SystemGroup.FULL_MEMBERS.value, {1, 2, 3}),
        (SystemGroup.MEMBERS.value, {1, 2, 3, 4}),
        (SystemGroup.EVERYONE.value, {1, 2, 3, 4, 5}),
        (SystemGroup.INTERNET.value, {1, 2, 3, 4, 5}),
        (20, {2, 5}),
        (21, {2, 3, 5}),
        (22, {1, 2, 3, 5}),
        (Members((), ()), set()),
        (Members((4, 6), ()), {4}),
        (Members((4,), (21, SystemGroup.OWNERS.value)), {1, 2, 3, 4, 5}),
    ],
)
def test_members_include_those_of_subgroups(
    state: State, setting: int | Members, expected: set[int]
) -> None:
    assert state.memberships.members(setting) == expected
    held = {one.id for one in state.users if state.memberships.holds(one, setting)}
    assert held - {7} == expected


def test_cached_members_are_dropped_when_something_changes(state: State) -> None:
    assert state.memberships.members(22) == {1, 2, 3, 5}
    assert state.memberships.members(22) is state.memberships.members(22)
    state.groups.put(UserGroup(id=20, name="a", members=(2,)))
    assert state.memberships.members(22) == {1, 2, 3}
    state.users.put(user(2, is_active=False))
    assert state.memberships.members(22) == {1, 3}
    state.users.put(user(5, Role.MODERATOR))
    assert state.memberships.members(22) == {1, 3, 5}
    state.groups.put(UserGroup(id=22, name="c", subgroups=(SystemGroup.FULL_MEMBERS.value,)))
    assert state.memberships.members(22) == {1, 3, 5}
    state.realms.put(Realm(uuid="", name="", created_at=0))
    assert state.memberships.members(22) == {1, 3, 4, 5}


def test_a_copy_with_changes_leaves_the_state_unchanged(state: State) -> None:
    assert state.memberships.members(22) == {1, 2, 3, 5}
    ahead = state.with_changes(UserGroup(id=20, name="a", members=(4,)))
    assert ahead.memberships.members(22) == {1, 3, 4}
    assert ahead.memberships.holds(state.users[4], 21)
    assert not state.memberships.holds(state.users[4], 21)
    assert state.memberships.members(22) == {1, 2, 3, 5}
    assert state.groups[20].members == (2, 5, 6)


def test_the_oldest_come_first(state: State) -> None:
    members = state.users.members_by_joining
    assert members.between(None, None) == [2, 3, 4]
    assert members.between(0, 10) == [3]
    assert members.between(11, 0) == []
    assert (members.next(-1), members.next(0), members.next(11)) == (0, 10, None)
    state.users.put(user(3, joined_at=12))
    assert members.between(11, None) == [3]
    state.users.put(user(3, Role.MODERATOR, joined_at=12))
    assert members.next(11) is None


def test_membership_in_a_group_of_fifty_thousand_is_found_without_a_scan(state: State) -> None:
    """Checking one member doesn't look at the others."""

    class Once(tuple[int, ...]):
        """Members that can't be searched."""

        __slots__ = ()

        def __contains__(self, _: object) -> bool:
            raise AssertionError("looked through all of them")

    for user_id in range(100, 50_100):
        state.users.put(user(user_id))
    state.groups.put(UserGroup(id=30, name="all", members=Once(range(100, 50_100))))
    assert len(state.memberships.members(30)) == 50_000
    assert state.memberships.members(30) is state.memberships.members(30)
    assert state.memberships.holds(state.users[50_000], 30)
    assert 30 in state.memberships.groups_of(state.users[50_000])
