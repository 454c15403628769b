"""The events of a client, and their IDs."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given

from tertulia.delivery.encoder import CachedEntry
from tertulia.service.config import Config
from tests.property.histories import History, move_messages, on_a_new_database
from tests.property.test_state import both, examples, new_database, seeds
from tests.reference_client import MODERN, WAYS, ReferenceClient, differences
from tests.support import Listener, Organization, Person, open_organization, until

VIEWERS = ("ann", "cleo", "gus", "robo")
"""An owner, a person whose role changes, a guest, and a bot."""


@pytest.mark.parametrize("way", WAYS)
@both
@examples(2)
@given(seed=seeds)
def test_a_snapshot_and_later_events_equal_a_later_snapshot(
    request: pytest.FixtureRequest, kind: str, way: str, seed: int
) -> None:
    async def check(history: History, config: Config) -> None:
        clients = [await ReferenceClient.begin(history.org[v], WAYS[way]) for v in VIEWERS]
        for _ in range(3):
            await history.run(12)
            for viewer, client in zip(VIEWERS, clients, strict=True):
                await client.catch_up()
                fresh = await ReferenceClient.begin(history.org[viewer], WAYS[way])
                assert not differences(client.shown(), fresh.shown()), viewer

    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check)


@both
@examples(3)
@given(seed=seeds)
def test_reactions_and_widgets_from_events_equal_fetched_ones(
    request: pytest.FixtureRequest, kind: str, seed: int
) -> None:
    """Reactions in the order in which people added them, and the data of widgets."""

    async def check(history: History, config: Config) -> None:
        clients = [await ReferenceClient.begin(history.org[v], WAYS["modern"]) for v in VIEWERS]
        for _ in range(3):
            await history.run(20)
            for viewer, client in zip(VIEWERS, clients, strict=True):
                await client.catch_up()
                await assert_hanging(client, viewer)

    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check)


@both
@examples(4)
@given(seed=seeds)
def test_channel_messages_from_events_equal_fetched_ones(
    request: pytest.FixtureRequest, kind: str, seed: int
) -> None:
    """Sent and moved messages: where they are and what they contain."""

    async def check(history: History, config: Config) -> None:
        readers = [await Reader.begin(history.org[viewer]) for viewer in VIEWERS]
        for _ in range(4):
            for _ in range(8):
                await history.step()
                await move_messages(history)
            for viewer, reader in zip(VIEWERS, readers, strict=True):
                await reader.catch_up()
                assert reader.held == await reader.fetched(), (viewer, history.done)

    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check)


class Reader:
    """A client that keeps the messages of its channels. Events tell it about changes; it fetches
    the earlier messages of a channel that it joins."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.channels = {channel["stream_id"] for channel in listener.data["subscriptions"]}
        self.held: dict[int, tuple[int, str, str]] = {}
        """Channel, topic, and content."""
        self._unknown: set[int] = set()
        """Channels whose messages must be fetched."""

    @classmethod
    async def begin(cls, person: Person) -> "Reader":
        reader = cls(await person.register(client_capabilities=MODERN))
        reader.held = await reader.fetched()
        return reader

    async def fetched(self) -> dict[int, tuple[int, str, str]]:
        found = {}
        for channel_id in self.channels:
            answer = await self.listener.person.get(
                "/messages",
                anchor="newest",
                num_before=1000,
                num_after=0,
                narrow=[{"operator": "channel", "operand": channel_id}],
                apply_markdown=False,
                allow_empty_topic_name=True,
            )
            for one in answer.ok["messages"]:
                found[one["id"]] = (one["stream_id"], one["subject"], one["content"])
        return found

    async def catch_up(self) -> None:
        for event in await everything(self.listener):
            self._take(event)
        if self._unknown:
            for message_id, one in (await self.fetched()).items():
                if one[0] in self._unknown:
                    self.held[message_id] = one
            self._unknown.clear()

    def _take(self, event: dict[str, Any]) -> None:
        match event["type"], event.get("op"):
            case "message", _ if "stream_id" in event["message"]:
                one = event["message"]
                self.held[one["id"]] = (one["stream_id"], one["subject"], one["content"])
            case "update_message", _:
                self._change(event)
            case "delete_message", _:
                for message_id in event["message_ids"]:
                    self.held.pop(message_id, None)
            case "subscription", "add":
                ids = {channel["stream_id"] for channel in event["subscriptions"]}
                self.channels |= ids
                self._unknown |= ids
            case "subscription", "remove":
                self._lose({channel["stream_id"] for channel in event["subscriptions"]})
            case "stream", "delete":
                self._lose(set(event["stream_ids"]))
            case "stream", "update":
                # Its history may have become visible, or messages from before it joined may have
                # become hidden: this event is all that clients are told.
                self._unknown |= {event["stream_id"]} & self.channels
                self._lose_messages({event["stream_id"]})

    def _change(self, event: dict[str, Any]) -> None:
        if "content" in event and event["message_id"] in self.held:
            place = self.held[event["message_id"]][:2]
            self.held[event["message_id"]] = (*place, event["content"])
        if "propagate_mode" not in event:
            return
        channel_id = event.get("new_stream_id", event["stream_id"])
        topic = event.get("subject", event["orig_subject"])
        for message_id in event["message_ids"]:
            if channel_id not in self.channels:
                self.held.pop(message_id, None)
            elif message_id in self.held:
                self.held[message_id] = (channel_id, topic, self.held[message_id][2])
            else:
                # It could have read them before, in a channel that it hasn't joined.
                self._unknown.add(channel_id)

    def _lose(self, channel_ids: set[int]) -> None:
        self.channels -= channel_ids
        self._unknown -= channel_ids
        self._lose_messages(channel_ids)

    def _lose_messages(self, channel_ids: set[int]) -> None:
        self.held = {i: one for i, one in self.held.items() if one[0] not in channel_ids}


