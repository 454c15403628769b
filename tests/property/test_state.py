"""The tables, the log, and the memory agree about an organization."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from tertulia.model.messages import ANY_MENTION, Flag, Message
from tertulia.service.config import Config
from tertulia.state.state import State
from tertulia.state.unread_bitmaps import Unread
from tertulia.store import message_marks, queries
from tertulia.store.database import Connection
from tests import postgres
from tests.property.histories import (
    HISTORIES,
    PEOPLE,
    History,
    assert_folds,
    on_a_new_database,
)
from tests.support import open_organization

seeds = st.integers(0, 2**32)


@contextmanager
def new_database(request: pytest.FixtureRequest, kind: str) -> Iterator[str]:
    """An empty database of this kind for one example."""
    if kind == "sqlite":
        yield ""
        return
    with postgres.schema(request.getfixturevalue("postgres_url")) as url:
        yield url


def examples(count: int) -> settings:
    """`HISTORIES` times this number of examples, at least one."""
    return settings(
        max_examples=max(1, round(count * HISTORIES)),
        derandomize=HISTORIES <= 1,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # A smaller seed is no simpler.
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


both = pytest.mark.parametrize("kind", ["sqlite", "postgresql"])


@both
@examples(5)
@given(seed=seeds)
def test_folding_the_log_gives_the_tables_and_the_live_state(
    request: pytest.FixtureRequest, kind: str, seed: int
) -> None:
    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check_fold)


async def check_fold(history: History, config: Config) -> None:
    await history.run(60)
    await assert_folds(history.org.node.log)


@both
@examples(4)
@given(seed=seeds)
def test_cached_responses_equal_fresh_ones(
    request: pytest.FixtureRequest, kind: str, seed: int
) -> None:
    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check_kept)


async def check_kept(history: History, config: Config) -> None:
    for _ in range(6):
        await history.run(10)
        # Only queues change in between, and a response has only their IDs.
        kept = await answers(history)
        history.org.node.fragments.clear()
        for (who, how), made in (await answers(history)).items():
            assert made == kept[who, how], (who, how, history.done)


WAYS_TO_ASK: tuple[dict[str, Any], ...] = (
    {},
    {
        "include_subscribers": True,
        "client_gravatar": False,
        "client_capabilities": {"user_list_incomplete": True, "archived_channels": True},
    },
    {
        "include_subscribers": "partial",
        "slim_presence": True,
        "client_capabilities": {
            "notification_settings_null": True,
            "include_deactivated_groups": True,
        },
    },
)


async def answers(history: History) -> dict[tuple[str, int], Any]:
    """Every person's full responses, by person and request."""
    found = {}
    for name in PEOPLE:
        who = history.org[name]
        if not history.state.users[who.user_id].is_active:
            continue
        for how, sent in enumerate(WAYS_TO_ASK):
            data = (await who.post("/register", **sent)).ok
            for own in ("queue_id", "last_event_id", "server_timestamp"):
                del data[own]
            users = await who.get(
                "/users", client_gravatar=how != 1, include_custom_profile_fields=how == 1
            )
            found[name, how] = data, users.ok
    return found


@both
@examples(5)
@given(seed=seeds)
def test_unread_messages_match_a_plain_count(
    request: pytest.FixtureRequest, kind: str, seed: int
) -> None:
    """For everyone, loaded in the middle of the history and after a restart."""
    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check_unread)


async def check_unread(history: History, config: Config) -> None:
    early = {name: history.org[name].user_id for name in history.rng.sample(PEOPLE, 3)}
    await history.run(20)
    for user_id in early.values():
        await unread_of(history, user_id)
    for _ in range(4):
        await history.run(15)
        for name in PEOPLE:
            await assert_unread(history, history.org[name].user_id)
    async with open_organization(config) as later:
        again = History(later, history.rng, history.sent, history.done)
        for name in PEOPLE:
            await assert_unread(again, later[name].user_id)


async def unread_of(history: History, user_id: int) -> Unread:
    return await history.org.node.log.snapshot(
        user_id, lambda _: None, lambda state, _: state.unread.of(state, user_id)
    )


async def assert_unread(history: History, user_id: int) -> None:
    state = history.state

    def look(connection: Connection) -> tuple[list[Message], dict[int, message_marks.Relation]]:
        ids = list(range(1, state.last_message_id + 1))
        return queries.messages(connection, ids), message_marks.relations(connection, user_id, ids)

    messages, relations = await history.org.node.store.read(look)
    expected = Unread(BitMap())
    by_topic: dict[int, dict[str, BitMap]] = defaultdict(lambda: defaultdict(BitMap))
    for message in messages:
        relation = relations[message.id]
        if relation.read or not counts(state, user_id, message, relation):
            continue
        expected.all.add(message.id)
        if message.channel_id is not None:
            expected.channels.setdefault(message.channel_id, BitMap()).add(message.id)
            by_topic[message.channel_id][message.topic.casefold()].add(message.id)
        else:
            expected.directs.setdefault(message.direct_id or 0, BitMap()).add(message.id)
        reached = message.mentions_all and state.received(user_id, message)
        if relation.flags & ANY_MENTION or reached:
            expected.mentions.add(message.id)
    unread = await unread_of(history, user_id)
    assert unread == expected
    for channel_id, ids in unread.channels.items():
        assert dict(state.unread.by_topic(channel_id, ids)) == by_topic[channel_id]


def counts(state: State, user_id: int, message: Message, relation: message_marks.Relation) -> bool:
    """Whether the message is unread until it's read: it arrived during the current subscription to
    a channel that isn't archived (and hasn't been since), or in one of the person's direct
    conversations, or the person marked it as unread."""
    if message.channel_id is None:
        return user_id in state.directs[message.direct_id].members
    subscription = state.subscriptions.get((message.channel_id, user_id))
    channel = state.channels[message.channel_id]
    if subscription is None or channel.is_archived or not subscription.is_active:
        return False
    came = max(subscription.spans[-1][0], channel.read_until)
    return message.id > came or bool(relation.flags & Flag.RECORD)
