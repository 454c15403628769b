"""Access keys: who creates them, what each kind of key may do at every endpoint, and when they
end."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tertulia.domain.accounts import access_keys, sessions
from tertulia.service.config import Config
from tertulia.service.credentials import key_digest
from tertulia.wire.api.openapi import document
from tertulia.wire.api.routes import ROUTES
from tertulia.wire.http.routing import Access, KeyUse
from tests.push_service import Browser
from tests.support import PASSWORD, Organization, Person, TestClock, new_organization, rows, until

pytestmark = pytest.mark.usefixtures("no_logged_errors")

INSUFFICIENT = "ACCESS_KEY_INSUFFICIENT"


async def create_key(person: Person, name: str = "Laptop", **scope: Any) -> Person:
    """Create a key, and return the person as its program acts for them."""
    made = (await person.post("/users/me/keys", name=name, **scope)).ok
    return Person(person.http, person.user_id, person.email, made["api_key"])


async def listed(person: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await person.get("/users/me/keys")).ok["keys"]
    return found


async def test_a_key_is_shown_once_and_not_stored(org: Organization) -> None:
    ann = org["ann"]
    channel = await org.channel("kitchen", "ann")
    made = (await ann.post("/users/me/keys", name=" Laptop ")).ok
    await create_key(ann, "Cook", access="send", channel_ids=[channel])
    await create_key(ann, "Clerk", access="read", channel_ids=[], direct_messages=True)
    await ann.post("/agents", name="Helper", can_write=True)
    helper, clerk, cook, laptop = await listed(ann)
    assert laptop == {
        "key_id": made["key_id"],
        "name": "Laptop",
        "access": "full",
        "channel_ids": None,
        "direct_messages": True,
        "mcp_only": False,
        "created_at": laptop["created_at"],
        "expires_at": None,
        "last_used_at": None,
        "last_used_from": None,
    }
    assert (cook["access"], cook["channel_ids"], cook["direct_messages"]) == (
        "send",
        [channel],
        False,
    )
    assert (clerk["access"], clerk["channel_ids"], clerk["direct_messages"]) == ("read", [], True)
    assert (helper["access"], helper["mcp_only"]) == ("send", True)
    kept = org.node.state.access_keys[made["key_id"]]
    assert kept.digest == key_digest(made["api_key"])
    assert made["api_key"] not in repr(kept)


@rows(
    ("who", "sent", "code"),
    [
        ("ben", {}, "REQUEST_VARIABLE_MISSING"),
        ("ben", {"name": " "}, "BAD_REQUEST"),
        ("ben", {"name": "x" * 25}, "BAD_REQUEST"),
        ("ben", {"name": "x", "access": "all"}, "REQUEST_VARIABLE_INVALID"),
        ("ben", {"name": "x", "channel_ids": []}, "BAD_REQUEST"),
        ("ben", {"name": "x", "channel_ids": [99]}, "STREAM_DOES_NOT_EXIST"),
        ("ben", {"name": "x", "expires_at": 1}, "BAD_REQUEST"),
        ("robo", {"name": "x"}, "UNAUTHORIZED_PRINCIPAL"),
    ],
)
async def test_invalid_keys_are_refused(
    readonly_org: Organization, who: str, sent: dict[str, Any], code: str
) -> None:
    (await readonly_org[who].post("/users/me/keys", **sent)).refused(code)


async def test_a_key_works_with_its_owner_s_address_and_its_use_is_shown(
    config: Config,
) -> None:
    clock = TestClock(stopped_at=1_790_000_000)
    async with new_organization(config, clock=clock) as org:
        ann = org["ann"]
        laptop = await create_key(ann)
        assert (await laptop.get("/users/me")).ok["user_id"] == ann.user_id
        (used,) = await listed(ann)
        assert (used["last_used_at"], used["last_used_from"]) == (1_790_000_000, "127.0.0.1")
        seq = org.node.state.seq
        clock.ahead = access_keys.USE_SECONDS - 1
        (await laptop.get("/users/me")).ok
        assert org.node.state.seq == seq
        other = Person(org.http, email="ben@example.com", api_key=laptop.api_key)
        (await other.get("/users/me")).refused("INVALID_API_KEY", status=401)


async def test_a_key_acts_at_mcp_too_and_an_agent_s_only_there(org: Organization) -> None:
    ann = org["ann"]
    laptop = await create_key(ann)
    agent = (await ann.post("/agents", name="Helper")).ok["key"]
    for key in (laptop.api_key, agent):
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        headers = {"Authorization": f"Bearer {key}", "MCP-Protocol-Version": "2025-11-25"}
        assert (await org.http.post("/mcp", json=message, headers=headers)).status_code == 200
    helper = Person(org.http, ann.user_id, ann.email, agent)
    (await helper.get("/users/me")).refused("INVALID_API_KEY", status=401)


# The rule at every endpoint

KINDS: dict[str, tuple[dict[str, Any], set[str], bool]] = {
    "read": ({"access": "read"}, {"read"}, False),
    "send": ({"access": "send"}, {"read", "send"}, False),
    "limited": ({"access": "full", "channel_ids": [1]}, {"read", "send", "full"}, True),
    "no directs": ({"access": "read", "direct_messages": False}, {"read"}, True),
    "full": ({"access": "full"}, {"read", "send", "full"}, False),
}
"""The kinds of keys: their parameters, what they may do, and whether they see only a part."""


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every operation that needs an account: its method, path, and description."""
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            if "x-access-key" in operation:
                yield method.upper(), re.sub(r"{\w+}", "1", path), operation


