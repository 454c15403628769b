"""Reactions to messages."""

import asyncio
from typing import Any

import pytest

from tertulia.domain.messages import reactions as reactions_domain
from tertulia.model.changes import RealmChanged, Subscribed, Unsubscribed
from tertulia.service.config import Config
from tests.support import Organization, Person, open_organization, row
from tests.wire.sample_organization import LIMITED
from tests.wire.test_custom_emoji import add_emoji

pytestmark = pytest.mark.usefixtures("no_logged_errors")

OCTOPUS = {"emoji_name": "octopus", "emoji_code": "1f419", "reaction_type": "unicode_emoji"}


async def react(who: Person, message_id: int, **emoji: Any) -> None:
    assert (await who.post(f"/messages/{message_id}/reactions", **emoji)).ok


async def reactions(who: Person, message_id: int) -> list[dict[str, Any]]:
    """The message's reactions, without the accounts themselves."""
    found = (await who.get(f"/messages/{message_id}")).ok["message"]["reactions"]
    return [{name: value for name, value in one.items() if name != "user"} for one in found]


async def test_a_message_describes_who_reacted_for_clients_that_need_it(
    org: Organization,
) -> None:
    """A guest who may not see the account learns only that there is one."""
    await org.channel("lounge", "ann", "ben", "gus")
    sent = await org["ann"].send("lounge", "t", "x")
    await react(org["ben"], sent, emoji_name="octopus")
    ben = org["ben"].user_id
    (await org["ann"].patch("/realm", can_access_all_users_group={"new": 6})).ok
    await org["ben"].delete("/users/me/subscriptions", subscriptions=["lounge"])

    for viewer, expected in (
        ("ann", {"user_id": ben, "email": "ben@example.com", "full_name": "Ben"}),
        ("gus", {"user_id": ben, "email": f"user{ben}@chat.test", "full_name": "Unknown user"}),
    ):
        message = (await org[viewer].get(f"/messages/{sent}")).ok["message"]
        assert message["reactions"][0]["user"] == expected, viewer


@pytest.fixture(scope="module")
async def kept_lounge(shared_org: Organization) -> Organization:
    """A channel, an emoji, and a deactivated one, for tests that send their own messages."""
    await shared_org.channel("lounge", "ann", "ben")
    await add_emoji(shared_org["ann"], "gopher")
    await add_emoji(shared_org["ann"], "gone")
    assert (await shared_org["ann"].delete("/realm/emoji/gone")).ok
    return shared_org


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"emoji_name": "octopus"}, OCTOPUS),
        ({"emoji_name": "octopus", "emoji_code": "1f419"}, OCTOPUS),
        ({"emoji_name": "octopus", "reaction_type": "unicode_emoji"}, OCTOPUS),
        (OCTOPUS, OCTOPUS),
        ({"emoji_name": "+1"}, {**OCTOPUS, "emoji_name": "+1", "emoji_code": "1f44d"}),
        (
            {"emoji_name": "thumbs_up"},
            {**OCTOPUS, "emoji_name": "thumbs_up", "emoji_code": "1f44d"},
        ),
        ({"emoji_name": "thumbsup"}, {**OCTOPUS, "emoji_name": "+1", "emoji_code": "1f44d"}),
        # A name that now belongs to another emoji, with its earlier code.
        (
            {"emoji_name": "x", "emoji_code": "274c"},
            {**OCTOPUS, "emoji_name": "cross_mark", "emoji_code": "274c"},
        ),
        ({"emoji_name": "heart"}, {**OCTOPUS, "emoji_name": "heart", "emoji_code": "2764"}),
        ({"emoji_name": "smile"}, {**OCTOPUS, "emoji_name": "smile", "emoji_code": "1f642"}),
        ({"emoji_name": "tada"}, {**OCTOPUS, "emoji_name": "tada", "emoji_code": "1f389"}),
        (
            {"emoji_name": "gopher"},
            {"emoji_name": "gopher", "emoji_code": "1", "reaction_type": "realm_emoji"},
        ),
        (
            {"emoji_name": "gopher", "emoji_code": "1", "reaction_type": "realm_emoji"},
            {"emoji_name": "gopher", "emoji_code": "1", "reaction_type": "realm_emoji"},
        ),
        (
            {"emoji_name": "zulip"},
            {"emoji_name": "zulip", "emoji_code": "zulip", "reaction_type": "zulip_extra_emoji"},
        ),
        (
            {"emoji_name": "zulip", "emoji_code": "zulip", "reaction_type": "zulip_extra_emoji"},
            {"emoji_name": "zulip", "emoji_code": "zulip", "reaction_type": "zulip_extra_emoji"},
        ),
        (
            {"emoji_name": "zulip", "emoji_code": "zulip", "reaction_type": "service_extra_emoji"},
            {"emoji_name": "zulip", "emoji_code": "zulip", "reaction_type": "service_extra_emoji"},
        ),
    ],
)
async def test_an_emoji_can_be_given_in_many_forms(
    kept_lounge: Organization, asked: dict[str, str], expected: dict[str, str]
) -> None:
    """By name, or with code and type. The type of an extra emoji has its earlier name, too."""
    sent = await kept_lounge["ann"].send("lounge", "t", "x")
    listener = await kept_lounge["ann"].register(event_types=["reaction"])
    await react(kept_lounge["ben"], sent, **asked)
    ben = kept_lounge["ben"].user_id
    assert await reactions(kept_lounge["ann"], sent) == [{**expected, "user_id": ben}]
    (event,) = await listener.events()
    assert {name: event[name] for name in expected} == expected
    assert (event["op"], event["message_id"], event["user_id"]) == ("add", sent, ben)
    assert event["user"] == {"user_id": ben, "email": "ben@example.com", "full_name": "Ben"}


