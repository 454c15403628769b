"""Limited guests: what they get about accounts they can't see, and when accounts become visible."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyroaring import BitMap

from tertulia.delivery.recent_entries import PAGE
from tertulia.domain.accounts import users
from tertulia.model.changes import (
    RealmChanged,
    Subscribed,
    Unsubscribed,
    UserGroupCreated,
    UserVisibilityChanged,
)
from tertulia.model.groups import SystemGroup, UserGroup
from tertulia.model.users import Role, User
from tertulia.state.user_visibility import BATCH_SIZE, bitmap
from tertulia.store import log_entries
from tertulia.wire.api.routes import ROUTES
from tests.support import Listener, Organization

MEMBERS, EVERYONE = SystemGroup.MEMBERS.value, SystemGroup.EVERYONE.value
NOBODY = 999_999


async def limit_guests(org: Organization, group: int = MEMBERS) -> None:
    await org.do(RealmChanged(values={"can_access_all_users_group": group}))


# As if the account didn't exist

Request = tuple[str, str, dict[str, Any]]
Asking = Callable[[Any], Request]


def path(method: str, template: str, **values: Any) -> Asking:
    """A request with an account in its path."""
    return lambda who: (method, template.replace("WHO", str(who)), values)


def value(method: str, template: str, made: Callable[[Any], dict[str, Any]]) -> Asking:
    """A request with an account in its parameters."""
    return lambda who: (method, template, made(who))


def narrowed(operator: str, *, listed: bool = False, negated: bool = False) -> Asking:
    def made(who: Any) -> dict[str, Any]:
        term = {"operator": operator, "operand": [who] if listed else who, "negated": negated}
        return {"anchor": "newest", "num_before": 9, "num_after": 0, "narrow": [term]}

    return value("GET", "/messages", made)


WRITING = {"type": "direct", "content": "hi"}
LATER = {**WRITING, "scheduled_delivery_timestamp": 4_000_000_000}
TOPIC = [{"name": "club"}]
BY_ID: dict[str, Asking] = {
    "GET /users": value("GET", "/users", lambda who: {"user_ids": [who]}),
    "GET /users/{user_id:int}": path("GET", "/users/WHO"),
    "PATCH /users/{user_id:int}": path("PATCH", "/users/WHO", full_name="X"),
    "PATCH /users/{user_id:int} profile": path(
        "PATCH", "/users/WHO", profile_data=[{"id": 1, "value": "x"}]
    ),
    "DELETE /users/{user_id:int}": path("DELETE", "/users/WHO"),
    "POST /users/{user_id:int}/reactivate": path("POST", "/users/WHO/reactivate"),
    "GET /users/{user_id:int}/status": path("GET", "/users/WHO/status"),
    "POST /users/{user_id:int}/status": path("POST", "/users/WHO/status", status_text="x"),
    "GET /users/{user_id:int}/channels": path("GET", "/users/WHO/channels"),
    "GET /users/{user_id:int}/subscriptions/{stream_id:int}": path(
        "GET", "/users/WHO/subscriptions/1"
    ),
    "GET /users/{user_id:int}/presence": path("GET", "/users/WHO/presence"),
    "GET /users/{user_id:int}/upload_quota": path("GET", "/users/WHO/upload_quota"),
    "PUT /users/{user_id:int}/upload_quota": path(
        "PUT", "/users/WHO/upload_quota", upload_quota_mib=1
    ),
    "POST /users/me/muted_users/{muted_user_id:int}": path("POST", "/users/me/muted_users/WHO"),
    "DELETE /users/me/muted_users/{muted_user_id:int}": path("DELETE", "/users/me/muted_users/WHO"),
    "GET /user_groups/{user_group_id:int}/members/{user_id:int}": path(
        "GET", "/user_groups/COOKS/members/WHO"
    ),
    "POST /user_groups/{user_group_id:int}/members add": value(
        "POST", "/user_groups/COOKS/members", lambda who: {"add": [who]}
    ),
    "POST /user_groups/{user_group_id:int}/members delete": value(
        "POST", "/user_groups/COOKS/members", lambda who: {"delete": [who]}
    ),
    "POST /user_groups/create": value(
        "POST", "/user_groups/create", lambda who: {"name": "x", "members": [who]}
    ),
    "POST /user_groups/create setting": value(
        "POST",
        "/user_groups/create",
        lambda who: {"name": "x", "members": [], "can_join_group": {"direct_members": [who]}},
    ),
    "GET /users/{user_id:int}/agents": path("GET", "/users/WHO/agents"),
    "GET /users/{user_id:int}/keys": path("GET", "/users/WHO/keys"),
    "GET /users/{user_id:int}/second_factors": path("GET", "/users/WHO/second_factors"),
    "DELETE /users/{user_id:int}/second_factors": path("DELETE", "/users/WHO/second_factors"),
    "GET /users/{user_id:int}/identities": path("GET", "/users/WHO/identities"),
    "DELETE /users/{user_id:int}/identities": path("DELETE", "/users/WHO/identities"),
    "PATCH /user_groups/{user_group_id:int}": value(
        "PATCH",
        "/user_groups/COOKS",
        lambda who: {"can_join_group": {"new": {"direct_members": [who]}}},
    ),
    "PATCH /streams/{stream_id:int}": value(
        "PATCH",
        "/streams/1",
        lambda who: {"can_subscribe_group": {"new": {"direct_members": [who]}}},
    ),
    "PATCH /realm": value(
        "PATCH", "/realm", lambda who: {"can_create_groups": {"new": {"direct_members": [who]}}}
    ),
    "POST /channels/create": value(
        "POST", "/channels/create", lambda who: {"name": "x", "subscribers": [who]}
    ),
    "POST /users/me/subscriptions": value(
        "POST",
        "/users/me/subscriptions",
        lambda who: {"subscriptions": TOPIC, "principals": [who]},
    ),
    "DELETE /users/me/subscriptions": value(
        "DELETE",
        "/users/me/subscriptions",
        lambda who: {"subscriptions": ["club"], "principals": [who]},
    ),
    "GET /streams/{stream_id:int}/email_address": value(
        "GET", "/streams/1/email_address", lambda who: {"sender_id": who}
    ),
    "PATCH /bots/{bot_id:int}": path("PATCH", "/bots/WHO", full_name="X"),
    "PATCH /bots/{bot_id:int} owner": value(
        "PATCH", "/bots/BOT", lambda who: {"bot_owner_id": who}
    ),
    "DELETE /bots/{bot_id:int}": path("DELETE", "/bots/WHO"),
    "GET /bots/{bot_id:int}/webhook": path("GET", "/bots/WHO/webhook"),
    "PATCH /bots/{bot_id:int}/webhook": path("PATCH", "/bots/WHO/webhook", secret="x"),
    "GET /bots/{bot_id:int}/service": path("GET", "/bots/WHO/service"),
    "PATCH /bots/{bot_id:int}/service": path("PATCH", "/bots/WHO/service", new_token=True),
    "GET /bots/{bot_id:int}/deliveries": path("GET", "/bots/WHO/deliveries"),
    "GET /bots/{bot_id:int}/feeds": path("GET", "/bots/WHO/feeds"),
    "POST /bots/{bot_id:int}/feeds": path(
        "POST", "/bots/WHO/feeds", url="https://example.com/", stream="lounge"
    ),
    "PATCH /bots/{bot_id:int}/feeds/{feed_id:int}": path("PATCH", "/bots/WHO/feeds/1"),
    "DELETE /bots/{bot_id:int}/feeds/{feed_id:int}": path("DELETE", "/bots/WHO/feeds/1"),
    "GET /bots/{bot_id:int}/api_key": path("GET", "/bots/WHO/api_key"),
    "POST /bots/{bot_id:int}/api_key/regenerate": path("POST", "/bots/WHO/api_key/regenerate"),
    "POST /messages": value("POST", "/messages", lambda who: {**WRITING, "to": [who]}),
    "POST /messages group": value(
        "POST", "/messages", lambda who: {**WRITING, "to": ["CLEO", who]}
    ),
    "POST /typing": value("POST", "/typing", lambda who: {"op": "start", "to": [who]}),
    "POST /drafts": value(
        "POST", "/drafts", lambda who: {"drafts": [{**WRITING, "to": [who], "topic": ""}]}
    ),
    "PATCH /drafts/{draft_id:int}": value(
        "PATCH", "/drafts/1", lambda who: {"draft": {**WRITING, "to": [who], "topic": ""}}
    ),
    "POST /scheduled_messages": value(
        "POST", "/scheduled_messages", lambda who: {**LATER, "to": [who]}
    ),
    "PATCH /scheduled_messages/{scheduled_message_id:int}": value(
        "PATCH", "/scheduled_messages/1", lambda who: {"type": "direct", "to": [who]}
    ),
    "PATCH /users/me/profile_data": value(
        "PATCH", "/users/me/profile_data", lambda who: {"data": [{"id": 1, "value": [who]}]}
    ),
    "PATCH /settings": value(
        "PATCH",
        "/settings",
        lambda who: {"target_users": {"user_ids": [who]}, "color_scheme": 1},
    ),
    "POST /messages/render": value(
        "POST", "/messages/render", lambda who: {"content": f"@**|{who}** and @_**Ben|{who}**"}
    ),
    "GET /messages sender": narrowed("sender"),
    "GET /messages -sender": narrowed("sender", negated=True),
    "GET /messages dm": narrowed("dm", listed=True),
    "GET /messages dm-including": narrowed("dm-including"),
    "GET /messages group-dm-with": narrowed("group-pm-with"),
    "GET /messages mentions": narrowed("mentions"),
    "GET /messages/matches_narrow": value(
        "GET",
        "/messages/matches_narrow",
        lambda who: {"msg_ids": ["MESSAGE"], "narrow": [{"operator": "sender", "operand": who}]},
    ),
    "POST /messages/flags/narrow": value(
        "POST",
        "/messages/flags/narrow",
        lambda who: {
            "anchor": "newest",
            "num_before": 9,
            "num_after": 0,
            "op": "add",
            "flag": "read",
            "narrow": [{"operator": "sender", "operand": who}],
        },
    ),
}
"""Requests by endpoint and parameter."""

BY_ADDRESS: dict[str, Asking] = {
    "GET /users/{email}": path("GET", "/users/WHO"),
    "PATCH /users/{email}": path("PATCH", "/users/WHO", full_name="X"),
    "GET /users/{email}/presence": path("GET", "/users/WHO/presence"),
    **{
        name: BY_ID[name]
        for name in BY_ID
        if name.startswith("GET /messages") and name != "GET /messages dm"
    },
    "GET /messages dm": narrowed("dm"),
    **{
        name: BY_ID[name]
        for name in (
            "POST /messages",
            "POST /messages group",
            "POST /messages/flags/narrow",
            "POST /scheduled_messages",
            "POST /users/me/subscriptions",
            "DELETE /users/me/subscriptions",
        )
    },
}

NAMING = {
    *("user_id", "user_ids", "muted_user_id", "bot_id", "bot_owner_id", "sender_id", "to"),
    *("narrow", "principals", "subscribers", "members", "target_users", "drafts", "draft"),
    *("profile_data", "data"),
}
"""Parameters that name users."""
OTHERWISE = {
    "DELETE /users/me/profile_data": "its data are fields",
    "PATCH /settings/display": "it is PATCH /settings",
    "PATCH /settings/notifications": "it is PATCH /settings",
    "POST /register": "a queue's narrow: see below",
    "GET /messages/summary": "refused whatever it says",
    "GET /audit_log": "it is for owners, who see everyone",
    "GET /audit_log/export": "it is for owners, who see everyone",
    "POST /external/{integration}": "it is sent by a bot, and names people as POST /messages does",
}


def test_every_endpoint_with_a_user_is_in_the_table() -> None:
    naming = {
        f"{route.method} {route.path}"
        for route in ROUTES
        if NAMING & {one.name for one in route.parameters}
        or (route.path.startswith("/users/{email}"))
    }
    asked = {" ".join(name.split()[:2]) for name in (*BY_ID, *BY_ADDRESS)}
    assert sorted(naming - OTHERWISE.keys() - asked) == []


async def set_stage(org: Organization) -> dict[str, Any]:
    """Gus, a guest, can see cleo. Ben has written where gus reads."""
    club = await org.channel("club", "cleo", "gus")
    cooks = UserGroup(
        id=org.node.state.groups.next_id(),
        name="cooks",
        members=(org["ben"].user_id, org["gus"].user_id),
    )
    await org.do(UserGroupCreated(group=cooks))
    ann, gus = org["ann"], org["gus"]
    assert (await ann.post("/realm/profile_fields", name="Manager", field_type=6)).ok
    sent = await org["ben"].send("club", "plans", "@**Ben** and @**Cleo**")
    cleo = [org["cleo"].user_id]
    await gus.post("/drafts", drafts=[{**WRITING, "to": cleo, "topic": ""}])
    await gus.post("/scheduled_messages", **LATER, to=cleo)
    await org["ben"].post("/users/me/presence", status="active")
    await limit_guests(org)
    assert club == 1
    return {
        "COOKS": cooks.id,
        "BOT": org["robo"].user_id,
        "MESSAGE": sent,
        "CLEO": org["cleo"].user_id,
    }


@pytest.fixture(scope="module")
async def staged(shared_org: Organization) -> tuple[Organization, dict[str, Any]]:
    return shared_org, await set_stage(shared_org)


@pytest.fixture
def stage(
    staged: tuple[Organization, dict[str, Any]],
) -> Iterator[tuple[Organization, dict[str, Any]]]:
    """The setup for requests by gus that must fail. Fails if something changed."""
    org, _ = staged
    before = org.node.state.seq
    yield staged
    assert org.node.state.seq == before, "something was changed"


def put_in(given: Any, known: dict[str, Any]) -> Any:
    """The values with the setup's IDs."""
    if isinstance(given, dict):
        return {name: put_in(one, known) for name, one in given.items()}
    if isinstance(given, list):
        return [put_in(one, known) for one in given]
    return known.get(given, given) if isinstance(given, str) else given


