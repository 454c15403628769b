"""Copies of the state with changes: no index is out of date."""

import contextlib
import copy
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from tertulia.model.channels import Channel, Subscription, Topic
from tertulia.model.groups import SYSTEM_GROUPS, SystemGroup, UserGroup
from tertulia.model.messages import DirectConversation
from tertulia.model.nouns import NOUNS
from tertulia.model.organization import Realm
from tertulia.model.users import Bot, BotKind, Role, User
from tertulia.state.state import State
from tertulia.state.tables import Index, StaleIndexError, Table, TableIndex, Unique


def user(user_id: int, role: Role = Role.MEMBER, **more: Any) -> User:
    return User(id=user_id, address=f"{user_id}@x", full_name=f"n{user_id}", role=role, **more)


def made() -> State:
    state = State()
    state.realms.put(
        Realm(uuid="", name="", created_at=0, full_members_joined_by=10, waiting_period_applied=1)
    )
    for group in SYSTEM_GROUPS:
        state.groups.put(group)
    state.users.put(user(1, Role.OWNER))
    state.users.put(user(2, joined_at=5))
    state.users.put(user(3, joined_at=12))
    state.users.put(user(4, Role.GUEST))
    state.users.put(user(5, bot=Bot(kind=BotKind.GENERIC, owner_id=3)))
    state.groups.put(UserGroup(id=20, name="Tea", members=(2, 3)))
    state.groups.put(UserGroup(id=21, name="Cake", members=(1,), subgroups=(20,)))
    for channel_id in (1, 2):
        state.channels.put(Channel(id=channel_id, name=f"C{channel_id}", created_at=0))
    for channel_id, user_id in ((1, 2), (1, 3), (1, 4), (2, 3)):
        state.subscriptions.put(
            Subscription(channel_id=channel_id, user_id=user_id, color="", spans=((0, None),))
        )
    state.topics.put(Topic(channel_id=1, key="t", name="T", last_message_id=1, message_count=1))
    state.directs.put(DirectConversation(id=1, members=(2, 3)))
    return state


CHANGES: dict[str, Callable[[State], list[Struct]]] = {
    "name and address": lambda s: [replaced(s.users[2], full_name="New", address="New@x")],
    "role": lambda s: [replaced(s.users[3], role=Role.GUEST)],
    "deactivated": lambda s: [replaced(s.users[3], is_active=False)],
    "becomes a full member": lambda s: [replaced(s.users[3], joined_at=1)],
    "owner of a bot": lambda s: [replaced(s.users[5], bot=Bot(kind=BotKind.GENERIC, owner_id=4))],
    "new accounts": lambda s: [user(6), user(7, Role.GUEST), user(8)],
    "members": lambda s: [replaced(s.groups[20], name="Coffee", members=(3, 4), subgroups=())],
    "subgroups": lambda s: [replaced(s.groups[21], subgroups=())],
    "waiting period": lambda s: [replaced(s.realm, full_members_joined_by=20)],
    "limited guests": lambda s: [
        replaced(s.realm, can_access_all_users_group=SystemGroup.MEMBERS.value)
    ],
    "channels": lambda s: [
        replaced(s.channels[1], name="renamed"),
        Channel(id=3, name="New", created_at=0),
    ],
    "several tables": lambda s: [user(6), Channel(id=3, name="New", created_at=0)],
    "a subscription ends": lambda s: [replaced(s.subscriptions[(1, 3)], spans=((0, 4),))],
    "a subscription": lambda s: [
        Subscription(channel_id=2, user_id=4, color="", spans=((0, None),))
    ],
    "topics": lambda s: [
        replaced(s.topics[(1, "t")], message_count=2),
        Topic(channel_id=2, key="u", name="U", last_message_id=2, message_count=3),
    ],
    "a conversation": lambda s: [DirectConversation(id=2, members=(3, 4))],
}


def replaced(record: Struct, **values: Any) -> Struct:
    return msgspec.structs.replace(record, **values)


def contents(state: State) -> dict[str, Any]:
    """The content of every index of a table, by its path, except for those that copies don't
    have."""
    found = {}
    for table, names in INDEXES.items():
        for name in names:
            with contextlib.suppress(StaleIndexError):
                index = getattr(getattr(state, table), name)
                own = {k: v for k, v in vars(index).items() if k not in HIDDEN and not callable(v)}
                found[f"{table}.{name}"] = copy.deepcopy(own)
    return found


HIDDEN = {"table", "tables", "number"}
INDEXES = {
    name: [key for key, one in vars(table).items() if isinstance(one, TableIndex)]
    for name, table in vars(made()).items()
    if isinstance(table, Table)
}


def answers(state: State) -> dict[str, Any]:
    """Results from indexes over several tables, if the copy has them."""
    ids = sorted(state.users.rows)
    groups = state.memberships
    found: dict[str, Any] = {
        "members": {group.id: groups.members(group.id) for group in state.groups},
        "groups": {u: groups.groups_of(state.users[u]) for u in ids},
        "held": {g.id: [groups.holds(state.users[u], g.id) for u in ids] for g in state.groups},
        "limited": list(groups.limited_guests),
        "bots": [[bot.id for bot in state.users.bots_of(u)] for u in ids],
        "subscribers": {channel.id: state.subscribers(channel.id) for channel in state.channels},
        "channels": [state.channel_ids_of(u) for u in ids],
        "by address": [state.user_with_address(state.users[u].address) for u in ids],
        "by name": [state.channel_named(channel.name) for channel in state.channels],
    }
    return found