@pytest.mark.parametrize(
    "asked",
    [
        {"emoji_name": "no_such_emoji"},
        {"emoji_name": ""},
        {"emoji_name": "x" * 5000},
        {"emoji_name": "🐙"},
        {"emoji_name": "OCTOPUS"},
        {"emoji_name": "octopus", "emoji_code": "1f44d"},
        {"emoji_name": "octopus", "emoji_code": ""},
        {"emoji_name": "octopus", "emoji_code": "not hex"},
        {"emoji_name": "octopus", "emoji_code": "1f419", "reaction_type": "realm_emoji"},
        {"emoji_name": "octopus", "emoji_code": "1f419", "reaction_type": "extra"},
        {"emoji_name": "octopus", "reaction_type": ""},
        {"emoji_name": "octopus", "reaction_type": "zulip_extra_emoji"},
        {"emoji_name": "zulip", "emoji_code": "1", "reaction_type": "zulip_extra_emoji"},
        {"emoji_name": "gopher", "emoji_code": "999999", "reaction_type": "realm_emoji"},
        {"emoji_name": "gopher", "emoji_code": "gopher", "reaction_type": "realm_emoji"},
        {"emoji_name": "other", "emoji_code": "1", "reaction_type": "realm_emoji"},
        {"emoji_name": "gone"},
        {"emoji_name": "gone", "emoji_code": "2", "reaction_type": "realm_emoji"},
    ],
)
async def test_an_invalid_emoji_is_refused(
    kept_lounge: Organization, asked: dict[str, str]
) -> None:
    """Unknown names, types, and codes; mismatched codes; and deactivated emoji."""
    sent = await kept_lounge["ann"].send("lounge", "t", "x")
    (await kept_lounge["ann"].post(f"/messages/{sent}/reactions", **asked)).refused()
    assert await reactions(kept_lounge["ann"], sent) == []


async def test_a_name_is_required_for_a_reaction(sqlite_org: Organization) -> None:
    reply = await sqlite_org["ann"].post("/messages/1/reactions", emoji_code="1f419")
    assert reply.refused("REQUEST_VARIABLE_MISSING")["var_name"] == "emoji_name"
    reply = await sqlite_org["ann"].post("/messages/1/reactions", emoji_name="a\0b")
    assert reply.refused("REQUEST_VARIABLE_INVALID")["var_name"] == "emoji_name"


async def test_the_same_reaction_cannot_be_added_twice(org: Organization) -> None:
    await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "t", "x")
    await react(org["ann"], sent, emoji_name="+1")
    for name in ("+1", "thumbs_up"):
        reply = await org["ann"].post(f"/messages/{sent}/reactions", emoji_name=name)
        reply.refused("REACTION_ALREADY_EXISTS")
    assert len(await reactions(org["ann"], sent)) == 1


async def test_of_two_concurrent_equal_reactions_one_is_refused(org: Organization) -> None:
    await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "t", "x")
    path = f"/messages/{sent}/reactions"
    listener = await org["ann"].register(event_types=["reaction"])
    replies = await asyncio.gather(*(org["ann"].post(path, **OCTOPUS) for _ in range(5)))
    assert sorted(reply.status for reply in replies) == [200, 400, 400, 400, 400]
    for reply in replies:
        if reply.status == 400:
            reply.refused("REACTION_ALREADY_EXISTS")
    replies = await asyncio.gather(*(org["ann"].delete(path, **OCTOPUS) for _ in range(5)))
    assert sorted(reply.status for reply in replies) == [200, 400, 400, 400, 400]
    assert [event["op"] for event in await listener.events()] == ["add", "remove"]
    assert await reactions(org["ann"], sent) == []