async def answered(org: Organization, asking: Asking, who: Any, known: dict[str, Any]) -> Any:
    """The response for gus, with the account in question as WHO."""
    method, where, values = asking(who)
    for name, known_id in known.items():
        where = where.replace(name, str(known_id))
    reply = await org["gus"].request(method, where, **put_in(values, known))
    assert reply.status != 404 or reply.body.get("code") != "NOT_FOUND", where
    return reply.status, str(reply.body).replace(str(who), "WHO")


@pytest.mark.parametrize("name", BY_ID)
async def test_an_invisible_account_looks_like_an_unknown_one(
    stage: tuple[Organization, dict[str, Any]], name: str
) -> None:
    org, known = stage
    unseen = await answered(org, BY_ID[name], org["ben"].user_id, known)
    assert unseen == await answered(org, BY_ID[name], NOBODY, known)


@pytest.mark.parametrize("name", BY_ADDRESS)
@pytest.mark.parametrize("stand_in", [False, True], ids=["real", "stand-in"])
async def test_an_invisible_address_looks_like_an_unknown_one(
    stage: tuple[Organization, dict[str, Any]], name: str, stand_in: bool
) -> None:
    org, known = stage
    ben = f"user{org['ben'].user_id}@chat.test" if stand_in else "ben@example.com"
    nobody = f"user{NOBODY}@chat.test" if stand_in else "nobody@example.com"
    unseen = await answered(org, BY_ADDRESS[name], ben, known)
    assert unseen == await answered(org, BY_ADDRESS[name], nobody, known)


