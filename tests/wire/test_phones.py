"""Encrypted push notifications to phones, through a push bouncer."""

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tertulia.app import composition
from tertulia.outbound.push_bouncer import MAX_PAYLOAD
from tertulia.service.config import Config
from tertulia.service.notifications.notifier import Notifier
from tertulia.service.notifications.phones import (
    FIRST_PAUSE,
    GIVEN_UP_SECONDS,
    PhoneRegistrations,
)
from tertulia.service.notifications.push import PushChannel
from tertulia.service.notifications.push_sender import PushSender
from tests.conftest import OTHERS
from tests.push_bouncer import NOTIFY, REGISTER, Bouncer, Phone, push_bouncer
from tests.support import Organization, TestClock, new_organization, rows

PATH = "/mobile_push/register"
TEST = "/mobile_push/e2ee/test_notification"
FIELDS = (
    *("push_key_id", "push_token_id", "pending_push_token_id"),
    "push_registration_error_code",
)


class Phones:
    """An organization with a push bouncer, and a clock that tests set."""

    def __init__(self, org: Organization, clock: TestClock, bouncer: Bouncer) -> None:
        self.org, self.clock, self.bouncer = org, clock, bouncer
        node = org.node
        self.registrations = PhoneRegistrations(node)
        self.sender = PushSender(node)
        channel = PushChannel(node.log, lambda: None)
        self.notices = Notifier(node.log, node.delivery.presence, [channel])
        node.log.subscribers.followers.append(self.sender.follow)

    async def device(self, who: str = "ben") -> int:
        found: int = (await self.org[who].post("/register_client_device")).ok["device_id"]
        return found

    async def add(self, phone: Phone, who: str = "ben") -> int:
        """Register a phone, and return its device's ID."""
        device_id = await self.device(who)
        parameters = {**phone.key_parameters, **phone.token_parameters(self.bouncer)}
        (await self.org[who].post(PATH, device_id=device_id, **parameters)).ok
        await self.registrations.once()
        return device_id

    async def status(self, device_id: int, who: str = "ben") -> tuple[Any, ...]:
        devices = (await self.org[who].register(fetch_event_types=["device"])).data["devices"]
        return tuple(devices[str(device_id)][name] for name in FIELDS)

    async def notified(self) -> list[dict[str, Any]]:
        """The push requests of the next round."""
        self.bouncer.notified.clear()
        for _ in range(2):
            await self.notices.once()
        for _ in range(3):
            await self.sender.once()
            await self.sender.tasks.settled()
        return list(self.bouncer.notified)


@pytest.fixture
async def phones(config: Config, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Phones]:
    # Nodes' background tasks run only when the test says so.
    monkeypatch.setattr(composition, "jobs_of", lambda *_: ())
    clock = TestClock()
    clock.stopped_at = clock()
    async with push_bouncer() as bouncer:
        settings: dict[str, Any] = {
            "push_bouncer_url": f"{bouncer.url}/",
            "push_bouncer_id": "server-1",
            "push_bouncer_key": "hush",
            "web_push": False,
            "external_url": "https://chat.test",
        }
        config = msgspec.structs.replace(config, **settings)
        async with new_organization(config, clock=clock, others=OTHERS) as org:
            await org.channel("kitchen", "ann", "ben", "cleo")
            yield Phones(org, clock, bouncer)


async def test_register_says_that_phones_can_be_notified(phones: Phones) -> None:
    data = (await phones.org["ben"].register()).data
    assert data["realm_push_notifications_enabled"] is True
    settings = (await phones.org.nobody.get("/server_settings")).ok
    assert settings["push_notifications_enabled"] is True


