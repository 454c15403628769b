"""Events are only about what a client knows from what it was told before, however late it polls."""

from typing import Any

import pytest
from hypothesis import given

from tertulia.model.groups import SystemGroup
from tertulia.service.config import Config
from tests.property.histories import History, on_a_new_database
from tests.property.test_state import both, examples, new_database, seeds
from tests.reference_client import MODERN, WAYS, ReferenceClient
from tests.support import Organization, open_organization

VIEWERS = ("ann", "ben", "cleo", "gus", "robo")


class StrictClient(ReferenceClient):
    """A client that fails on an event about something that it doesn't know."""

    def take(self, event: dict[str, Any]) -> None:
        unknown = list(self._unknown_in(event))
        assert not unknown, (self.listener.person.email, unknown, event)
        super().take(event)

    def _unknown_in(self, event: dict[str, Any]) -> list[str]:
        match event["type"], event.get("op"):
            case "realm_user", "update" | "remove":
                return self._missing(self.users, [event["person"]["user_id"]])
            case "realm_bot", "update" | "delete":
                return self._missing(self.bots, [event["bot"]["user_id"]])
            case "user_status" | "presence", _ if "user_id" in event:
                known = self.users.keys() | self.servers_own
                return self._missing(known, [event["user_id"]])
            case "user_group", op if op != "add":
                return self._missing(self.groups, [event["group_id"]])
            case "stream", "delete":
                return self._missing(self._every_channel(), event["stream_ids"])
            case "stream", "update":
                return self._missing(self._every_channel(), [event["stream_id"]])
            case "user_topic", _:
                return self._missing(self._every_channel(), [event["stream_id"]])
            case "message", _ if event["message"]["type"] == "stream":
                return self._missing(self._every_channel(), [event["message"]["stream_id"]])
            case "subscription", "add":
                added = [one["stream_id"] for one in event["subscriptions"]]
                return self._missing(self._every_channel(), added)
            case "subscription", "remove":
                left = [one["stream_id"] for one in event["subscriptions"]]
                return self._missing(self.subscriptions, left)
            case "subscription", "update":
                return self._missing(self.subscriptions, [event["stream_id"]])
            case "subscription", _:
                return self._missing(self._every_channel(), event["stream_ids"])
            case _:
                return []  # Others are taken by `ReferenceClient`, which fails by itself.

    def _every_channel(self) -> set[int]:
        return {*self.channels, *self.others, *self.subscriptions}

    def _missing(self, known: Any, ids: list[int]) -> list[str]:
        return [str(one) for one in ids if one not in known]


@pytest.mark.parametrize("way", WAYS)
@both
@examples(4)
@given(seed=seeds)
def test_late_clients_get_events_only_about_what_they_know(
    request: pytest.FixtureRequest, kind: str, way: str, seed: int
) -> None:
    async def check(history: History, config: Config) -> None:
        clients = [await StrictClient.begin(history.org[v], WAYS[way]) for v in VIEWERS]
        for _ in range(50):
            await history.step()
            for client in clients:
                account = history.state.users[client.user_id]
                if account.is_active and history.rng.random() < 0.1:
                    await client.catch_up()

    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check)


@pytest.mark.parametrize("way", WAYS)
@both
@examples(2)
@given(seed=seeds)
def test_late_clients_get_events_only_about_what_they_know_after_a_restart(
    request: pytest.FixtureRequest, kind: str, way: str, seed: int
) -> None:
    """Whenever clients poll, the node is a new one, which remembers nothing."""

    async def check(history: History, config: Config) -> None:
        clients = [await StrictClient.begin(history.org[v], WAYS[way]) for v in VIEWERS]
        for _ in range(5):
            await history.run(10)
            async with open_organization(config) as later:
                for viewer, client in zip(VIEWERS, clients, strict=True):
                    account = later.node.state.users[client.user_id]
                    if account.is_active and history.rng.random() < 0.6:
                        client.listener.person = later[viewer]
                        await client.catch_up()

    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check)


async def test_a_former_guest_gets_channels_before_their_changes_after_a_restart(
    org: Organization, config: Config
) -> None:
    team = await org.channel("team", "ann")
    gus = await strict_client(org, "gus")
    assert team not in gus.channels
    (await org["ann"].patch(f"/streams/{team}", description="Plans")).ok
    (await org["ann"].patch(f"/users/{org['gus'].user_id}", role=400)).ok
    async with open_organization(config) as later:
        gus.listener.person = later["gus"]
        await gus.catch_up()
        assert gus.channels[team]["description"] == "Plans"