@pytest.mark.parametrize("by", ["id", "address", "stand-in"])
async def test_an_invisible_account_in_a_queue_s_narrow_looks_like_an_unknown_one(
    org: Organization, by: str
) -> None:
    await set_stage(org)
    ben = org["ben"].user_id
    operand = {"id": str(ben), "address": "ben@example.com", "stand-in": f"user{ben}@chat.test"}[by]
    queue = await org["gus"].register(event_types=["message"], narrow=[["sender", operand]])
    await org["ben"].send("club", "plans", "hello")
    assert await queue.events() == []
    await org["ben"].write([org["gus"].user_id], "now you know me")
    assert [event["message"]["content"] for event in await queue.events()] == ["now you know me"]


async def test_an_invisible_namesake_does_not_affect_a_mention(org: Organization) -> None:
    await set_stage(org)
    assert (await org["ann"].patch(f"/users/{org['ben'].user_id}", full_name="Cleo")).ok
    assert org["ben"].user_id < org["cleo"].user_id
    reply = await org["gus"].post("/messages/render", content="@**Cleo**")
    assert f'data-user-id="{org["cleo"].user_id}"' in reply.ok["rendered"]


async def test_an_invisible_sender_is_anonymous(org: Organization) -> None:
    """In fetched messages and in events."""
    known = await set_stage(org)
    queue = await org["gus"].register(event_types=["message"])
    fetched = (await org["gus"].get(f"/messages/{known['MESSAGE']}")).ok["message"]
    await org["ben"].send("club", "plans", "again")
    (event,) = await queue.events()
    for message in (fetched, event["message"]):
        ben = org["ben"].user_id
        assert message["sender_id"] == ben
        assert message["sender_full_name"] == "Unknown user"
        assert message["sender_email"] == f"user{ben}@chat.test"
        assert message["avatar_url"] == "/static/person.svg"
    shown = (await org["cleo"].get(f"/messages/{known['MESSAGE']}")).ok["message"]
    assert shown["sender_full_name"] == "Ben"