async def test_a_phone_registers_and_rotates_its_key_and_its_token(phones: Phones) -> None:
    ben = phones.org["ben"]
    events = await ben.register(event_types=["device"])
    phone = Phone("token one")
    device_id = await phones.device()
    parameters = {**phone.key_parameters, **phone.token_parameters(phones.bouncer)}
    (await ben.post(PATH, device_id=device_id, **parameters)).ok
    assert await phones.status(device_id) == (7, None, phone.token_id, None)
    await phones.registrations.once()
    assert await phones.status(device_id) == (7, phone.token_id, None, None)
    assert phones.bouncer.tokens[phone.token_id]["token"] == "token one"
    requests = len(phones.bouncer.bodies)
    (await ben.post(PATH, device_id=device_id, **parameters)).ok  # It is the same.
    await phones.registrations.once()
    assert len(phones.bouncer.bodies) == requests
    other = Phone("token two", key=b"o" * 32, key_id=2**32 - 1)
    (await ben.post(PATH, device_id=device_id, **other.key_parameters)).ok
    assert await phones.status(device_id) == (2**32 - 1, phone.token_id, None, None)
    (await ben.post(PATH, device_id=device_id, **other.token_parameters(phones.bouncer))).ok
    assert await phones.status(device_id) == (2**32 - 1, phone.token_id, other.token_id, None)
    await phones.registrations.once()
    assert await phones.status(device_id) == (2**32 - 1, other.token_id, None, None)
    told = [{k: v for k, v in event.items() if k != "id"} for event in await events.events()]
    at = int(phones.clock())
    base = {"type": "device", "device_id": device_id}
    update = {**base, "op": "update"}
    assert told == [
        {**base, "op": "add"},
        {
            **update,
            "push_key_id": 7,
            "pending_push_token_id": phone.token_id,
            "push_token_last_updated_timestamp": at,
        },
        {**update, "push_token_id": phone.token_id, "pending_push_token_id": None},
        {**update, "push_key_id": 2**32 - 1},
        {**update, "pending_push_token_id": other.token_id},
        {**update, "push_token_id": other.token_id, "pending_push_token_id": None},
    ]


KEY = Phone("x").key_parameters
TOKEN = Phone("x").token_parameters(Bouncer())


@rows(
    "parameters",
    [
        {},
        KEY,
        TOKEN,
        {**TOKEN, "push_key_id": 1},
        {**TOKEN, "push_key": KEY["push_key"]},
        {**TOKEN, **KEY, "push_key_id": -1},
        {**TOKEN, **KEY, "push_key_id": 2**32},
        {**TOKEN, **KEY, "push_key": "MTaU"},
        {**TOKEN, **KEY, "push_key": "*"},
        {**TOKEN, **KEY, "push_key": "Mj" + KEY["push_key"][2:]},
        {**TOKEN, **KEY, "token_id": "AAAA"},
        {**TOKEN, **KEY, "token_id": "ü"},
        {**TOKEN, **KEY, "bouncer_public_key": ""},
        {**TOKEN, **KEY, "encrypted_push_registration": "x" * 10_001},
        {**KEY, "token_kind": "fcm"},
        {**KEY, "token_kind": "fcm", "token_id": TOKEN["token_id"]},
    ],
)
async def test_incomplete_and_invalid_registrations_are_refused(
    phones: Phones, parameters: dict[str, Any]
) -> None:
    device_id = await phones.device()
    (await phones.org["ben"].post(PATH, device_id=device_id, **parameters)).refused()
    assert await phones.status(device_id) == (None, None, None, None)


