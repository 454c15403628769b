"""Requests that change very many subscriptions are processed in parts, so that none holds the event
loop for long."""

from collections import Counter
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from tertulia.domain.channels import subscription_changes, subscriptions
from tertulia.model.changes import StatusChanged, Subscribed, Unsubscribed
from tertulia.model.channels import Subscription
from tertulia.model.errors import Refused
from tertulia.service import bulk_subscriptions
from tertulia.store import log_entries
from tests.support import Organization
from tests.wire.sample_organization import direct_messages

PEOPLE = ("ann", "ben", "cleo", "gus", "robo")
Data = dict[str, Any]


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "BATCH_SUBSCRIPTIONS", 2)
    monkeypatch.setattr(subscriptions, "BATCH_CHANNELS", 2)


def request(org: Organization, names: list[str], people: tuple[str, ...] = PEOPLE) -> Data:
    return {
        "subscriptions": [{"name": name} for name in names],
        "principals": [org[who].user_id for who in people],
    }


async def largest_part(org: Organization) -> int:
    """The largest number of people in one change."""
    entries = await org.node.store.read(lambda c: log_entries.entries(c, 0, 10_000))
    sizes = [0]
    for entry in entries:
        if isinstance(entry.change, Subscribed):
            sizes.append(len(entry.change.colors))
        elif isinstance(entry.change, Unsubscribed):
            sizes.append(len(entry.change.user_ids))
    return max(sizes)


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.usefixtures("in_parts")
async def test_parts_give_the_same_result_as_the_whole(org: Organization, private: bool) -> None:
    ann = org["ann"]
    (await ann.post("/users/me/subscriptions", **request(org, ["there"], ("cleo",)))).ok
    listener = await org["ben"].register(event_types=["subscription"])
    before = len(await direct_messages(org["cleo"]))
    names = ["there", "new", "newer"]
    answer = (
        await ann.post(
            "/users/me/subscriptions", **request(org, names), invite_only=private, announce=True
        )
    ).ok
    ids = {who: str(org[who].user_id) for who in PEOPLE}
    assert answer["already_subscribed"] == {ids["cleo"]: ["there"]}
    for who in PEOPLE:
        expected = ["new", "newer"] if who == "cleo" else names
        assert answer["subscribed"][ids[who]] == expected
    assert answer["new_subscription_messages_sent"] is True
    assert len(await direct_messages(org["cleo"])) == before + 1
    for name in names:
        channel = org.node.state.channel_named(name)
        assert channel is not None
        assert len(org.node.state.subscribers(channel.id)) == len(PEOPLE)
        assert channel.is_private is (private and name != "there")
    added = [e["subscriptions"] for e in await listener.events() if e.get("op") == "add"]
    assert sorted(one["name"] for some in added for one in some) == sorted(names)
    again = (await ann.post("/users/me/subscriptions", **request(org, names))).ok
    assert again["subscribed"] == {}

    gone = {**request(org, []), "subscriptions": [*names, "there"]}
    removal = (await ann.delete("/users/me/subscriptions", **gone)).ok
    assert sorted(removal["removed"]) == sorted(names)
    assert removal["not_removed"] == []
    again = (await ann.delete("/users/me/subscriptions", **gone)).ok
    assert (again["removed"], sorted(again["not_removed"])) == ([], sorted(names))
    assert await largest_part(org) == 2


@pytest.mark.usefixtures("in_parts")
async def test_a_channel_is_created_with_very_many_subscribers(org: Organization) -> None:
    people = [org[who].user_id for who in PEOPLE if who != "ben"]
    created = {"name": "den", "subscribers": people, "invite_only": True}
    answer = (await org["ben"].post("/channels/create", **created)).ok
    assert sorted(org.node.state.subscribers(answer["id"])) == sorted(people)
    (await org["ben"].post("/channels/create", **created)).refused("CHANNEL_ALREADY_EXISTS", 409)


@pytest.mark.usefixtures("in_parts")
async def test_someone_is_subscribed_to_and_unsubscribed_from_many_channels(
    org: Organization,
) -> None:
    names = [f"channel {number}" for number in range(5)]
    cleo = org["cleo"]
    wanted = [{"name": name} for name in names]
    answer = (await cleo.post("/users/me/subscriptions", subscriptions=wanted)).ok
    assert answer["subscribed"] == {str(cleo.user_id): names}
    shown = (await cleo.get("/users/me/subscriptions")).ok["subscriptions"]
    assert len({one["color"] for one in shown}) == len(names)
    removal = (await cleo.delete("/users/me/subscriptions", subscriptions=names)).ok
    assert removal == {**removal, "removed": names, "not_removed": []}