async def test_invisible_readers_are_not_in_read_receipts(org: Organization) -> None:
    await set_stage(org)
    await org.do(RealmChanged(values={"enable_read_receipts": True}))
    message = await org["cleo"].send("club", "plans", "read me")
    for name in ("ben", "gus"):
        await org[name].post("/messages/flags", messages=[message], op="add", flag="read")
    await org["ben"].post("/messages/flags", messages=[message], op="add", flag="starred")
    where = f"/messages/{message}/read_receipts"
    assert (await org["gus"].get(where)).ok["user_ids"] == [org["gus"].user_id]
    assert org["ben"].user_id in (await org["cleo"].get(where)).ok["user_ids"]


async def test_an_invisible_person_s_typing_is_not_sent(org: Organization) -> None:
    await set_stage(org)
    capable = {"client_capabilities": {"stream_typing_notifications": True}}
    queues = [
        await org[name].register(event_types=["typing"], **capable) for name in ("cleo", "gus")
    ]
    typing = {"type": "channel", "stream_id": 1, "topic": "plans", "op": "start"}
    assert (await org["ben"].post("/typing", **typing)).ok
    heard, unheard = [await queue.events() for queue in queues]
    assert [event["sender"]["user_id"] for event in heard] == [org["ben"].user_id]
    assert unheard == []


