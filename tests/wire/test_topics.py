"""Topics of a channel: listing and policies."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from tertulia.model.changes import RealmChanged, Subscribed, Unsubscribed
from tertulia.model.channels import TopicsPolicy
from tertulia.model.groups import SystemGroup
from tertulia.service.messages import reading
from tertulia.store import topics as topics_store
from tertulia.store.database import Connection
from tertulia.wire.api import topics as resource
from tertulia.wire.http.responses import array_items
from tests.support import Organization, Person, row


async def topics(who: Person, channel: int, **parameters: Any) -> list[tuple[str, int]]:
    reply = await who.get(f"/users/me/{channel}/topics", **parameters)
    return [(topic["name"], topic["max_id"]) for topic in reply.ok["topics"]]


async def test_topics_are_listed_by_their_newest_messages(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    await org["ann"].send("lounge", "tea", "a")
    cake = await org["ann"].send("lounge", "cake", "b")
    tea = await org["ann"].send("lounge", "Tea", "c")
    assert await topics(org["ben"], channel) == [("Tea", tea), ("cake", cake)]


async def test_many_topics_are_encoded_in_several_turns_of_the_event_loop(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = await org.channel("lounge", "ann")
    sent = [(str(n), await org["ann"].send("lounge", str(n), "a")) for n in range(7)]
    steps: list[int] = []

    def counted(values: Iterable[Any]) -> bytes:
        found = list(values)
        steps.append(len(found))
        return array_items(found)

    monkeypatch.setattr(resource, "STEP", 3)
    monkeypatch.setattr(resource, "array_items", counted)
    assert await topics(org["ann"], channel) == sent[::-1]
    assert steps == [3, 3, 1, 0]
    assert await topics(org["ann"], await org.channel("empty", "ann")) == []


CAPABLE: list[tuple[dict[str, Any], str]] = [
    ({}, "general chat"),
    ({"allow_empty_topic_name": False}, "general chat"),
    ({"allow_empty_topic_name": True}, ""),
]
"""Client capabilities, and the name that is shown."""


async def test_the_empty_topic_has_a_name_for_clients_that_need_one(org: Organization) -> None:
    channel = await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "", "a")
    for parameters, name in CAPABLE:
        with row(parameters, name):
            assert await topics(org["ann"], channel, **parameters) == [(name, sent)]
            data = (await org["ann"].register(fetch_event_types=["realm"])).data
            assert data["realm_empty_topic_display_name"] == "general chat"


async def test_a_protected_history_shows_topics_of_received_messages(
    org: Organization,
) -> None:
    channel = await org.channel("den", "ann", is_private=True, history_public=False)
    ids = {name: org[name].user_id for name in ("ben", "robo")}
    await org["ann"].send("den", "before", "a")
    await org["ann"].send("den", "tea", "b")

    async def join(*names: str) -> None:
        state = org.node.state
        await org.do(
            Subscribed(
                channel_id=channel,
                colors={ids[name]: "#76ce90" for name in names},
                after=state.last_message_id,
            )
        )

    await join("ben", "robo")
    tea = await org["ann"].send("den", "tea", "c")
    assert await topics(org["ben"], channel) == await topics(org["robo"], channel) == [("tea", tea)]
    # Messages sent during an absence stay hidden, and earlier received ones are visible.
    until = org.node.state.last_message_id
    await org.do(Unsubscribed(channel_id=channel, user_ids=(ids["ben"],), until=until, name="den"))
    later = await org["ann"].send("den", "tea", "d")
    away = await org["ann"].send("den", "away", "e")
    (await org["ben"].get(f"/users/me/{channel}/topics")).refused()
    assert await topics(org["robo"], channel) == [("away", away), ("tea", later)]
    await join("ben")
    cake = await org["ann"].send("den", "cake", "f")
    assert await topics(org["ben"], channel) == [("cake", cake), ("tea", tea)]


async def test_received_topics_are_looked_up_in_steps(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many topics the channel has, and however often the reader has left it."""
    channel = await org.channel("den", "ann", is_private=True, history_public=False)
    ben = org["ben"].user_id
    expected: dict[str, int] = {}
    for stay in range(3):
        await org.do(
            Subscribed(
                channel_id=channel,
                colors={ben: "#76ce90"},
                after=org.node.state.last_message_id,
            )
        )
        for number in range(stay, 6):
            expected[f"{number}"] = await org["ann"].send("den", f"{number}", "received")
        if stay < 2:
            until = org.node.state.last_message_id
            await org.do(Unsubscribed(channel_id=channel, user_ids=(ben,), until=until, name="den"))
            for number in range(6):
                await org["ann"].send("den", f"{number}", "missed")
    lookups: list[int] = []
    real = topics_store.newest_by_topic

    def counted(
        connection: Connection, channel_id: int, keys: Sequence[str], spans: Any
    ) -> dict[str, int]:
        lookups.append(len(keys) * len(spans))
        return real(connection, channel_id, keys, spans)

    monkeypatch.setattr(topics_store, "newest_by_topic", counted)
    monkeypatch.setattr(reading, "LOOKUPS", 3)
    newest_first = sorted(expected.items(), key=lambda one: -one[1])
    assert await topics(org["ben"], channel) == newest_first
    assert lookups == [3, 3]

    asked: list[Sequence[Any]] = []

    class Counted:
        def __init__(self, connection: Connection) -> None:
            self.dialect, self._query = connection.dialect, connection.query

        def query(self, sql: str, values: Sequence[Any]) -> list[Any]:
            asked.append(values)
            return self._query(sql, values)

    def look(connection: Any) -> dict[str, int]:
        asked.clear()
        return real(Counted(connection), channel, ["5"], ((0, 1), (1, None)))  # type: ignore[arg-type]

    assert await org.node.store.read(look) == {"5": expected["5"]}
    assert len(asked) == 1  # Topics already found aren't looked for in older ranges.


