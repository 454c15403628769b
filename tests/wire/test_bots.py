"""Bots: creating, changing, deactivating, and the events for their administrators."""

import asyncio
from typing import Any

import pytest

from tertulia.model.changes import RealmChanged
from tertulia.model.groups import SystemGroup
from tertulia.model.users import BotKind, Role
from tests.support import Organization, Person, Reply, open_organization, rows


async def make(org: Organization, owner: str, **more: Any) -> Person:
    """Create the owner's bot, called Hal."""
    asked = {"full_name": "Hal", "short_name": "hal"} | more
    made = (await org[owner].post("/bots", **asked)).ok
    return Person(org.http, made["user_id"], "hal-bot@chat.test", made["api_key"])


async def test_a_bot_works_with_its_key(org: Organization) -> None:
    await org.channel("lounge", "ben")
    made = (await org["ben"].post("/bots", full_name="Hal", short_name="hal")).ok
    assert made["default_sending_stream"] is None
    assert made["default_events_register_stream"] is None
    assert made["default_all_public_streams"] is False
    assert made["avatar_url"].startswith("https://")
    hal = Person(org.http, made["user_id"], "hal-bot@chat.test", made["api_key"])
    assert (await hal.get("/users/me")).ok["user_id"] == hal.user_id
    assert await hal.send("lounge", "hi", "hello")
    shown = (await org["cleo"].get(f"/users/{hal.user_id}")).ok["user"]
    assert (shown["is_bot"], shown["bot_type"]) == (True, 1)
    assert shown["bot_owner_id"] == org["ben"].user_id
    assert shown["email"] == shown["delivery_email"] == "hal-bot@chat.test"
    signing_in = await org.nobody.post("/fetch_api_key", username=hal.email, password="hal hal")
    signing_in.refused("AUTHENTICATION_FAILED", 401)


async def test_people_list_their_own_bots(org: Organization) -> None:
    hal = await make(org, "ben")
    await org.channel("lounge", "ben")
    assert (await org["ben"].patch(f"/bots/{hal.user_id}", default_sending_stream="lounge")).ok
    bots = (await org["ben"].get("/bots")).ok["bots"]
    assert [bot["username"] for bot in bots] == ["robo-bot@example.com", "hal-bot@chat.test"]
    assert bots[1]["api_key"] == hal.api_key
    assert bots[1]["default_sending_stream"] == "lounge"
    assert (await org["cleo"].get("/bots")).ok["bots"] == []
    assert (await org["ben"].delete(f"/bots/{hal.user_id}")).ok
    assert len((await org["ben"].get("/bots")).ok["bots"]) == 1


async def test_a_bot_survives_a_restart(org: Organization) -> None:
    await org.channel("lounge", "ben")
    hal = await make(org, "ben", default_sending_stream="lounge")
    assert (await org["ben"].patch(f"/bots/{hal.user_id}", bot_owner_id=org["cleo"].user_id)).ok
    before = org.node.state.users[hal.user_id]
    async with open_organization(org.node.config) as again:
        assert again.node.state.users[hal.user_id] == before
        assert again["hal"].api_key == hal.api_key


async def test_an_incoming_webhook_bot_can_only_send(org: Organization) -> None:
    await org.channel("lounge", "ben")
    hal = await make(org, "ben", bot_type=2, default_sending_stream="lounge")
    assert (await hal.post("/messages", type="stream", topic="t", content="built")).ok
    (await hal.get("/users/me")).refused()


@pytest.mark.parametrize("kind", [BotKind.GENERIC, BotKind.INCOMING_WEBHOOK])
async def test_who_can_create_which_bots(org: Organization, kind: BotKind) -> None:
    owners, members = SystemGroup.OWNERS.value, SystemGroup.MEMBERS.value
    await org.do(RealmChanged(values={"can_create_bots_group": owners}))
    asked = {"full_name": "Hal", "short_name": "hal", "bot_type": kind.value}
    reply = await org["cleo"].post("/bots", **asked)
    assert (reply.status == 200) is (kind is BotKind.INCOMING_WEBHOOK)
    values = {"can_create_write_only_bots_group": owners}
    await org.do(RealmChanged(values=values))
    (await org["cleo"].post("/bots", **(asked | {"short_name": "h2"}))).refused()
    await org.do(RealmChanged(values={"can_create_bots_group": members}))
    again = {"full_name": "Hal 2", "short_name": "h3"}
    assert (await org["cleo"].post("/bots", **(asked | again))).ok