# Becoming visible and invisible


async def visibility_changes(listener: Listener) -> list[tuple[str, int]]:
    """The accounts that a client learns are visible, or no longer visible."""
    events = [event for event in await listener.events() if event["type"] == "realm_user"]
    assert all(event["op"] in {"add", "remove"} for event in events)
    return [(event["op"], event["person"]["user_id"]) for event in events]


async def guest(org: Organization) -> Listener:
    return await org["gus"].register(client_capabilities={"user_list_incomplete": True})


async def test_a_new_subscriber_of_a_shared_channel_becomes_visible(org: Organization) -> None:
    await org.channel("club", "gus", "cleo")
    await limit_guests(org)
    gus, cleo = await guest(org), await org["cleo"].register()
    ben = org["ben"].user_id
    club = {"subscriptions": [{"name": "club"}]}
    assert (await org["ben"].post("/users/me/subscriptions", **club)).ok
    events = await gus.events()
    assert [(event["type"], event["op"]) for event in events] == [
        ("realm_user", "add"),
        ("subscription", "peer_add"),
    ]
    assert events[0]["person"]["full_name"] == "Ben"
    assert await visibility_changes(cleo) == []
    assert (await org["ben"].delete("/users/me/subscriptions", subscriptions=["club"])).ok
    events = await gus.events()
    assert [(event["type"], event["op"]) for event in events] == [
        ("subscription", "peer_remove"),
        ("realm_user", "remove"),
    ]
    assert events[1]["person"] == {"user_id": ben, "full_name": "Unknown user"}