async def test_many_people_react_to_one_message_concurrently(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben", "cleo", "gus", "robo")
    sent = await org["ann"].send("lounge", "t", "x")
    names = ("ann", "ben", "cleo", "gus", "robo")
    await asyncio.gather(*(react(org[name], sent, **OCTOPUS) for name in names))
    found = await reactions(org["ann"], sent)
    assert {one["user_id"] for one in found} == {org[name].user_id for name in names}


async def test_reactions_are_in_the_order_of_reacting(org: Organization, config: Config) -> None:
    await org.channel("lounge", "ann", "ben")
    sent = await org["ann"].send("lounge", "t", "x")
    wanted = [("ben", "tada"), ("ann", "octopus"), ("ben", "heart"), ("ann", "tada")]
    for who, name in wanted:
        await react(org[who], sent, emoji_name=name)
    expected = [(org[who].user_id, name) for who, name in wanted]

    async def seen(by: Organization) -> list[tuple[int, str]]:
        page = (await by["ann"].get("/messages", anchor=sent, num_before=0, num_after=0)).ok
        (message,) = page["messages"]
        return [(one["user_id"], one["emoji_name"]) for one in message["reactions"]]

    assert await seen(org) == expected
    async with open_organization(config) as later:
        assert await seen(later) == expected


async def test_an_existing_reaction_can_be_added_under_any_name(org: Organization) -> None:
    """With the same code and type: an older name, or an emoji that has been deactivated. It keeps
    the name given first."""
    await org.channel("lounge", "ann", "ben", "cleo")
    await add_emoji(org["ann"], "gopher")
    sent = await org["ann"].send("lounge", "t", "x")
    await react(org["ann"], sent, emoji_name="thumbs_up")
    await react(org["ben"], sent, **{**OCTOPUS, "emoji_name": "good", "emoji_code": "1f44d"})
    await react(org["cleo"], sent, emoji_name="+1")
    assert {one["emoji_name"] for one in await reactions(org["ann"], sent)} == {"thumbs_up"}
    await react(org["ann"], sent, emoji_name="gopher")
    assert (await org["ann"].delete("/realm/emoji/gopher")).ok
    custom = {"emoji_name": "bird", "emoji_code": "1", "reaction_type": "realm_emoji"}
    await react(org["ben"], sent, **custom)
    assert [one["emoji_name"] for one in await reactions(org["ann"], sent)][3:] == ["gopher"] * 2


TAKEN_BACK: list[dict[str, str]] = [
    {"emoji_name": "octopus"},
    {"emoji_code": "1f419"},
    {"emoji_code": "1f419", "reaction_type": "unicode_emoji"},
    OCTOPUS,
    {**OCTOPUS, "emoji_name": "kraken"},
]


async def test_a_reaction_is_removed_by_name_or_code(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    for named in TAKEN_BACK:
        with row(named):
            sent = await org["ann"].send("lounge", "t", "x")
            await react(org["ann"], sent, **OCTOPUS)
            await react(org["ben"], sent, **OCTOPUS)
            listener = await org["ben"].register(event_types=["reaction"])
            assert (await org["ann"].delete(f"/messages/{sent}/reactions", **named)).ok
            (event,) = await listener.events()
            ann = org["ann"].user_id
            assert (event["op"], event["message_id"], event["user_id"]) == ("remove", sent, ann)
            assert {name: event[name] for name in OCTOPUS} == OCTOPUS
            assert event["user"]["full_name"] == "Ann"
            assert [one["user_id"] for one in await reactions(org["ann"], sent)] == [
                org["ben"].user_id
            ]
            again = await org["ann"].delete(f"/messages/{sent}/reactions", **named)
            again.refused(
                "BAD_REQUEST" if named.get("emoji_name") == "x" else "REACTION_DOES_NOT_EXIST"
            )


async def test_a_reaction_with_a_deactivated_emoji_can_be_removed(org: Organization) -> None:
    await org.channel("lounge", "ann")
    await add_emoji(org["ann"], "gopher")
    sent = await org["ann"].send("lounge", "t", "x")
    await react(org["ann"], sent, emoji_name="gopher")
    assert (await org["ann"].delete("/realm/emoji/gopher")).ok
    assert len(await reactions(org["ann"], sent)) == 1
    assert (await org["ann"].delete(f"/messages/{sent}/reactions", emoji_name="gopher")).ok
    assert await reactions(org["ann"], sent) == []


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ({"emoji_name": "octopus"}, "REACTION_DOES_NOT_EXIST"),
        ({"emoji_code": "1f419"}, "REACTION_DOES_NOT_EXIST"),
        ({"emoji_code": "1f44d", "reaction_type": "realm_emoji"}, "REACTION_DOES_NOT_EXIST"),
        ({}, "BAD_REQUEST"),
        ({"reaction_type": "unicode_emoji"}, "BAD_REQUEST"),
        ({"emoji_name": "no_such_emoji"}, "BAD_REQUEST"),
        ({"emoji_name": "octopus", "reaction_type": "none"}, "BAD_REQUEST"),
    ],
)
async def test_a_missing_reaction_cannot_be_removed(
    kept_lounge: Organization, named: dict[str, str], code: str
) -> None:
    sent = await kept_lounge["ann"].send("lounge", "t", "x")
    await react(kept_lounge["ben"], sent, **OCTOPUS)
    await react(kept_lounge["ann"], sent, emoji_name="+1")
    (await kept_lounge["ann"].delete(f"/messages/{sent}/reactions", **named)).refused(code)