async def test_a_device_of_somebody_else_cannot_be_registered(phones: Phones) -> None:
    device_id = await phones.device("ann")
    parameters = {"device_id": device_id, **KEY, **TOKEN}
    (await phones.org["ben"].post(PATH, **parameters)).refused()
    (await phones.org["ben"].post(TEST, device_id=device_id)).refused()


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("INVALID_BOUNCER_PUBLIC_KEY", "INVALID_BOUNCER_PUBLIC_KEY"),
        ("REQUEST_EXPIRED", "REQUEST_EXPIRED"),
        ("BAD_REQUEST", "INVALID_ENCRYPTED_PUSH_REGISTRATION"),
    ],
)
async def test_a_refused_phone_says_why_and_can_try_again(
    phones: Phones, code: str, shown: str
) -> None:
    phone = Phone("token")
    phones.bouncer.answers[REGISTER] = 400, {"result": "error", "code": code, "msg": "No"}
    device_id = await phones.add(phone)
    assert await phones.status(device_id) == (7, None, phone.token_id, shown)
    requests = len(phones.bouncer.bodies)
    await phones.registrations.once()
    assert len(phones.bouncer.bodies) == requests
    phones.bouncer.answers.clear()
    again = phone.token_parameters(phones.bouncer)
    (await phones.org["ben"].post(PATH, device_id=device_id, **again)).ok
    await phones.registrations.once()
    assert await phones.status(device_id) == (7, phone.token_id, None, None)


@pytest.mark.parametrize("answer", [(500, b"oops"), (401, {}), (403, {}), (429, b"\xff")])
async def test_a_bouncer_that_fails_is_asked_again_for_a_day(
    phones: Phones, answer: tuple[int, Any]
) -> None:
    phones.bouncer.answers[REGISTER] = answer
    phone = Phone("token")
    device_id = await phones.add(phone)
    assert await phones.status(device_id) == (7, None, phone.token_id, None)
    assert len(phones.bouncer.bodies) == 1
    await phones.registrations.once()
    assert len(phones.bouncer.bodies) == 1
    phones.clock.stopped_at = phones.clock() + FIRST_PAUSE
    await phones.registrations.once()
    assert len(phones.bouncer.bodies) == 2
    phones.clock.stopped_at = phones.clock() + GIVEN_UP_SECONDS
    await phones.registrations.once()
    assert await phones.status(device_id) == (7, None, phone.token_id, "REQUEST_EXPIRED")


async def test_a_direct_message_reaches_the_phone_and_is_removed_when_read(phones: Phones) -> None:
    ann, ben = phones.org["ann"], phones.org["ben"]
    phone = Phone("token")
    await phones.add(phone)
    first = await ann.write([ben.user_id], "Are you *there*?")
    (request,) = await phones.notified()
    assert request["fcm_priority"] == "high"
    assert b"there" not in phones.bouncer.bodies[-1]
    assert phone.read(request) == {
        "type": "message",
        "realm_name": phones.org.node.state.realm.name,
        "realm_url": "https://chat.test",
        "user_id": ben.user_id,
        "message_id": first,
        "sender_id": ann.user_id,
        "sender_full_name": "Ann",
        "sender_avatar_url": f"https://chat.test/user_avatars/1/drawn/{ann.user_id}-A.png?version=1",
        "time": int(phones.clock()),
        "content": "Are you there?",
        "recipient_type": "direct",
    }
    assert json.loads(phones.bouncer.bodies[-1])["realm_uuid"] == phones.org.node.state.realm.uuid
    second = await ann.write([ben.user_id], "Hello?")
    (request,) = await phones.notified()  # Not the first one again.
    assert phone.read(request)["message_id"] == second
    (await ben.post("/messages/flags", messages=[first, second], op="add", flag="read")).ok
    (request,) = await phones.notified()
    assert phone.read(request) == {
        "type": "remove",
        "realm_name": phones.org.node.state.realm.name,
        "realm_url": "https://chat.test",
        "user_id": ben.user_id,
        "message_ids": [first, second],
    }
    assert await phones.notified() == []