async def test_a_guest_added_to_a_channel_sees_its_subscribers(org: Organization) -> None:
    await org.channel("club", "ann", "ben")
    await limit_guests(org)
    gus, ann = await guest(org), org["ann"]
    people = {"principals": [org["gus"].user_id]}
    assert (await ann.post("/users/me/subscriptions", subscriptions=TOPIC, **people)).ok
    events = await gus.events()
    assert [event["type"] == "realm_user" for event in events[:3]] == [True, True, False]
    gained = [event["person"]["user_id"] for event in events if event["type"] == "realm_user"]
    assert gained == [org["ann"].user_id, org["ben"].user_id]
    # One of them stays visible: they have a direct conversation.
    await ann.write([org["gus"].user_id], "welcome")
    assert await visibility_changes(gus) == []
    assert (await ann.delete("/users/me/subscriptions", subscriptions=["club"], **people)).ok
    assert await visibility_changes(gus) == [("remove", org["ben"].user_id)]


async def test_a_person_shared_twice_is_hidden_with_the_second(org: Organization) -> None:
    await org.channel("club", "gus", "ben")
    await org.channel("pub", "gus", "ben")
    await limit_guests(org)
    gus, ben = await guest(org), org["ben"]
    assert (await ben.delete("/users/me/subscriptions", subscriptions=["club"])).ok
    assert await visibility_changes(gus) == []
    assert (await ben.delete("/users/me/subscriptions", subscriptions=["pub"])).ok
    assert await visibility_changes(gus) == [("remove", ben.user_id)]


async def test_a_new_sender_becomes_visible_before_the_message(org: Organization) -> None:
    await limit_guests(org)
    gus = await guest(org)
    await org["ben"].post("/users/me/status", status_text="lunch")
    people = [org["gus"].user_id, org["cleo"].user_id]
    await org["ben"].write(people, "you two")
    events = await gus.events()
    found = [(event["type"], event.get("person", {}).get("full_name")) for event in events]
    assert found == [
        ("realm_user", "Ben"),
        ("user_status", None),
        ("realm_user", "Cleo"),
        ("message", None),
    ]
    await org["ben"].write(people, "and again")
    assert await visibility_changes(gus) == []


async def test_an_archived_channel_is_still_shared(org: Organization) -> None:
    await org.channel("club", "gus", "ben")
    await limit_guests(org)
    gus = await guest(org)
    assert (await org["ann"].delete("/streams/1")).ok
    assert await visibility_changes(gus) == []
    assert (await org["gus"].get(f"/users/{org['ben'].user_id}")).ok


async def test_a_deactivated_person_stays_visible(org: Organization) -> None:
    await org.channel("club", "gus", "ben")
    await limit_guests(org)
    gus, ben = await guest(org), org["ben"].user_id
    assert (await org["ann"].delete(f"/users/{ben}")).ok
    news = [event["person"] for event in await gus.events() if event["type"] == "realm_user"]
    assert {"user_id": ben, "is_active": False} in news
    assert not any("full_name" in person for person in news)
    assert (await org["gus"].get(f"/users/{ben}")).ok


async def test_a_guest_who_becomes_a_member_sees_everyone_until_demoted(
    org: Organization,
) -> None:
    await org.channel("club", "gus", "cleo")
    await limit_guests(org)
    gus, ann = await guest(org), org["ann"]
    strangers = [ann.user_id, org["ben"].user_id]
    assert (await ann.patch(f"/users/{gus.person.user_id}", role=int(Role.MEMBER))).ok
    events = [event for event in await gus.events() if event["type"] == "realm_user"]
    assert [event["op"] for event in events] == ["add", "add", "update"]
    assert [event["person"]["user_id"] for event in events[:2]] == strangers
    assert (await ann.patch(f"/users/{gus.person.user_id}", role=int(Role.GUEST))).ok
    events = [event for event in await gus.events() if event["type"] == "realm_user"]
    assert [event["op"] for event in events] == ["update", "remove", "remove"]
    assert [event["person"]["user_id"] for event in events[1:]] == strangers