@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_of_key_at_every_endpoint(org: Organization, kind: str) -> None:
    scope, uses, is_limited = KINDS[kind]
    ann = org["ann"]
    await org.channel("kitchen", "ann")
    program = await create_key(ann, **scope)
    before, refused = org.node.state.seq, 0
    asked = sorted(operations(), key=lambda one: one[2]["x-access-key"] in uses)
    for method, path, operation in asked:
        suffices = operation["x-access-key"] in uses and (
            not is_limited or operation["x-access-key-limited"]
        )
        reply = await program.raw(method, path.removeprefix("/api/v1"))
        is_refused = reply.body.get("code") == INSUFFICIENT
        assert is_refused is not suffices, (method, path, reply.body)
        if is_refused:
            assert reply.status == 403
            refused += 1
    assert refused
    if kind in {"read", "no directs"}:
        used = org.node.state.seq - before
        assert used <= 1, "a key that only reads changed something"


def test_the_documentation_lists_what_needs_send() -> None:
    page = (Path(__file__).parents[2] / "docs/integrating.md").read_text()
    part = page.partition("These operations need `send`")[2].partition("\n- **")[0]
    listed = re.findall(r"`([A-Z]+) (\S+)`( \*)?", part.partition("\n\n")[2])
    needed = [
        (route.method, route.path.replace(":int", ""), not route.reached)
        for route in ROUTES
        if route.key_use is KeyUse.SEND
    ]
    assert sorted((method, path, bool(star)) for method, path, star in listed) == sorted(needed)


OPENS_ACCOUNTS = re.compile(
    "key|agent|session|factor|export|deactivate|password|identit|audit|secret|recovery"
)
HARMLESS = {
    ("POST", "/user_groups/{user_group_id:int}/deactivate"),
}


def test_no_key_may_call_what_opens_accounts() -> None:
    """If this fails for a new endpoint, declare it with `keys=NEVER`, or add it to `HARMLESS` if it
    neither shows nor changes a way into an account."""
    for route in ROUTES:
        opens = OPENS_ACCOUNTS.search(route.path) and (route.method, route.path) not in HARMLESS
        if opens and route.access is not Access.ANYONE:
            assert route.key_use is KeyUse.NEVER, (route.method, route.path)


SECRETS = re.compile("(api_key|token|secret|recovery_codes|password)$")
SHOWN_TO_ALL = {"has_secret"}
EMPTY_FOR_KEYS = {("/events", "token"), ("/register", "token")}
"""See `test_a_key_does_not_get_the_tokens_of_bots`."""