@pytest.mark.usefixtures("in_parts")
async def test_a_refusal_of_any_part_comes_before_the_first(org: Organization) -> None:
    await org.channel("vault", "ann", is_private=True)
    head = org.node.log.durable
    for names, people in (
        (["a", "b", "c", "vault"], PEOPLE),
        (["a", "b", "c", "x" * 500], PEOPLE),
        (["pay", "b", "c", "\u0440\u0430\u0443"], PEOPLE),
        (["a", "b", "c"], (*PEOPLE, "nobody")),
    ):
        wanted = request(org, names, tuple(who for who in people if who != "nobody"))
        if "nobody" in people:
            wanted["principals"].append(99999)
        (await org["ben"].post("/users/me/subscriptions", **wanted)).refused()
    everybody = {"principals": [org[who].user_id for who in PEOPLE]}
    await org.channel("lounge", *PEOPLE)
    head = org.node.log.durable
    for names in (["lounge", "nowhere"], ["lounge", "vault"]):
        reply = await org["ben"].delete("/users/me/subscriptions", subscriptions=names, **everybody)
        reply.refused()
    assert org.node.log.durable == head
    wanted = request(org, ["lounge 2", "lounge 3", "vault"])
    some = await org["ben"].post(
        "/users/me/subscriptions", **wanted, authorization_errors_fatal=False
    )
    assert some.ok["unauthorized"] == ["vault"]
    assert len(some.ok["subscribed"]) == len(PEOPLE)


@pytest.mark.usefixtures("in_parts")
async def test_a_conflicting_change_stops_the_rest_and_the_response_says_so(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any, **__: Any) -> None:
        raise Refused("User 7 doesn't exist.")

    with monkeypatch.context() as patch:
        patch.setattr(subscriptions, "subscribe_more", gone)
        reply = await org["ann"].post("/users/me/subscriptions", **request(org, ["a", "b"]))
    assert reply.refused("BAD_REQUEST")["msg"].startswith("User 7 doesn't exist. Earlier parts")
    state = org.node.state
    channel = state.channel_named("a")
    assert channel is not None
    assert len(state.subscribers(channel.id)) == 2
    assert state.channel_named("b") is None
    # Repeating the request completes it.
    assert (await org["ann"].post("/users/me/subscriptions", **request(org, ["a", "b"]))).ok
    assert len(state.subscribers(channel.id)) == len(PEOPLE)


@pytest.mark.usefixtures("in_parts")
async def test_after_each_part_others_get_the_same_amount_of_time(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    times = count(step=3)
    monkeypatch.setattr(org.node.log, "elapsed", lambda: next(times) / 100)

    async def pause(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
            # Someone else's command is decided before the next part.
            (await org["ben"].post("/users/me/status", status_text=str(len(pauses)))).ok

    monkeypatch.setattr(bulk_subscriptions, "asyncio", SimpleNamespace(sleep=pause))
    names = ["a", "b", "c"]
    (await org["ann"].post("/users/me/subscriptions", **request(org, names))).ok
    # Three parts for each channel: five people, two at a time.
    assert len(pauses) == 9
    assert all(0 < one <= bulk_subscriptions.LONGEST_PAUSE for one in pauses)
    gone = {**request(org, []), "subscriptions": names}
    (await org["ann"].delete("/users/me/subscriptions", **gone)).ok
    assert len(pauses) == 18
    entries = await org.node.store.read(lambda c: log_entries.entries(c, 0, 10_000))
    assert sum(isinstance(one.change, StatusChanged) for one in entries) == len(pauses)


async def test_a_color_is_chosen_without_scanning_all_subscriptions(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleo, looks = org["cleo"], 0

    def color(subscription: Subscription) -> str:
        nonlocal looks
        looks += 1
        return subscription.color

    every = len(subscription_changes.COLORS)
    for first in range(0, 5 * every, every):
        new = [{"name": f"channel {number}"} for number in range(first, first + every)]
        (await cleo.post("/users/me/subscriptions", subscriptions=new)).ok
    monkeypatch.setattr(subscription_changes, "_COLOR", color)
    subscription_changes.color_for(org.node.state, cleo.user_id)
    assert looks == every
    shown = (await cleo.get("/users/me/subscriptions")).ok["subscriptions"]
    # Each color is used equally often.
    assert set(Counter(one["color"] for one in shown).values()) == {5}