async def test_a_new_account_is_sent_where_it_is_shared(org: Organization) -> None:
    await limit_guests(org)
    gus = await guest(org)
    await org.add("dora")
    assert await visibility_changes(gus) == []
    await org.channel("hall", "gus", is_default=True)
    reply = await org["ann"].post(
        "/users", email="eve@example.com", password="sesame open", full_name="Eve"
    )
    assert await visibility_changes(gus) == [("add", reply.ok["user_id"])]


async def test_a_client_that_needs_them_gets_placeholders_for_invisible_people(
    org: Organization,
) -> None:
    await org.channel("club", "gus", "ben")
    await limit_guests(org)
    gus = await org["gus"].register()
    assert (await org["ben"].delete("/users/me/subscriptions", subscriptions=["club"])).ok
    await org.add("dora")
    events = [event for event in await gus.events() if event["type"] == "realm_user"]
    people = [(event["op"], event["person"]["full_name"]) for event in events]
    assert people == [("remove", "Unknown user"), ("add", "Unknown user"), ("add", "Unknown user")]


async def test_a_placeholder_does_not_tell_whether_the_account_is_active(org: Organization) -> None:
    await limit_guests(org)
    gus, cleo = await org["gus"].register(), org["cleo"].user_id
    assert cleo in {user["user_id"] for user in gus.data["realm_users"]}
    assert (await org["ann"].delete(f"/users/{cleo}")).ok
    later = (await org["gus"].register()).data
    for name in ("realm_users", "realm_non_active_users"):
        assert later[name] == gus.data[name]
    assert (await org["ann"].post(f"/users/{cleo}/reactivate")).ok
    assert not [event for event in await gus.events() if event["type"] == "realm_user"]


async def test_a_late_poll_has_nobody_from_before_they_became_visible(
    org: Organization,
) -> None:
    """Earlier log entries about them produce no events, either immediately or later."""
    await org.channel("club", "gus", "cleo")
    await limit_guests(org)
    gus, ben = await guest(org), org["ben"]
    await ben.patch("/settings", full_name="Benjamin")
    await ben.post("/users/me/status", status_text="lunch")
    await ben.send("club", "plans", "who am I?")
    await ben.post("/users/me/subscriptions", subscriptions=TOPIC)
    await ben.patch("/settings", full_name="Benno")
    events = await gus.events()
    first = next(n for n, event in enumerate(events) if event["type"] == "realm_user")
    assert [event["type"] for event in events[:first]] == ["message"]
    assert events[0]["message"]["sender_full_name"] == "Unknown user"
    assert (events[first]["op"], events[first]["person"]["full_name"]) == ("add", "Benno")


async def test_an_organization_without_limited_guests_logs_no_visibility(org: Organization) -> None:
    await org.channel("club", "gus", "cleo")
    await org["ben"].post("/users/me/subscriptions", subscriptions=TOPIC)
    await org["ben"].write([org["gus"].user_id], "hi")
    await org["ben"].delete("/users/me/subscriptions", subscriptions=["club"])
    assert await changes_of_sight(org) == []
    assert not org.node.state.contacts.merged


# Cost


async def test_visibility_gained_by_many_is_computed_and_logged_once(org: Organization) -> None:
    """A thousand people join where thirty guests are. Nothing is done, written, or encoded per
    pair."""
    people, guests = (
        await many_people(org, "p", 1000, Role.MEMBER),
        await many_people(org, "g", 30, Role.GUEST),
    )
    await org.channel("hall", "gus")
    colors = dict.fromkeys(guests, "#76ce90")
    await org.do(Subscribed(channel_id=1, colors=colors, after=0))
    await limit_guests(org)
    queues = [await org[f"g{n}"].register(event_types=["realm_user"]) for n in range(5)]
    contacts = org.node.state.contacts
    for guest_id in guests:
        contacts.of(guest_id)
    merged, begun = contacts.merged, len(await changes_of_sight(org))
    colors = dict.fromkeys(people, "#76ce90")
    await org.do(Subscribed(channel_id=1, colors=colors, after=0))
    gained = (await changes_of_sight(org))[begun:]
    # gus and the thirty see the same. (An entry has room for a part of the thousand.)
    gains = [gain for change in gained for gain in change.gained]
    assert {gain.viewers for gain in gains} == {tuple(sorted([org["gus"].user_id, *guests]))}
    assert BitMap().union(*(bitmap(gain.users) for gain in gains)) == BitMap(people)
    assert len(gained) == len(gains) == 1000 // BATCH_SIZE
    assert contacts.merged - merged <= len(guests) + 1
    answers = [await pages(queue) for queue in queues]
    assert [len(events) for events in answers] == [1000] * 5
    assert len({id(body) for body in encoded(org)}) == 1000
    await org.do(Unsubscribed(channel_id=1, user_ids=tuple(people), until=0))
    lost = (await changes_of_sight(org))[begun + len(gained) :]
    assert [change.lost for change in lost] == [change.gained for change in gained]