async def test_a_mention_in_a_channel_reaches_an_apple_phone(phones: Phones) -> None:
    phone = Phone("token", kind="apns")
    await phones.add(phone)
    text = "@**Ben** " + "ü" * 5_000
    message_id = await phones.org["ann"].send("kitchen", "tea", text)
    (request,) = await phones.notified()
    assert request["http_headers"] == {"apns_priority": 10, "apns_push_type": "alert"}
    assert request["payload"]["aps"]["mutable-content"] == 1
    told = phone.read(request)
    assert (told["message_id"], told["recipient_type"]) == (message_id, "channel")
    assert (told["channel_name"], told["topic"]) == ("kitchen", "tea")
    assert len(told["content"]) <= 200
    assert len(json.dumps(request)) <= 4096
    (await phones.org["ben"].post("/mark_all_as_read")).ok
    (request,) = await phones.notified()
    assert request["http_headers"] == {"apns_priority": 5, "apns_push_type": "background"}
    assert phone.read(request)["type"] == "remove"


async def test_a_group_message_names_its_members(phones: Phones) -> None:
    phone = Phone("token")
    await phones.add(phone)
    people = [phones.org[who].user_id for who in ("ann", "ben", "cleo")]
    await phones.org["ann"].write(people[1:], "Hello")
    (request,) = await phones.notified()
    assert phone.read(request)["pm_users"] == ",".join(map(str, sorted(people)))


async def test_the_longest_names_fit(phones: Phones) -> None:
    phone = Phone("token")
    await phones.add(phone)
    topic = "\U0001f600" * 60
    await phones.org["ann"].send("kitchen", topic, "@**Ben** " + "\U0001f600" * 9_000)
    (request,) = await phones.notified()
    told = phone.read(request)
    assert told["topic"] == topic
    assert len(msgspec.json.encode(told)) <= MAX_PAYLOAD


async def test_hidden_content_stays_here(phones: Phones) -> None:
    await phones.org.change_realm(message_content_allowed_in_email_notifications=False)
    phone = Phone("token")
    await phones.add(phone)
    await phones.org["ann"].write([phones.org["ben"].user_id], "secret")
    (request,) = await phones.notified()
    assert phone.read(request)["content"] == "New message"


@pytest.mark.parametrize("answer", [(500, b"oops"), (403, {"code": "MISSING_REMOTE_REALM"})])
async def test_notifications_wait_for_a_bouncer_that_fails(
    phones: Phones, answer: tuple[int, Any]
) -> None:
    phone = Phone("token")
    await phones.add(phone)
    phones.bouncer.answers[NOTIFY] = answer
    await phones.org["ann"].write([phones.org["ben"].user_id], "one")
    assert await phones.notified() == []
    phones.bouncer.answers.clear()
    phones.clock.stopped_at = phones.clock() + 60
    (request,) = await phones.notified()
    assert phone.read(request)["content"] == "one"


@pytest.mark.parametrize("body", [b"", b"not JSON", b"\xff", b'{"delete_token_ids": 3}', b"[]"])
async def test_a_bouncer_that_talks_nonsense_loses_nothing(phones: Phones, body: bytes) -> None:
    phone = Phone("token")
    device_id = await phones.add(phone)
    phones.bouncer.answers[NOTIFY] = 200, body
    await phones.org["ann"].write([phones.org["ben"].user_id], "one")
    await phones.notified()
    assert (await phones.status(device_id))[1] == phone.token_id


async def test_a_phone_that_is_gone_is_forgotten(phones: Phones) -> None:
    phone, other = Phone("token"), Phone("other")
    device_id = await phones.add(phone)
    kept = await phones.add(other)
    del phones.bouncer.tokens[phone.token_id]
    await phones.org["ann"].write([phones.org["ben"].user_id], "one")
    await phones.notified()
    assert await phones.status(device_id) == (None, None, None, None)
    assert (await phones.status(kept))[1] == other.token_id
    await phones.org["ann"].write([phones.org["ben"].user_id], "two")
    (request,) = await phones.notified()
    assert other.read(request)["content"] == "two"