async def test_clients_are_told_when_a_channel_s_history_becomes_private(org: Organization) -> None:
    """By the channel's event alone: a client with older messages fetches them again."""
    ann, ben = org["ann"], org["ben"]
    channel_id = await org.channel("club", "ann")
    await ann.send("club", "", "before")
    await ann.post(
        "/users/me/subscriptions", subscriptions=[{"name": "club"}], principals=[ben.user_id]
    )
    reader = await Reader.begin(ben)
    assert "before" in {content for _, _, content in reader.held.values()}
    hidden = {"is_private": True, "history_public_to_subscribers": False}
    (await ann.patch(f"/streams/{channel_id}", **hidden)).ok
    await reader.catch_up()
    assert reader.held == await reader.fetched()
    assert "before" not in {content for _, _, content in reader.held.values()}


async def assert_hanging(client: ReferenceClient, viewer: str) -> None:
    page = await client.listener.person.get("/messages", message_ids=list(client.hanging))
    for message in page.ok["messages"]:
        held = client.hanging[message["id"]]
        for reaction in message["reactions"]:
            del reaction["user"]  # The account's current name.
        for part in ("reactions", "submessages"):
            assert not differences(held[part], message[part], part), (viewer, message["id"])


@both
@examples(4)
@given(seed=seeds)
def test_no_event_contains_a_message_that_cannot_be_fetched(
    request: pytest.FixtureRequest, kind: str, seed: int
) -> None:
    """Polled immediately, and later."""

    async def check(history: History, config: Config) -> None:
        prompt = [await history.org[v].register(all_public_streams=v == "ann") for v in VIEWERS]
        knowing = {"server_extensions": True}
        late = [await history.org[v].register(client_capabilities=knowing) for v in VIEWERS]
        for number in range(40):
            await history.step()
            for listener in [*prompt, *(late if number % 10 == 9 else [])]:
                for event in await listener.events():
                    of_message = event.get("message", {}).get("id")
                    of_message = event.get("pin", {}).get("message_id", of_message)
                    message_id = event.get("message_id", of_message)
                    if event["type"] in TELLING:
                        reply = await listener.person.get(f"/messages/{message_id}")
                        assert reply.status == 200, (message_id, reply.body)

    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check)


TELLING = {"message", "update_message", "reaction", "submessage", "pins"}
"""Events about existing messages."""