async def test_an_inaccessible_message_looks_like_an_unknown_one(org: Organization) -> None:
    await org.channel("den", "ann", is_private=True)
    sent = await org["ann"].send("den", "t", "x")
    direct = await org["ann"].write([org["cleo"].user_id], "psst")
    for method in ("POST", "DELETE"):
        unknown = await org["ben"].request(method, "/messages/999999/reactions", **OCTOPUS)
        for message_id in (sent, direct):
            path = f"/messages/{message_id}/reactions"
            reply = await org["ben"].request(method, path, **OCTOPUS)
            assert reply.refused() == unknown.refused()
    (await org.nobody.post(f"/messages/{sent}/reactions", **OCTOPUS)).refused("UNAUTHORIZED", 401)


async def test_reacting_to_a_message_that_was_not_received_adds_it_as_historical(
    org: Organization,
) -> None:
    """As read. Later reactions to it are sent to this person."""
    await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "t", "x")
    ben = org["ben"]
    listener = await ben.register()
    await react(ben, sent, **OCTOPUS)
    message = (await ben.get(f"/messages/{sent}")).ok["message"]
    assert message["flags"] == ["read", "historical"]
    page = (await ben.get("/messages", anchor="newest", num_before=9, num_after=0)).ok
    assert [one["id"] for one in page["messages"]] == [sent]
    await react(org["ann"], sent, emoji_name="heart")
    events = [event for event in await listener.events() if event["type"] == "reaction"]
    assert [event["user_id"] for event in events] == [ben.user_id, org["ann"].user_id]
    assert (await ben.register()).data["unread_msgs"]["count"] == 0


async def test_a_reaction_is_sent_to_all_readers_of_the_message(org: Organization) -> None:
    """Recipients, subscribers with access to the history, and queues that follow all public
    channels; nobody else."""
    channel = await org.channel("lounge", "ann", "ben", "cleo")
    sent = await org["ann"].send("lounge", "t", "x")
    cleo, gus = org["cleo"], org["gus"]
    await org.do(
        Unsubscribed(channel_id=channel, user_ids=(cleo.user_id,), until=sent, name="lounge"),
        Subscribed(channel_id=channel, colors={gus.user_id: "#76ce90"}, after=sent),
    )
    outside = await org.add("dan")
    queues = {
        "sender": await org["ann"].register(),
        "subscribed": await org["ben"].register(),
        "left": await cleo.register(),
        "came later": await gus.register(),
        "not there": await outside.register(),
        "follows all": await outside.register(all_public_streams=True),
    }
    await react(org["ann"], sent, **OCTOPUS)
    told = {
        name: [event["type"] for event in await queue.events()].count("reaction")
        for name, queue in queues.items()
    }
    assert told == {**dict.fromkeys(queues, 1), "not there": 0}


async def test_a_reaction_in_a_protected_history_is_sent_to_recipients(
    org: Organization,
) -> None:
    channel = await org.channel("den", "ann", "ben", is_private=True, history_public=False)
    sent = await org["ann"].send("den", "t", "x")
    ben, cleo = org["ben"], org["cleo"]
    await org.do(
        Subscribed(channel_id=channel, colors={cleo.user_id: "#76ce90"}, after=sent),
        Unsubscribed(
            channel_id=channel, user_ids=(ben.user_id,), until=sent, name="den", lost=(ben.user_id,)
        ),
    )
    left, came = await ben.register(), await cleo.register()
    mine = await org["ann"].register()
    await react(org["ann"], sent, **OCTOPUS)
    assert [await queue.events() for queue in (left, came)] == [[], []]
    assert len(await mine.events()) == 1