async def test_a_test_notification(phones: Phones) -> None:
    ben, phone = phones.org["ben"], Phone("token")
    (await ben.post(TEST)).refused("NO_ACTIVE_PUSH_DEVICE")
    device_id = await phones.add(phone)
    without = await phones.device()
    for more in ({}, {"device_id": device_id}):
        phones.bouncer.notified.clear()
        (await ben.post(TEST, **more)).ok
        (request,) = phones.bouncer.notified
        assert phone.read(request)["type"] == "test"
    (await ben.post(TEST, device_id=without)).refused("NO_ACTIVE_PUSH_DEVICE")
    (await phones.org["ann"].post(TEST)).refused("NO_ACTIVE_PUSH_DEVICE")
    phones.bouncer.answers[NOTIFY] = 500, b""
    (await ben.post(TEST)).refused("INTERNAL_SERVER_ERROR_ON_BOUNCER", 502)
    phones.bouncer.answers[NOTIFY] = 401, b""
    (await ben.post(TEST)).refused("ADMIN_ACTION_REQUIRED", 403)
    phones.bouncer.answers.clear()
    phones.bouncer.tokens.clear()
    (await ben.post(TEST)).refused("NO_ACTIVE_PUSH_DEVICE")
    assert await phones.status(device_id) == (None, None, None, None)


async def test_an_unreachable_bouncer_is_an_honest_error(phones: Phones) -> None:
    await phones.add(Phone("token"))
    config = phones.org.node.config
    gone = msgspec.structs.replace(config, push_bouncer_url="http://127.0.0.1:1")
    object.__setattr__(phones.org.node, "config", gone)
    refused = (await phones.org["ben"].post(TEST)).refused("FAILED_TO_CONNECT_BOUNCER", 502)
    assert "hush" not in refused["msg"]


async def test_the_phone_is_listed_with_other_devices_and_can_be_paused_and_removed(
    phones: Phones,
) -> None:
    ben, phone = phones.org["ben"], Phone("token")
    device_id = await phones.add(phone)
    (listed,) = (await ben.get("/push_subscriptions")).ok["subscriptions"]
    assert (listed["name"], listed["service"]) == ("Android app", "")
    path = f"/push_subscriptions/{listed['id']}"
    phones.bouncer.notified.clear()
    (await ben.post(f"{path}/test")).ok
    assert phone.read(phones.bouncer.notified[0])["type"] == "test"
    (await ben.patch(path, paused_until=int(phones.clock()) + 60)).ok
    await phones.org["ann"].write([ben.user_id], "one")
    assert await phones.notified() == []
    events = await ben.register(event_types=["device"])
    (await ben.delete(path)).ok
    assert await phones.status(device_id) == (None, None, None, None)
    (event,) = await events.events()
    assert (event["push_key_id"], event["push_token_id"]) == (None, None)


@pytest.mark.parametrize("end", ["device", "key", "deactivation"])
async def test_notifications_end_with_the_device_and_the_key(phones: Phones, end: str) -> None:
    ben = phones.org["ben"]
    device_id = await phones.add(Phone("token"))
    state = phones.org.node.state
    if end == "device":
        (await ben.post("/remove_client_device", device_id=device_id)).ok
        assert device_id not in state.devices
    elif end == "key":
        (await ben.post("/users/me/api_key/regenerate")).ok
        assert state.devices[device_id].push is None
    else:
        (await phones.org["ann"].delete(f"/users/{ben.user_id}")).ok
        assert state.devices[device_id].push is None
    assert not state.push_subscriptions.of_user[ben.user_id]
    await phones.org["ann"].send("kitchen", "tea", "@**all** hello")
    assert await phones.notified() == []


async def test_the_token_no_longer_counts_for_unencrypted_notifications(phones: Phones) -> None:
    ben = phones.org["ben"]
    for token in ("token", "other"):
        (await ben.post("/users/me/android_gcm_reg_id", token=token)).ok
    await phones.add(Phone("token"))
    left = [one.token for one in phones.org.node.state.push_tokens.of_user[ben.user_id]]
    assert left == ["other"]