def test_no_key_may_read_secrets() -> None:
    """If this fails for a new endpoint, declare it with `keys=NEVER`: its response has a secret
    that opens an account."""
    shown = document()
    for path, methods in shown["paths"].items():
        for method, operation in methods.items():
            if operation.get("x-access-key", "never") != "never":
                response = operation["responses"].get("200", {})
                found = {
                    name
                    for name in field_names(shown, response)
                    if SECRETS.search(name) and (path, name) not in EMPTY_FOR_KEYS
                }
                assert not found - SHOWN_TO_ALL, (method, path, found)


async def test_a_key_does_not_get_the_tokens_of_bots(org: Organization) -> None:
    ben = org["ben"]
    key = await create_key(ben, access="read")
    queues = [await person.register(event_types=["realm_bot"]) for person in (key, ben)]
    bot = {"full_name": "Hal", "short_name": "hal", "bot_type": 3, "payload_url": '"http://x.test"'}
    bot_id = (await ben.post("/bots", **bot)).ok["user_id"]
    (await ben.patch(f"/bots/{bot_id}/service", new_token=True)).ok
    by_key, by_ben = [
        [event["bot"]["services"][0]["token"] for event in await queue.events()] for queue in queues
    ]
    assert by_key == ["", ""]
    assert len(set(by_ben) - {""}) == 2
    bots = (await key.register(fetch_event_types=["realm_bot"])).data["realm_bots"]
    assert [one["services"][0]["token"] for one in bots if one["user_id"] == bot_id] == [""]


def field_names(shown: dict[str, Any], part: Any, seen: frozenset[str] = frozenset()) -> set[str]:
    """The names of all fields in a part of the document."""
    if isinstance(part, list):
        return {name for one in part for name in field_names(shown, one, seen)}
    if not isinstance(part, dict):
        return set()
    found = set(part.get("properties", ()))
    for value in part.values():
        found |= field_names(shown, value, seen)
    reference = part.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        place = shown
        for name in reference.removeprefix("#/").split("/"):
            place = place[name]
        found |= field_names(shown, place, seen | {reference})
    return found


@rows(("role", "is_allowed"), [(100, False), (200, False), (300, True), (400, True)])
async def test_a_key_cannot_invite_administrators(
    org: Organization, role: int, is_allowed: bool
) -> None:
    """Someone with a stolen key could make an account that can do more than the key."""
    ann = org["ann"]
    program = await create_key(ann, f"Key {role}")
    for path, sent in (
        ("/invites/multiuse", {}),
        ("/invites", {"invitee_emails": f"zoe{role}@example.com", "stream_ids": []}),
    ):
        reply = await program.post(path, invite_as=role, **sent)
        if is_allowed:
            reply.ok
        else:
            reply.refused(INSUFFICIENT, 403)
            (await ann.post(path, invite_as=role, **sent)).ok


async def test_a_key_with_full_access_cannot_take_over_the_account(org: Organization) -> None:
    ann = org["ann"]
    program = await create_key(ann)
    (await program.patch("/settings", email="new@example.com")).refused(INSUFFICIENT, 403)
    (
        await program.patch("/settings", old_password="wrong", new_password="zebra umbrella 9")
    ).refused(INSUFFICIENT, 403)
    (await program.patch(f"/users/{org['ben'].user_id}", role=200)).refused(INSUFFICIENT, 403)
    (await program.patch("/settings", full_name="Anna")).ok


async def test_a_key_that_sends_works_with_its_owner_s_messages_only(org: Organization) -> None:
    ann = org["ann"]
    channel = await org.channel("kitchen", "ann", "ben")
    program = await create_key(ann, access="send")
    own, other = await program.send(channel, "x", "hi"), await org["ben"].send(channel, "x", "ho")
    (await program.patch(f"/messages/{own}", content="hello")).ok
    for asked in ({"topic": "y"}, {"topic": "y", "content": "hello"}, {"stream_id": channel}):
        (await program.patch(f"/messages/{own}", **asked)).refused(INSUFFICIENT, 403)
    (await program.delete(f"/messages/{other}")).refused(INSUFFICIENT, 403)
    (await program.delete(f"/messages/{own}")).ok
    (await ann.delete(f"/messages/{other}")).ok