@pytest.mark.parametrize("name", CHANGES)
def test_a_copy_answers_as_the_state_will_after_the_changes(name: str) -> None:
    state, then = made(), made()
    before, asked = contents(state), answers(state)
    records = CHANGES[name](state)
    copied = state.with_changes(*records)
    for record in records:
        (noun,) = [noun for noun in NOUNS if noun.type is type(record)]
        then.tables[noun.table].put(record)
    assert contents(copied) == contents(then)
    assert answers(copied) == answers(then)
    assert {name: table.rows for name, table in copied.tables.items()} == {
        name: table.rows for name, table in then.tables.items()
    }
    # The state itself is unchanged.
    assert (contents(state), answers(state)) == (before, asked)


def test_copies_of_copies_follow_both() -> None:
    state = made()
    once = state.with_changes(replaced(state.users[2], full_name="New"))
    twice = once.with_changes(replaced(once.groups[20], members=(4,)), user(6))
    assert list(twice.users.by_name.keys("New")) == [2]
    assert twice.users.members_by_joining.between(None, None) == [2, 3, 5, 6]
    assert twice.memberships.members(21) == {1, 4}
    assert once.memberships.members(21) == {1, 2, 3}


def test_topics_are_ordered_by_their_newest_messages() -> None:
    random, state = Random(3), State()

    def in_order(where: State) -> list[list[str]]:
        return [[topic.key for topic in where.topics.by_newest_message[one]] for one in (1, 2)]

    def expected(where: State) -> list[list[str]]:
        topics = sorted(where.topics, key=lambda topic: topic.last_message_id)
        return [[topic.key for topic in topics if topic.channel_id == one] for one in (1, 2)]

    for newest in range(1, 500):
        where, key = random.choice((1, 2)), random.choice("abcdefgh")
        known = state.topics.get((where, key))
        match random.randrange(4):
            case 0 if known is not None:
                state.topics.remove((where, key))
            case 1 if known is not None and (other := random.choice("ijkl")):
                # One topic merges into another: first it has its messages, then the other is gone.
                state.topics.put(msgspec.structs.replace(known, key=other))
                state.topics.remove((where, key))
            case _:
                number = random.choice((newest, -newest))  # Or its newest message was deleted.
                topic = Topic(
                    channel_id=where, key=key, name=key, last_message_id=number, message_count=1
                )
                copied = state.with_changes(topic)
                assert in_order(copied) == expected(copied)
                assert in_order(state) == expected(state)
                state.topics.put(topic)
        assert in_order(state) == expected(state)


def test_an_index_that_cannot_be_copied_says_so() -> None:
    state = made()
    copied = state.with_changes(user(6), Channel(id=3, name="New", created_at=0))
    for ask in (
        lambda: copied.user_shards,
        lambda: copied.channel_shards,
        lambda: copied.channels.activity,
    ):
        with pytest.raises(StaleIndexError):
            ask()
    assert copied.contacts is state.contacts
    with pytest.raises(StaleIndexError):
        _ = state.with_changes(DirectConversation(id=2, members=(3, 4))).contacts


def test_a_new_index_is_no_exception() -> None:
    """An index unknown to copies: either it's updated, or it can't be used."""

    class Forgotten(Index):
        def __init__(self, table: Table[User]) -> None:
            self.follow(table, lambda before, after: None)

    state: Any = made()
    state.users.forgotten = Forgotten(state.users)
    state.users.by_zone = Unique(state.users, lambda one: one.timezone or None)
    state.forgotten = Forgotten(state.users)
    state.plain = {1: "a"}
    copied = state.with_changes(user(6, timezone="Europe/Paris"))
    assert copied.users.by_zone.get("Europe/Paris") == 6
    for holder in (copied.users, copied):
        with pytest.raises(StaleIndexError):
            _ = holder.forgotten
    with pytest.raises(AttributeError, match="plain"):
        _ = copied.plain


def test_a_copy_leaves_nothing_behind() -> None:
    """The state's tables don't keep references to copies, which would slow down every later
    change."""
    state = made()
    before = {name: len(table._watchers) for name, table in state.tables.items()}
    for changes in CHANGES.values():
        answers(state.with_changes(*changes(state)))
    assert before == {name: len(table._watchers) for name, table in state.tables.items()}


def test_a_copy_is_read_only_and_short_lived() -> None:
    state = made()
    copied = state.with_changes(user(6))
    with pytest.raises(TypeError, match="for reading"):
        copied.users.put(user(7))
    state.users.put(user(8))
    with pytest.raises(StaleIndexError):
        _ = copied.users.by_name
    other = state.with_changes(user(6))
    state.seq += 1
    with pytest.raises(StaleIndexError):
        _ = other.memberships