async def test_reading_a_protected_channel_through_a_group_shows_no_topics(
    org: Organization,
) -> None:
    channel = await org.channel(
        "den",
        "ann",
        is_private=True,
        history_public=False,
        can_subscribe_group=SystemGroup.MEMBERS.value,
    )
    await org["ann"].send("den", "tea", "a")
    assert await topics(org["cleo"], channel) == []
    (await org["gus"].get(f"/users/me/{channel}/topics")).refused()


async def test_the_topics_of_an_archived_channel_are_listed(org: Organization) -> None:
    channel = await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "tea", "a")
    assert (await org["ann"].delete(f"/streams/{channel}")).ok
    assert ("tea", sent) in await topics(org["ann"], channel)


async def test_spectators_see_topics_of_web_public_channels(org: Organization) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    plaza = await org.channel("plaza", "ann", is_web_public=True)
    lounge = await org.channel("lounge", "ann")
    sent = await org["ann"].send("plaza", "tea", "a")
    assert await topics(org.nobody, plaza) == [("tea", sent)]
    (await org.nobody.get(f"/users/me/{lounge}/topics")).refused()


async def test_archived_channels_are_closed_to_spectators(org: Organization) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    plaza = await org.channel("plaza", "ann", is_web_public=True)
    sent = await org["ann"].send("plaza", "tea", "a")
    assert (await org["ann"].delete(f"/streams/{plaza}")).ok
    (await org.nobody.get(f"/users/me/{plaza}/topics")).refused()
    (await org.nobody.get(f"/messages/{sent}")).refused()
    around = {"anchor": "newest", "num_before": 10, "num_after": 0}
    for narrow in (
        [["channel", "plaza"], ["channels", "web-public"]],
        [["channels", "web-public"]],
    ):
        reply = await org.nobody.get("/messages", narrow=narrow, **around)
        assert reply.status == 400 or reply.ok["messages"] == []


@pytest.mark.parametrize("channel", ["999", "0", str(2**53)])
async def test_an_unknown_channel_has_no_topics(readonly_org: Organization, channel: str) -> None:
    (await readonly_org["ann"].get(f"/users/me/{channel}/topics")).refused()


# Posting in topics

EMPTY = ("", "(no topic)", "general chat", "  ")


@pytest.mark.parametrize("topic", EMPTY)
@pytest.mark.parametrize(
    ("realm", "channel", "allowed"),
    [
        ("allow_empty_topic", TopicsPolicy.INHERIT, True),
        ("disable_empty_topic", TopicsPolicy.INHERIT, False),
        ("disable_empty_topic", TopicsPolicy.ALLOW_EMPTY, True),
        ("allow_empty_topic", TopicsPolicy.DISABLE_EMPTY, False),
        ("disable_empty_topic", TopicsPolicy.EMPTY_ONLY, True),
    ],
)
async def test_the_policy_decides_whether_a_topic_may_be_empty(
    shared_org: Organization, realm: str, channel: TopicsPolicy, allowed: bool, topic: str
) -> None:
    await shared_org.do(RealmChanged(values={"topics_policy": realm}))
    name = f"lounge {shared_org.node.state.channels.next_id()}"
    channel_id = await shared_org.channel(name, "ann", topics_policy=channel)
    reply = await shared_org["ann"].post(
        "/messages", type="channel", to=name, topic=topic, content="hi"
    )
    if not allowed:
        reply.refused()
        return
    sent = reply.ok["id"]
    assert await topics(shared_org["ann"], channel_id, allow_empty_topic_name=True) == [("", sent)]