async def test_a_reaction_to_a_direct_message_is_sent_to_its_participants(
    org: Organization,
) -> None:
    sent = await org["ann"].write([org["ben"].user_id], "psst")
    queues = [await org[name].register() for name in ("ann", "ben")]
    other = await org["cleo"].register(all_public_streams=True)
    await react(org["ben"], sent, **OCTOPUS)
    assert [len(await queue.events()) for queue in queues] == [1, 1]
    assert await other.events() == []


async def test_limited_guests_do_not_learn_who_reacted(org: Organization) -> None:
    await org.do(LIMITED)
    await org.channel("lounge", "ann", "gus")
    sent = await org["ann"].send("lounge", "t", "x")
    listener = await org["gus"].register(event_types=["reaction"])
    await react(org["cleo"], sent, **OCTOPUS)
    (event,) = await listener.events()
    assert event["user"]["full_name"] == "Unknown user"
    assert "cleo" not in str(event)


async def test_messages_with_reactions_are_found(org: Organization) -> None:
    await org.channel("lounge", "ann")
    first, second = [await org["ann"].send("lounge", "t", text) for text in ("a", "b")]
    await react(org["ann"], first, **OCTOPUS)

    async def found(negated: bool) -> list[int]:
        narrow = [{"operator": "has", "operand": "reaction", "negated": negated}]
        page = await org["ann"].get(
            "/messages", anchor="newest", num_before=9, num_after=0, narrow=narrow
        )
        return [message["id"] for message in page.ok["messages"]]

    assert await found(False) == [first]
    assert await found(True) == [second]
    assert (await org["ann"].delete(f"/messages/{first}/reactions", **OCTOPUS)).ok
    assert await found(False) == []


async def test_a_spectator_sees_reactions(org: Organization) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    await org.channel("square", "ann", is_web_public=True)
    sent = await org["ann"].send("square", "t", "x")
    await react(org["ann"], sent, **OCTOPUS)
    assert len(await reactions(org.nobody, sent)) == 1


async def test_a_queue_for_all_channels_gets_no_one_else_s_data(
    org: Organization,
) -> None:
    """Others' flags, alert words, and muted users aren't part of any channel."""
    await org.channel("lounge", "ann", "ben")
    sent = await org["ann"].send("lounge", "t", "x")
    listener = await org["cleo"].register(all_public_streams=True)
    ben = org["ben"]
    assert (await ben.post("/messages/flags", messages=[sent], op="add", flag="starred")).ok
    assert (await ben.post("/messages/flags", messages=[sent], op="add", flag="read")).ok
    assert (await ben.post("/users/me/alert_words", alert_words=["x"])).ok
    assert (await ben.post(f"/users/me/muted_users/{org['ann'].user_id}")).ok
    assert await listener.events() == []


async def test_reactions_are_limited_per_message_and_person(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reactions_domain, "MAX_DISTINCT_EMOJI", 4)
    monkeypatch.setattr(reactions_domain, "MAX_REACTIONS_PER_USER", 2)
    await org.channel("lounge", "ann", "ben", "cleo", "gus", "robo")
    sent, other = [await org["ann"].send("lounge", "t", text) for text in ("x", "y")]
    for emoji in ("octopus", "tada"):
        await react(org["ben"], sent, emoji_name=emoji)
    path = f"/messages/{sent}/reactions"
    body = (await org["ben"].post(path, emoji_name="heart")).refused()
    assert "at most 2 reactions" in body["msg"]
    (await org["ben"].post(path, emoji_name="tada")).refused("REACTION_ALREADY_EXISTS")
    await react(org["ben"], other, emoji_name="heart")
    # Of concurrent new emoji, as many are added as there is room for.
    new = {"ann": "heart", "cleo": "wave", "gus": "+1", "robo": "car"}
    tries = [org[who].post(path, emoji_name=emoji) for who, emoji in new.items()]
    replies = await asyncio.gather(*tries)
    assert sorted(one.status for one in replies) == [200, 200, 400, 400]
    late = next(one for one in replies if one.status == 400)
    assert "at most 4 different emoji" in late.refused()["msg"]
    await react(org["cleo"], sent, emoji_name="octopus")
    # Removing one makes room.
    (await org["ben"].delete(path, emoji_name="tada")).ok
    await react(org["ben"], sent, emoji_name="cat")