async def test_a_former_guest_gets_accounts_before_their_changes_after_a_restart(
    org: Organization, config: Config
) -> None:
    await org.change_realm(can_access_all_users_group=SystemGroup.MEMBERS.value)
    gus = await strict_client(org, "gus")
    cleo = org["cleo"].user_id
    assert cleo not in gus.users
    (await org["cleo"].post("/users/me/status", status_text="busy")).ok
    (await org["ann"].patch(f"/users/{org['gus'].user_id}", role=400)).ok
    async with open_organization(config) as later:
        gus.listener.person = later["gus"]
        await gus.catch_up()
        assert cleo in gus.users


async def strict_client(org: Organization, who: str) -> StrictClient:
    client = await StrictClient.begin(org[who], {"client_capabilities": MODERN})
    assert isinstance(client, StrictClient)
    return client


async def test_a_bot_that_was_given_away_before_a_poll_is_not_mentioned(org: Organization) -> None:
    ben, cleo = await strict_client(org, "ben"), await strict_client(org, "cleo")
    bot = (await org["ben"].post("/bots", full_name="Hal", short_name="hal")).ok["user_id"]
    (await org["ann"].patch(f"/bots/{bot}", bot_owner_id=org["cleo"].user_id)).ok
    events = await ben.catch_up()
    assert [one["type"] for one in events if one["type"].startswith("realm_bot")] == []
    await cleo.catch_up()
    assert bot in cleo.bots
    # Away and back: nothing, or whole.
    for owner in ("ben", "cleo", "ben"):
        (await org["ann"].patch(f"/bots/{bot}", bot_owner_id=org[owner].user_id)).ok
    await ben.catch_up()
    await cleo.catch_up()
    assert (bot in ben.bots, bot in cleo.bots) == (True, False)


async def test_a_channel_that_came_and_went_before_a_poll_is_not_mentioned(
    org: Organization,
) -> None:
    ben = await strict_client(org, "ben")
    team = await org.channel("team", "ann", is_private=True)
    for _ in range(2):
        await org["ann"].post(
            "/users/me/subscriptions",
            subscriptions=[{"name": "team"}],
            principals=[org["ben"].user_id],
        )
        (
            await org["ann"].delete(
                "/users/me/subscriptions", subscriptions=["team"], principals=[org["ben"].user_id]
            )
        ).ok
    events = await ben.catch_up()
    assert [one for one in events if one["type"] in {"stream", "subscription"}] == []
    assert team not in ben.channels


async def test_of_several_channels_only_known_ones_are_mentioned(org: Organization) -> None:
    ben = await strict_client(org, "ben")
    lounge = await org.channel("lounge", "ann", "ben", "cleo")
    await ben.catch_up()
    team = await org.channel("team", "ann", "cleo", is_private=True)
    (await org["ann"].delete(f"/users/{org['cleo'].user_id}")).ok
    (await org["ann"].patch(f"/streams/{team}", is_private=False)).ok
    events = [one for one in await ben.catch_up() if one.get("op") == "peer_remove"]
    assert [one["stream_ids"] for one in events] == [[lounge]]
    assert team in ben.channels


async def test_a_new_administrator_gets_bots_before_their_changes(org: Organization) -> None:
    cleo = await strict_client(org, "cleo")
    bot = (await org["ben"].post("/bots", full_name="Hal", short_name="hal")).ok["user_id"]
    (await org["ben"].patch(f"/bots/{bot}", default_all_public_streams=True)).ok
    (await org["ann"].patch(f"/users/{org['cleo'].user_id}", role=200)).ok
    await cleo.catch_up()
    assert bot in cleo.bots


async def test_a_client_that_lost_a_response_gets_the_loss_again(org: Organization) -> None:
    ben = await strict_client(org, "ben")
    bot = (await org["ben"].post("/bots", full_name="Hal", short_name="hal")).ok["user_id"]
    await ben.catch_up()
    (await org["ann"].patch(f"/bots/{bot}", bot_owner_id=org["cleo"].user_id)).ok
    await org["ann"].post("/users/me/status", status_text="busy")
    cursor = ben.listener.last_event_id
    for _ in range(2):
        ben.listener.last_event_id = cursor
        events = await ben.listener.events()
        assert [one["op"] for one in events if one["type"] == "realm_bot"] == ["delete"]