@pytest.fixture(scope="module")
async def hidden(shared_org: Organization) -> int:
    """A private channel of cleo's."""
    return await shared_org.channel("hidden", "cleo", is_private=True)


@rows(
    ("actor", "changed", "code"),
    [
        ("gus", {}, "BAD_REQUEST"),
        ("robo", {}, "UNAUTHORIZED_PRINCIPAL"),
        ("ben", {"bot_type": 3}, "REQUEST_VARIABLE_MISSING"),
        ("ben", {"bot_type": 3, "payload_url": '"x"'}, "BAD_REQUEST"),
        ("ben", {"payload_url": '"http://x.test"'}, "BAD_REQUEST"),
        ("ben", {"bot_type": 4}, "REQUEST_VARIABLE_MISSING"),
        ("ben", {"bot_type": 4, "service_name": "helloworld"}, "BAD_REQUEST"),
        ("ben", {"service_name": "helloworld"}, "BAD_REQUEST"),
        ("ben", {"config_data": {"key": "x"}}, "BAD_REQUEST"),
        ("ben", {"bot_type": 5}, "REQUEST_VARIABLE_INVALID"),
        ("ben", {"bot_type": "generic"}, "REQUEST_VARIABLE_INVALID"),
        ("ben", {"full_name": ""}, "BAD_REQUEST"),
        ("ben", {"full_name": "Cleo"}, "BAD_REQUEST"),
        ("ben", {"full_name": None}, "REQUEST_VARIABLE_MISSING"),
        ("ben", {"short_name": ""}, "BAD_REQUEST"),
        ("ben", {"short_name": "  "}, "BAD_REQUEST"),
        ("ben", {"short_name": "a b"}, "BAD_REQUEST"),
        ("ben", {"short_name": "a@b"}, "BAD_REQUEST"),
        ("ben", {"short_name": "x" * 300}, "BAD_REQUEST"),
        ("ben", {"short_name": "a\0"}, "REQUEST_VARIABLE_INVALID"),
        ("ben", {"default_sending_stream": "nowhere"}, "STREAM_DOES_NOT_EXIST"),
        ("ben", {"default_sending_stream": "hidden"}, "STREAM_DOES_NOT_EXIST"),
        ("ben", {"default_events_register_stream": "hidden"}, "STREAM_DOES_NOT_EXIST"),
    ],
)
async def test_an_invalid_bot_is_refused(
    hidden: int, readonly_org: Organization, actor: str, changed: dict[str, Any], code: str
) -> None:
    before = len(readonly_org.node.state.users)
    asked = {"full_name": "Hal", "short_name": "hal"}
    (await readonly_org[actor].post("/bots", **(asked | changed))).refused(code)
    assert len(readonly_org.node.state.users) == before


async def test_an_address_is_used_once(org: Organization) -> None:
    await make(org, "ben")
    (await org["cleo"].post("/bots", full_name="Other", short_name="HAL")).refused()
    (await org["cleo"].post("/bots", full_name="Hal", short_name="other")).refused()


async def test_an_invalid_avatar_is_refused(readonly_org: Organization) -> None:
    ben = readonly_org["ben"]
    response = await readonly_org.http.post(
        "/api/v1/bots",
        data={"full_name": "Hal", "short_name": "hal"},
        files={"file": ("hal.png", b"\x89PNG", "image/png")},
        auth=(ben.email, ben.api_key),
    )
    Reply(response.status_code, response.headers, response.json()).refused("BAD_IMAGE")
    assert readonly_org.node.state.user_with_address("hal-bot@chat.test") is None