async def test_a_key_cannot_change_who_can_join_and_sign_in(org: Organization) -> None:
    ann = org["ann"]
    program = await create_key(ann)
    (await program.patch("/realm", description="Soup")).ok
    for name, value in (
        ("invite_required", False),
        ("account_api_keys", True),
        ("second_factor_required_for", "everyone"),
        ("authentication_methods", {"Email": True}),
        ("message_retention_days", 30),
    ):
        reply = await program.patch("/realm", **{name: value}, description="Stew")
        reply.refused(INSUFFICIENT, 403)
    assert org.node.state.realm.description == "Soup"
    account = {"email": "zoe@example.com", "password": PASSWORD, "full_name": "Zoe"}
    (await program.post("/users", **account)).refused(INSUFFICIENT, 403)
    (await program.post("/realm/domains", domain="x.com", allow_subdomains=True)).refused(
        INSUFFICIENT, 403
    )


# When keys end


@pytest.mark.parametrize("ends", ["revoked", "new key", "deactivated", "by the operator"])
async def test_a_key_ends_with_its_queues_and_polls(org: Organization, ends: str) -> None:
    ann, ben = org["ann"], org["ben"]
    program = await create_key(ben, access="read")
    listener = await program.register(event_types=["message"])
    await listener.events()
    poll = asyncio.create_task(program.get("/events", queue_id=listener.queue_id, last_event_id=-1))
    await until(lambda: org.node.delivery.waiting > 0)
    match ends:
        case "revoked":
            (await ben.delete(f"/users/me/keys/{(await listed(ben))[0]['key_id']}")).ok
        case "new key":
            (await ben.post("/users/me/api_key/regenerate")).ok
        case "deactivated":
            (await ann.delete(f"/users/{ben.user_id}")).ok
        case "by the operator":
            new = org.node.vault.new_key()
            await org.node.log.submit(None, sessions.end_access, ben.user_id, new)
    assert (await poll).status == 401
    (await program.get("/users/me")).refused("INVALID_API_KEY", status=401)
    assert org.node.delivery.queues.get(listener.queue_id) is None
    assert org.node.state.access_keys.of_user[ben.user_id] == ()


@pytest.mark.parametrize("ends_keys", [False, True])
async def test_a_new_password_ends_all_keys_if_wanted(org: Organization, ends_keys: bool) -> None:
    ann = org["ann"]
    program = await create_key(ann)
    agent = (await ann.post("/agents", name="Helper")).ok["agent"]["id"]
    sent = {"old_password": PASSWORD, "new_password": "zebra umbrella 9", "end_keys": ends_keys}
    (await ann.patch("/settings", **sent)).ok
    for person in (ann, program):
        reply = await person.get("/users/me")
        if ends_keys:
            reply.refused("INVALID_API_KEY", status=401)
        else:
            reply.ok
    assert (agent in org.node.state.access_keys) is not ends_keys


async def test_keys_end_only_with_a_new_password(org: Organization) -> None:
    reply = await org["ann"].patch("/settings", end_keys=True, full_name="Anna")
    assert reply.ok["ignored_parameters_unsupported"] == ["end_keys"]
    (await org["ann"].get("/users/me")).ok


async def test_an_expired_key_is_refused_and_swept(config: Config) -> None:
    clock = TestClock(stopped_at=1_790_000_000)
    async with new_organization(config, clock=clock) as org:
        program = await create_key(org["ann"], expires_at=1_790_000_060)
        (await program.get("/users/me")).ok
        assert access_keys.next_expiry(org.node.state, clock()) == 1_790_000_060
        clock.ahead = 60
        (await program.get("/users/me")).refused("INVALID_API_KEY", status=401)
        await org.node.log.submit(None, access_keys.expire)
        assert await listed(org["ann"]) == []
        assert access_keys.next_expiry(org.node.state, clock()) is None


