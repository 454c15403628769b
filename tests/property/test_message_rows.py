"""The cost of a message doesn't grow with its audience."""

import pytest

from tertulia.model.changes import ChannelCreated, Subscribed, UserCreated
from tertulia.model.channels import Channel
from tertulia.model.users import Credential, PersonalSettings, User
from tertulia.store import store as store_module
from tertulia.store import writing
from tertulia.store.database import Connection
from tertulia.store.writing import Batch
from tests.support import Organization

AUDIENCES = (10, 5000)


def changes_of(connection: Connection) -> dict[str, int]:
    """The number of rows of each table, except those of the search index, and the facts about the
    installation, which background jobs add and remove."""
    if connection.dialect.name == "sqlite":
        names = connection.query(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            " AND name NOT LIKE 'message_search%' AND name NOT LIKE 'topic_search%'"
            " AND name <> 'installation'"
        )
    else:
        names = connection.query(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
            " AND tablename NOT IN ('message_search', 'topic_search', 'installation')"
        )
    return {
        name: connection.query(f"SELECT COUNT(*) FROM {name}")[0][0] for (name,) in sorted(names)
    }


async def crowd(org: Organization, count: int) -> list[int]:
    """This many people, including the owner; the others are new."""
    first = org.node.state.users.next_id()
    people = [org["ann"].user_id, *range(first, first + count - 1)]
    accounts = [
        UserCreated(
            user=User(id=user_id, address=f"u{user_id}@example.com", full_name=f"U {user_id}"),
            credential=Credential(user_id=user_id, key_digest=f"{user_id}", key_sealed=""),
            settings=PersonalSettings(user_id=user_id),
        )
        for user_id in people[1:]
    ]
    await org.do(*accounts)
    return people


async def channel_of(org: Organization, people: list[int]) -> int:
    """A new channel with these subscribers."""
    channel_id = org.node.state.channels.next_id()
    name = f"crowd {channel_id}"
    await org.do(
        ChannelCreated(channel=Channel(id=channel_id, name=name, created_at=int(org.node.clock()))),
        Subscribed(channel_id=channel_id, colors=dict.fromkeys(people, "#76ce90"), after=0),
    )
    return channel_id


async def subscribed_channel(org: Organization, count: int) -> int:
    """A channel with this many subscribers, including the owner."""
    return await channel_of(org, await crowd(org, count))


@pytest.fixture(scope="module")
async def crowds(shared_org: Organization) -> list[list[int]]:
    """People for each audience."""
    return [await crowd(shared_org, count) for count in AUDIENCES]


@pytest.mark.parametrize(
    "content", ["hello", "hello @**all**", "hello @**topic**", "@**Ben**"], ids=str
)
async def test_a_channel_message_adds_two_rows_for_10_and_for_5000_subscribers(
    shared_org: Organization,
    crowds: list[list[int]],
    content: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One in `log` and one in `messages`. Four more are updated or counted once: `head`,
    `counters`, the topic's, and (once a day) the channel's. A person who is mentioned by name, or
    who wrote in a topic where the topic is mentioned, adds one in `message_flags`."""
    added: list[dict[str, int]] = []
    written: list[int] = []
    real = writing.write

    def write(connection: Connection, batch: Batch) -> None:
        written.append(sum(len(rows) for rows in batch.records.values()))
        real(connection, batch)

    for people in crowds:
        channel_id = await channel_of(shared_org, people)
        await shared_org["ann"].send(channel_id, "t", "the first one of the topic")
        before = await shared_org.node.store.read(changes_of)
        with monkeypatch.context() as patch:
            patch.setattr(store_module, "write", write)
            await shared_org["ann"].send(channel_id, "t", content)
        after = await shared_org.node.store.read(changes_of)
        added.append(
            {name: after[name] - before[name] for name in after if after[name] != before[name]}
        )
    flags = {"message_flags": 1} if "topic" in content else {}
    assert added == [{"log": 1, "messages": 1, **flags}] * len(AUDIENCES)
    # The updated rows: the counter's and the topic's.
    assert written == [2] * len(AUDIENCES)


async def test_a_message_adds_a_row_for_each_person_alerted_or_muting_its_sender(
    shared_org: Organization, crowds: list[list[int]]
) -> None:
    """However many others receive it."""
    words = {"alert_words": ["tea"]}
    assert (await shared_org["ben"].post("/users/me/alert_words", **words)).ok
    assert (await shared_org["ben"].post(f"/users/me/muted_users/{shared_org['ann'].user_id}")).ok
    for people in crowds:
        channel_id = await channel_of(shared_org, people)
        ben = {shared_org["ben"].user_id: "#76ce90"}
        after = shared_org.node.state.last_message_id
        await shared_org.do(Subscribed(channel_id=channel_id, colors=ben, after=after))
        await shared_org["ann"].send(channel_id, "t", "the first one")
        for content, flags in (("coffee", 0), ("tea", 1)):
            before = await shared_org.node.store.read(changes_of)
            await shared_org["ann"].send(channel_id, content, content)
            now = await shared_org.node.store.read(changes_of)
            added = {name: now[name] - before[name] for name in now if now[name] != before[name]}
            # Ben's read messages are one row, which is updated.
            assert added.pop("read_state", 0) <= 1
            expected = {
                "log": 1,
                "messages": 1,
                "topics": 1,
                "message_topics": 1,
                "message_flags": flags,
            }
            assert added == {name: count for name, count in expected.items() if count}