async def test_owners_and_administrators_get_bot_events(org: Organization) -> None:
    await org.channel("lounge", "ben")
    ann, ben, cleo = [await org[name].register() for name in ("ann", "ben", "cleo")]
    hal = await make(org, "ben", default_sending_stream="lounge")
    told = {
        "user_id": hal.user_id,
        "default_sending_stream": "lounge",
        "default_events_register_stream": None,
        "default_all_public_streams": False,
        "services": [],
    }
    for listener in (ann, ben):
        events = await listener.events()
        assert events[0]["type"] == "realm_user"
        assert [e["bot"] for e in events if e["type"] == "realm_bot"] == [told]
    assert [e["type"] for e in await cleo.events()].count("realm_bot") == 0
    assert (
        await org["ben"].patch(
            f"/bots/{hal.user_id}", default_sending_stream="", default_all_public_streams=True
        )
    ).ok
    for listener in (ann, ben):
        events = await listener.events()
        assert [e["op"] for e in events] == ["update", "update"]
        assert [e["bot"] for e in events] == [
            {"user_id": hal.user_id, "default_sending_stream": None},
            {"user_id": hal.user_id, "default_all_public_streams": True},
        ]
    assert await cleo.events() == []


async def test_a_bot_changes_its_owner(org: Organization) -> None:
    hal = await make(org, "ben")
    cleo_id = org["cleo"].user_id
    ann, ben, cleo, gus = [await org[n].register() for n in ("ann", "ben", "cleo", "gus")]
    changed = (await org["ben"].patch(f"/bots/{hal.user_id}", bot_owner_id=cleo_id)).ok
    assert changed["bot_owner"] == "cleo@example.com"
    owner = {"user_id": hal.user_id, "bot_owner_id": cleo_id}
    for listener, op in ((ann, None), (ben, "delete"), (cleo, "add"), (gus, None)):
        events = await listener.events()
        assert events[0]["person"] == owner
        assert [e["op"] for e in events[1:]] == ([] if op is None else [op])
    (await org["ben"].patch(f"/bots/{hal.user_id}", full_name="Mine")).refused()
    assert (await org["cleo"].get(f"/bots/{hal.user_id}/api_key")).ok["api_key"] == hal.api_key


async def test_a_bot_gets_a_new_name_and_address(org: Organization) -> None:
    hal = await make(org, "ben")
    changed = (
        await org["ben"].patch(f"/bots/{hal.user_id}", full_name="Hal 2", short_name="hal2")
    ).ok
    assert changed["full_name"] == "Hal 2"
    shown = (await org["cleo"].get("/users/hal2-bot@chat.test")).ok["user"]
    assert (shown["user_id"], shown["full_name"]) == (hal.user_id, "Hal 2")
    # Robo has an address at another domain.
    assert (await org["ben"].patch(f"/bots/{hal.user_id}", short_name="robo")).ok


@pytest.fixture(scope="module")
async def ada(shared_org: Organization, hidden: int) -> int:
    """A bot of ben's, with an administrator in the organization."""
    await shared_org.add("admin", Role.ADMINISTRATOR)
    return (await make(shared_org, "ben", full_name="Ada", short_name="ada")).user_id


@rows(
    ("actor", "changed", "code"),
    [
        ("cleo", {"full_name": "Other"}, "BAD_REQUEST"),
        ("gus", {"full_name": "Other"}, "BAD_REQUEST"),
        ("robo", {"full_name": "Other"}, "UNAUTHORIZED_PRINCIPAL"),
        ("ben", {"full_name": "Cleo"}, "BAD_REQUEST"),
        ("ben", {"short_name": ""}, "BAD_REQUEST"),
        ("ben", {"role": 300}, "UNAUTHORIZED_PRINCIPAL"),
        ("admin", {"role": 100}, "UNAUTHORIZED_PRINCIPAL"),
        ("ben", {"bot_owner_id": 999_999}, "BAD_REQUEST"),
        ("ben", {"bot_owner_id": 1}, "BAD_REQUEST"),
        ("ben", {"default_sending_stream": "hidden"}, "STREAM_DOES_NOT_EXIST"),
        ("ben", {"config_data": {"a": "b"}}, "BAD_REQUEST"),
        ("ben", {"service_payload_url": '"http://x.test"'}, "BAD_REQUEST"),
        ("ben", {"service_interface": 1}, "BAD_REQUEST"),
    ],
)
async def test_a_forbidden_change_is_refused(
    ada: int, readonly_org: Organization, actor: str, changed: dict[str, Any], code: str
) -> None:
    (await readonly_org[actor].patch(f"/bots/{ada}", **changed)).refused(code)