@both
@examples(2)
@given(seed=seeds)
def test_a_view_group_s_shared_events_equal_each_member_s_own(
    request: pytest.FixtureRequest, kind: str, seed: int
) -> None:
    """Polled immediately, and later."""

    async def check(history: History, config: Config) -> None:
        node = history.org.node
        delivery, encoder = node.delivery, node.delivery.encoder
        for viewer in (*VIEWERS, "ben"):
            for look in LOOKS:
                if viewer != "gus" or "all_public_streams" not in look:
                    await history.org[viewer].register(**look)
        for _ in range(30):
            await history.step()
            for entry in [cached.entry for cached in delivery.recent][-10:]:
                # An event that was encoded earlier may have the state of that time.
                posted = CachedEntry(entry)
                count = entry.seq % 2 * 1000
                for queue in delivery.queues.all():
                    told = encoder.events_of(posted, count)(queue.record)
                    assert told == encoder.events_of(CachedEntry(entry))(queue.record)

    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check)


LOOKS: list[dict[str, Any]] = [
    {},
    {"apply_markdown": True, "client_gravatar": True},
    {"all_public_streams": True},
    {"narrow": [["channel", "lounge"]]},
    {"event_types": ["message"], "client_capabilities": {"empty_topic_name": True}},
]
"""The options of queues."""


@both
@examples(2)
@given(seed=seeds)
def test_event_ids_increase_across_restarts(
    request: pytest.FixtureRequest, kind: str, seed: int
) -> None:
    """Nothing is lost or delivered twice, and events equal those of a queue without restarts."""

    async def check(history: History, config: Config) -> None:
        steady = await history.org["ann"].register()
        moving = await history.org["ann"].register()
        events: list[dict[str, Any]] = []
        expected: list[dict[str, Any]] = []
        for _ in range(2):
            await history.run(6)
            # (`Listener.events` checks each ID against the previous one. Late polls may have fewer
            # events if access was lost in the meantime, so both are polled at the same times.)
            events += await everything(moving)
            expected += await everything(steady)
            await history.run(6)
            expected += await everything(steady)
            async with open_organization(config) as later:
                moved = Listener(later["ann"], moving.queue_id, moving.last_event_id, {})
                await later["ann"].post("/users/me/presence", status="active", ping_only=True)
                events += await everything(moved)
                moving.last_event_id = moved.last_event_id
            await history.org.node.log.catch_up()
        assert written(events) == written(expected)

    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check)


async def everything(listener: Listener) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while events := await listener.events():
        found += events
    return found


def written(events: list[dict[str, Any]]) -> list[int]:
    """The messages in the events."""
    return [event["message"]["id"] for event in events if event["type"] == "message"]


@pytest.mark.usefixtures("several_nodes")
async def test_a_queue_can_be_polled_at_any_node(org: Organization, config: Config) -> None:
    """Alternately, while both nodes send messages, typing notifications, and presence."""
    await org.channel("lounge", "ann", "ben")
    async with AsyncExitStack() as stack:
        nodes = [org, await stack.enter_async_context(open_organization(config))]
        ben = await org["ben"].register()
        sent: list[int] = []
        events: list[dict[str, Any]] = []
        for turn in range(30):
            sender, reader = nodes[turn % 3 % 2], nodes[turn % 2]
            to = [org["ben"].user_id]
            await sender["ann"].post("/typing", op="start", to=to)
            sent.append(await sender["ann"].send("lounge", "t", f"m{turn}"))
            listener = Listener(reader["ben"], ben.queue_id, ben.last_event_id, {})
            wanted = sent[-1]
            while not events or written(events)[-1:] != [wanted]:
                events += await listener.events(block=True)
            ben.last_event_id = listener.last_event_id
        ids = [event["id"] for event in events]
        assert ids == sorted(set(ids))
        assert written(events) == sent


@pytest.mark.usefixtures("several_nodes")
async def test_a_message_sent_at_one_node_wakes_a_poll_at_another(
    org: Organization, config: Config
) -> None:
    await org.channel("lounge", "ann", "ben")
    async with open_organization(config) as other:
        ben = await other["ben"].register()
        poll = asyncio.create_task(ben.events(block=True))
        await until(lambda: other.node.delivery.waiting == 1)
        sent = await org["ann"].send("lounge", "t", "hi")
        assert written(await poll) == [sent]
        # A queue deleted at one node is gone at the other, whatever it has cached.
        assert (await org["ben"].delete("/events", queue_id=ben.queue_id)).ok
        await until(lambda: other.node.delivery.queues.get(ben.queue_id) is None)
        reply = await other["ben"].get("/events", queue_id=ben.queue_id, last_event_id=-1)
        reply.refused("BAD_EVENT_QUEUE_ID")