async def test_a_queue_belongs_to_the_key_that_registered_it(org: Organization) -> None:
    ann = org["ann"]
    first, second = await create_key(ann), await create_key(ann, "Phone")
    owners = {}
    for person in (ann, first, second):
        owners[(await person.register(event_types=["message"])).queue_id] = person
    for queue_id, owner in owners.items():
        for person in (ann, first, second):
            if person is not owner:
                asked = {"queue_id": queue_id, "last_event_id": -1, "dont_block": True}
                (await person.get("/events", **asked)).refused("BAD_EVENT_QUEUE_ID")
                (await person.delete("/events", queue_id=queue_id)).refused("BAD_EVENT_QUEUE_ID")
    await ann.write([org["ben"].user_id], "hello")
    for queue_id, owner in owners.items():
        asked = {"queue_id": queue_id, "last_event_id": -1, "dont_block": True}
        (event,) = (await owner.get("/events", **asked)).ok["events"]
        assert event["type"] == "message"


async def test_push_subscriptions_end_with_their_key(org: Organization) -> None:
    ann = org["ann"]
    first, second = await create_key(ann), await create_key(ann, "Phone")
    for n, person in enumerate((first, second, ann)):
        keys = {**Browser().keys, "endpoint": f"https://push.example.com/{n}"}
        (await person.post("/push_subscriptions", **keys)).ok
    (await ann.delete(f"/users/me/keys/{(await listed(ann))[1]['key_id']}")).ok
    (await first.get("/users/me")).refused("INVALID_API_KEY", status=401)
    kept = org.node.state.push_subscriptions.of_user[ann.user_id]
    assert sorted(one.endpoint[-1] for one in kept) == ["1", "2"]


# Without personal API keys


async def sign_in(org: Organization, agent: str = "ZulipMobile/27.1 (iOS)") -> Person:
    """Sign ann in with a program of this name."""
    ann, headers = org["ann"], {"User-Agent": agent}
    sent = {"username": ann.email, "password": PASSWORD}
    key = (await org.nobody.raw("POST", "/fetch_api_key", data=sent, headers=headers)).ok
    return Person(org.http, ann.user_id, ann.email, key["api_key"])


async def test_an_organization_can_refuse_people_s_own_api_keys(org: Organization) -> None:
    ann, robo = org["ann"], org["robo"]
    (await org["ben"].patch("/realm", account_api_keys=False)).refused("UNAUTHORIZED_PRINCIPAL")
    assert (await sign_in(org)).api_key == ann.api_key
    listener = await org["ben"].register(event_types=["message"])
    poll = asyncio.create_task(
        org["ben"].get("/events", queue_id=listener.queue_id, last_event_id=-1)
    )
    await until(lambda: org.node.delivery.waiting > 0)
    (await ann.patch("/realm", account_api_keys=False)).ok
    (await poll).refused("INVALID_API_KEY", status=401)
    (await ann.get("/users/me")).refused("INVALID_API_KEY", status=401)
    (await robo.get("/users/me")).ok
    phone, other = await sign_in(org), await sign_in(org)
    assert len({phone.api_key, other.api_key, ann.api_key}) == 3
    assert len(phone.api_key) == 32, "some clients rely on it"
    for program in (phone, other):
        (await program.get("/users/me")).ok
    await org.change_realm(account_api_keys=True)
    assert [one["name"] for one in await listed(ann)] == ["ZulipMobile 2", "ZulipMobile"]
    assert {one["access"] for one in await listed(ann)} == {"full"}
    (await ann.get("/users/me")).ok


async def test_clients_that_sign_in_replace_the_least_recently_used(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_keys, "MAX_KEYS", 2)
    await create_key(org["ann"])
    await org.change_realm(account_api_keys=False)
    first = await sign_in(org, "")
    second = await sign_in(org, "Terminal/1")
    (await first.get("/users/me")).refused("INVALID_API_KEY", status=401)
    (await second.get("/users/me")).ok
    names = [key.name for key in org.node.state.access_keys.of_user[org["ann"].user_id]]
    assert sorted(names) == ["Laptop", "Terminal"]