@rows("bot", ["1", "999999", "ann"])
async def test_an_account_that_is_no_bot_is_refused(readonly_org: Organization, bot: str) -> None:
    bot_id = readonly_org["ann"].user_id if bot == "ann" else int(bot)
    path = f"/bots/{bot_id}"
    told = [
        (await readonly_org["ann"].patch(path, full_name="Other")).refused(),
        (await readonly_org["ann"].delete(path)).refused(),
        (await readonly_org["ann"].get(f"{path}/api_key")).refused(),
        (await readonly_org["ann"].post(f"{path}/api_key/regenerate")).refused(),
    ]
    assert all(one == told[0] for one in told)


async def test_the_key_is_for_the_owner_and_administrators(org: Organization) -> None:
    hal = await make(org, "ben")
    path = f"/bots/{hal.user_id}/api_key"
    for name in ("ben", "ann"):
        assert (await org[name].get(path)).ok["api_key"] == hal.api_key
    for name in ("cleo", "gus"):
        (await org[name].get(path)).refused()
        (await org[name].post(f"{path}/regenerate")).refused()
    for bot in (hal, org["robo"]):
        (await bot.get(path)).refused("UNAUTHORIZED_PRINCIPAL")


async def test_administrators_cannot_read_the_key_of_an_owner_s_bot_with_owner_role(
    org: Organization,
) -> None:
    await org.add("admin", Role.ADMINISTRATOR)
    hal = await make(org, "ann")
    assert (await org["ann"].patch(f"/bots/{hal.user_id}", role=100)).ok
    (await org["admin"].get(f"/bots/{hal.user_id}/api_key")).refused()
    (await org["admin"].delete(f"/bots/{hal.user_id}")).refused()


async def test_a_new_key_ends_polls_with_the_old_one(org: Organization) -> None:
    hal = await make(org, "ben")
    listener = await hal.register()
    waiting = asyncio.create_task(
        hal.get("/events", queue_id=listener.queue_id, last_event_id=listener.last_event_id)
    )
    for _ in range(1000):
        if org.node.delivery.waiting:
            break
        await asyncio.sleep(0)
    new = (await org["ben"].post(f"/bots/{hal.user_id}/api_key/regenerate")).ok["api_key"]
    (await waiting).refused("INVALID_API_KEY", 401)
    (await hal.get("/users/me")).refused("INVALID_API_KEY", 401)
    hal.api_key = new
    assert (await hal.get("/users/me")).ok


async def test_a_deactivated_bot_can_be_reactivated(org: Organization) -> None:
    hal = await make(org, "ben")
    listener = await org["cleo"].register()
    assert (await org["ben"].delete(f"/bots/{hal.user_id}")).ok
    assert (await listener.events())[-1]["person"] == {"user_id": hal.user_id, "is_active": False}
    (await hal.get("/users/me")).refused("USER_DEACTIVATED", 401)
    (await org["cleo"].delete(f"/bots/{hal.user_id}")).refused()
    assert (await org["ben"].post(f"/users/{hal.user_id}/reactivate")).ok
    (await hal.get("/users/me")).refused("INVALID_API_KEY", 401)
    hal = org.person_of("hal", org.node.state.users[hal.user_id])
    assert (await hal.get("/users/me")).ok


async def test_an_ownerless_bot_belongs_to_the_person_who_reactivates_it(org: Organization) -> None:
    hal = await make(org, "ben")
    assert (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
    assert (await org["ann"].post(f"/users/{hal.user_id}/reactivate")).ok
    shown = (await org["cleo"].get(f"/users/{hal.user_id}")).ok["user"]
    assert (shown["is_active"], shown["bot_owner_id"]) == (True, org["ann"].user_id)


async def test_a_bot_whose_name_was_taken_cannot_be_reactivated(org: Organization) -> None:
    hal = await make(org, "ben")
    assert (await org["ben"].delete(f"/bots/{hal.user_id}")).ok
    assert (await org["cleo"].post("/bots", full_name="Hal", short_name="hal2")).ok
    (await org["ben"].post(f"/users/{hal.user_id}/reactivate")).refused()