def encoded(org: Organization) -> list[bytes]:
    """The encoded events for these entries, for every view."""
    recent = org.node.delivery.recent
    told = (one for one in recent if isinstance(one.entry.change, UserVisibilityChanged))
    return [event.body for one in told for view in one.views.values() for event in view]


async def many_people(org: Organization, name: str, count: int, role: Role) -> list[int]:
    """This many accounts. The first few can send requests."""
    first = org.node.state.users.next_id()
    made = []
    for number in range(count):
        credential = await org.node.vault.credential(0, None)
        user = User(
            id=first + number,
            address=f"{name}{number}@example.com",
            full_name=f"{name}{number}",
            role=role,
        )
        made.append(users.creation_change(org.node.state, user, credential))
    await org.do(*made)
    for change in made[:5]:
        org.person_of(change.user.full_name, change.user)
    return [change.user.id for change in made]


async def pages(listener: Listener) -> list[dict[str, Any]]:
    """All events, which arrive in limited numbers per response."""
    found: list[dict[str, Any]] = []
    while events := await listener.events():
        assert len(events) <= PAGE
        found += events
    return found


async def test_an_invisible_person_s_avatar_is_neutral(org: Organization) -> None:
    await set_stage(org)
    ben = org["ben"].user_id
    names = ["999999", "nobody@example.com", str(ben), "ben@example.com", f"user{ben}@chat.test"]
    for name in names:
        where = f"/avatar/{name}"
        response = await org.http.get(where, auth=(org["gus"].email, org["gus"].api_key))
        assert response.headers["location"] == "/static/person.svg", name


async def changes_of_sight(org: Organization) -> list[UserVisibilityChanged]:
    entries = await org.node.store.read(lambda c: log_entries.entries(c, 0, 2**31))
    return [e.change for e in entries if isinstance(e.change, UserVisibilityChanged)]


async def test_a_guest_s_bot_sees_no_more_than_a_guest(org: Organization) -> None:
    """When its owner becomes a guest, and a member again."""
    await org.channel("club", "robo", "cleo")
    await limit_guests(org)
    capable = {"client_capabilities": {"user_list_incomplete": True}}
    robo, ann, ben = await org["robo"].register(**capable), org["ann"], org["ben"]
    assert (await ann.patch(f"/users/{ben.user_id}", role=int(Role.GUEST))).ok
    events = [
        e for e in await robo.events() if (e["type"], e.get("op")) == ("realm_user", "remove")
    ]
    known = {user["user_id"] for user in (await org["robo"].get("/users")).ok["members"]}
    everybody = {user["user_id"] for user in (await ann.get("/users")).ok["members"]}
    assert {event["person"]["user_id"] for event in events} == everybody - known != set()
    assert (await ann.patch(f"/users/{ben.user_id}", role=int(Role.MEMBER))).ok
    events = [e for e in await robo.events() if (e["type"], e.get("op")) == ("realm_user", "add")]
    assert {event["person"]["user_id"] for event in events} == everybody - known


async def test_a_late_poll_contains_one_s_own_changes_despite_new_visibility(
    org: Organization,
) -> None:
    """Accounts that become visible are stored as ranges, which may include the guest's own."""
    await limit_guests(org)
    gus = await guest(org)
    assert (await org["gus"].post("/users/me/status", status_text="asleep")).ok
    await limit_guests(org, EVERYONE)
    events = [event for event in await gus.events() if event["type"] == "user_status"]
    assert [(e["user_id"], e["status_text"]) for e in events] == [(org["gus"].user_id, "asleep")]