async def test_a_channel_with_only_the_empty_topic_has_no_other(org: Organization) -> None:
    await org.channel("lounge", "ann", topics_policy=TopicsPolicy.EMPTY_ONLY)
    (
        await org["ann"].post("/messages", type="channel", to="lounge", topic="tea", content="hi")
    ).refused()


async def test_only_a_channel_without_topics_can_be_limited_to_the_empty_topic(
    org: Organization,
) -> None:
    channel = await org.channel("lounge", "ann")
    await org["ann"].send("lounge", "", "a")
    path = f"/streams/{channel}"
    other = await org.channel("salon", "ann")
    await org["ann"].send("salon", "tea", "a")
    only = {"topics_policy": "empty_topic_only"}
    (await org["ann"].patch(f"/streams/{other}", **only)).refused()
    assert (await org["ann"].patch(path, **only)).ok
    assert (await org["ann"].get(path)).ok["stream"]["topics_policy"] == "empty_topic_only"


async def test_who_can_change_a_channel_s_topic_policy(org: Organization) -> None:
    owners = SystemGroup.OWNERS.value
    await org.do(RealmChanged(values={"can_set_topics_policy_group": owners}))
    for policy in ["allow_empty_topic", "disable_empty_topic", "inherit"]:
        with row(policy):
            mine = {"subscriptions": [{"name": "mine"}], "topics_policy": policy}
            reply = await org["ben"].post("/users/me/subscriptions", **mine)
            assert (reply.status == 200) is (policy == "inherit")
            channel = await org.channel(
                f"den {policy}", can_administer_channel_group=SystemGroup.MEMBERS.value
            )
            (await org["ben"].patch(f"/streams/{channel}", topics_policy=policy)).refused()
            assert (await org["ann"].patch(f"/streams/{channel}", topics_policy=policy)).ok


LENGTHS = [
    ("x" * 60, "x" * 60),
    ("x" * 61, "x" * 57 + "..."),
    ("ä" * 200, "ä" * 57 + "..."),
    ("  tea ", "tea"),
    ("\u2615 tea", "\u2615 tea"),
]
"""A topic as sent and as stored."""


async def test_a_topic_is_cut_at_its_maximum_length(org: Organization) -> None:
    for number, (sent, kept) in enumerate(LENGTHS):
        with row(sent):
            channel = await org.channel(f"lounge {number}", "ann")
            await org["ann"].send(channel, sent, "hi")
            ((name, _),) = await topics(org["ann"], channel)
            assert name == kept


async def test_a_topic_has_no_control_characters(org: Organization) -> None:
    await org.channel("lounge", "ann")
    for topic in ("a\u0007b", "a\nb", "a\u200f\ue000", "a\0b"):
        reply = await org["ann"].post(
            "/messages", type="channel", to="lounge", topic=topic, content="hi"
        )
        assert reply.status == 400, reply.body


async def test_starting_a_topic_needs_two_permissions_and_continuing_it_one(
    org: Organization,
) -> None:
    owners, members = SystemGroup.OWNERS.value, SystemGroup.MEMBERS.value
    channel = await org.channel("lounge", "ann", "ben", "gus", can_create_topic_group=owners)

    async def send(who: str, topic: str) -> int:
        sent = {"type": "channel", "to": "lounge", "topic": topic, "content": "hi"}
        return (await org[who].post("/messages", **sent)).status

    assert await send("ben", "tea") == 400
    assert await send("ann", "tea") == 200
    assert await send("ben", "TEA") == 200
    assert await send("gus", "tea") == 200
    path = f"/streams/{channel}"
    edit = {"can_create_topic_group": {"new": 7}, "can_send_message_group": {"new": members}}
    assert (await org["ann"].patch(path, **edit)).ok
    assert await send("gus", "tea") == 400
    assert await send("gus", "cake") == 400
    assert await send("ben", "cake") == 200


async def test_a_topic_with_invisible_characters_cannot_be_started_but_continued(
    org: Organization,
) -> None:
    ann = org["ann"]
    await org.channel("lounge", "ann")
    said = {"type": "stream", "to": "lounge", "content": "hello"}
    for topic in ("pl\u202eans", "pl\u200bans"):
        (await ann.post("/messages", topic=topic, **said)).refused("BAD_REQUEST")
        message_id = await ann.send("lounge", "plans", "hello")
        (await ann.patch(f"/messages/{message_id}", topic=topic)).refused("BAD_REQUEST")
    await ann.send("lounge", "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f", "hello")
