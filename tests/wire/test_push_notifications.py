"""Push notifications: recipients, content, removal, and push services that fail."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tertulia.app import composition
from tertulia.domain.accounts import pushes as subscriptions
from tertulia.model.changes import RealmChanged, SessionBegun, SessionsEnded
from tertulia.model.sessions import Session
from tertulia.outbound.web_push import MAX_PAYLOAD, PushKey, encrypted
from tertulia.service.config import Config
from tertulia.service.notifications.notifier import Notifier
from tertulia.service.notifications.push import PushChannel
from tertulia.service.notifications.push_sender import (
    FIRST_PAUSE,
    LIVES_SECONDS,
    MAX_CONCURRENT,
    PER_PERSON,
    PushSender,
)
from tertulia.store import pushes
from tests.conftest import OTHERS
from tests.push_service import Browser, Pushed, PushService, data, push_service, text
from tests.support import Organization, Person, TestClock, new_organization, until

KEYS = Browser().keys


class Phones:
    """An organization with a clock that tests set, and a push service."""

    def __init__(self, org: Organization, clock: TestClock, service: PushService) -> None:
        self.org = org
        self.clock = clock
        self.service = service
        node = org.node
        self.browser = Browser()
        self.sender = PushSender(node)
        channels = PushChannel(node.log, lambda: None)
        self.notices = Notifier(node.log, node.delivery.presence, [channels])
        node.log.subscribers.followers.append(self.sender.follow)

    async def add(self, who: str, path: str = "/phone", **more: Any) -> int:
        """A device of someone's."""
        endpoint = self.service.url + path
        reply = await self.org[who].post(
            "/push_subscriptions", endpoint=endpoint, name="Phone", **self.browser.keys, **more
        )
        found: int = reply.ok["subscription"]["id"]
        return found

    async def round(self) -> None:
        """Do everything that is due."""
        await self.notices.once()
        await self.notices.once()
        for _ in range(3):
            await self.sender.once()
            await self.sender.tasks.settled()

    async def pushed(self) -> list[Pushed]:
        """The pushes of the next run."""
        self.service.pushed.clear()
        await self.round()
        return list(self.service.pushed)

    async def told(self) -> list[dict[str, Any]]:
        """The same, decrypted."""
        return [self.read(one) for one in await self.pushed()]

    def read(self, one: Pushed) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.browser.decrypted(one.body))
        return found

    async def listed(self, who: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.org[who].get("/push_subscriptions")).ok[
            "subscriptions"
        ]
        return found


@pytest.fixture
async def phones(config: Config, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Phones]:
    # Nodes' background tasks run only when the test says so.
    monkeypatch.setattr(composition, "jobs_of", lambda *_: ())
    config = msgspec.structs.replace(config, web_push_networks="127.0.0.1")
    clock = TestClock()
    clock.stopped_at = clock()
    async with (
        new_organization(config, clock=clock, others=OTHERS) as org,
        push_service() as service,
    ):
        await org.channel("kitchen", "ann", "ben", "cleo")
        yield Phones(org, clock, service)


def test_encryption_matches_the_specification() -> None:
    # RFC 8291, section 5.
    from cryptography.hazmat.primitives.asymmetric import ec

    number = int.from_bytes(data("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"), "big")
    browser = Browser(ec.derive_private_key(number, ec.SECP256R1()), data("BTBZMqHH6r4Tts7J_aSIgg"))
    body = data(
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml"
        "mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
        "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
    assert browser.decrypted(body) == b"When I grow up, I want to be a watermelon"
    keys = {name: data(value) for name, value in browser.keys.items()}
    longest = b"x" * MAX_PAYLOAD
    sealed = encrypted(longest, **keys)
    assert browser.decrypted(sealed) == longest
    assert len(sealed) <= 4096
    # The length doesn't reveal how short a message was.
    assert len(encrypted(b"a", **keys)) == len(encrypted(b"a" * 200, **keys))
    with pytest.raises(ValueError, match="too long"):
        encrypted(longest + b"x", **keys)
    assert PushKey(b"one").public == PushKey(b"one").public != PushKey(b"other").public


async def test_a_direct_message_is_pushed_immediately_and_removed_when_read(
    phones: Phones,
) -> None:
    ann, ben = phones.org["ann"], phones.org["ben"]
    await phones.add("ben")
    first = await ann.write([ben.user_id], "Are you *there*?")
    (one,) = await phones.pushed()
    key = (await ben.get("/push_subscriptions")).ok["public_key"]
    claims = one.verified(key)
    assert (claims["aud"], claims["sub"]) == (phones.service.url, "mailto:noreply@chat.test")
    assert 0 < claims["exp"] - phones.clock() <= 86400
    topic = one.headers["topic"]
    assert len(topic) <= 32
    assert (one.headers["ttl"], one.headers["urgency"]) == (str(LIVES_SECONDS), "high")
    assert one.headers["content-encoding"] == "aes128gcm"
    told = phones.read(one)
    assert (told["title"], told["body"]) == ("Ann", "Are you there?")
    assert (told["tag"], told["message_ids"], told["badge"]) == (f"d{ann.user_id}", [first], 1)
    assert told["to"] == {"user_ids": [ann.user_id]}
    assert told["url"].endswith(f"/near/{first}")
    assert await phones.told() == []
    # A newer push replaces the first one, at the push service, too.
    second = await ann.write([ben.user_id], "Hello?")
    (one,) = await phones.pushed()
    assert one.headers["topic"] == topic
    told = phones.read(one)
    assert (told["body"], told["badge"]) == ("Are you there?\nHello?", 2)
    await ben.post("/messages/flags", messages=[first], op="add", flag="read")
    assert await phones.told() == []
    await ben.post("/messages/flags", messages=[second], op="add", flag="read")
    (one,) = await phones.pushed()
    assert one.headers["topic"] == topic
    told = phones.read(one)
    assert told == {"type": "read", "tag": f"d{ann.user_id}", "badge": 0, "open": []}
    assert await phones.told() == []
    (shown,) = await phones.listed("ben")
    assert shown["last_pushed_at"] == int(phones.clock())
    assert shown["trouble"] == ""
    assert phones.org.node.pushed == {"pushed": 3}


async def test_who_gets_pushes_about_channels_and_what_is_left_out(phones: Phones) -> None:
    ann, ben, cleo = (phones.org[name] for name in ("ann", "ben", "cleo"))
    kitchen = phones.org.node.state.channel_named("kitchen")
    assert kitchen is not None
    channel_id = kitchen.id
    await phones.add("ben")
    await phones.add("cleo", "/cleo")
    await ann.send(channel_id, "cups", "Who brings the cups?")
    assert await phones.told() == []
    mine = {"stream_id": channel_id, "property": "push_notifications", "value": True}
    (await cleo.post("/users/me/subscriptions/properties", subscription_data=[mine])).ok
    await ann.send(channel_id, "cups", "@**Ben** you?")
    found = {one.path: one for one in await phones.pushed()}
    assert {path: one.headers["urgency"] for path, one in found.items()} == {
        "/phone": "high",
        "/cleo": "normal",
    }
    told = phones.read(found["/phone"])
    assert (told["title"], told["body"]) == ("#kitchen > cups", "Ann: @Ben you?")
    assert told["to"] == {"channel_id": channel_id, "topic": "cups"}
    # People who have read it before the push, are online and don't want pushes then, or have turned
    # them off, get none.
    read = await ann.write([ben.user_id], "Read me")
    await ben.post("/messages/flags", messages=[read], op="add", flag="read")
    (await cleo.patch("/settings", enable_online_push_notifications=False)).ok
    (await cleo.post("/users/me/presence", status="active")).ok
    await ann.write([cleo.user_id], "You are here")
    assert await phones.told() == []
    phones.clock.ahead += 301
    (told,) = await phones.told()
    assert told["body"] == "You are here"
    (await ben.patch("/settings", enable_offline_push_notifications=False)).ok
    await ann.write([ben.user_id], "Off")
    assert await phones.told() == []
    # Content is left out if the person doesn't want it included.
    (await cleo.patch("/settings", pm_content_in_desktop_notifications=False)).ok
    await ann.write([cleo.user_id], "Secret")
    (told,) = await phones.told()
    assert told["body"] == "2 new messages"
    realm = phones.org.node.state.realm
    await phones.org.do(
        RealmChanged(values={"message_content_allowed_in_email_notifications": False})
    )
    assert realm is not phones.org.node.state.realm
    await ann.send(channel_id, "plates", "Secret too")
    (told,) = await phones.told()
    assert (told["title"], told["body"]) == ("#kitchen > plates", "New message")


async def test_a_failing_push_service_is_retried_later_and_delays_nobody(
    phones: Phones,
) -> None:
    ann, ben = phones.org["ann"], phones.org["ben"]
    held = phones.service.held["/slow"] = asyncio.Event()
    for path in ("/slow", "/busy", "/good", "/gone", "/odd"):
        await phones.add("ben", path)
    phones.service.statuses |= {
        "/busy": (429, "Retry-After: 90\r\n"),
        "/gone": (410, ""),
        "/odd": (400, ""),
    }
    await ann.write([ben.user_id], "Hello")
    await phones.notices.once()
    await phones.notices.once()
    await phones.sender.once()
    async with asyncio.timeout(60):
        # All others are done while one waits.
        for _ in range(3):
            await phones.service.answers.acquire()
        await until(lambda: len(phones.sender.tasks) == 1)
        await phones.sender.once()
        await phones.service.answers.acquire()
        held.set()
        await phones.sender.tasks.settled()
    names = {one["id"]: one for one in await phones.listed("ben")}
    assert sorted(names) == [1, 2, 3, 5]
    assert names[2]["trouble"] == "The push service responded with status 429."
    assert [one.path for one in await phones.pushed()] == []
    phones.clock.ahead += 60
    assert await phones.pushed() == []
    phones.service.statuses.clear()
    phones.clock.ahead += 31
    assert [one.path for one in await phones.pushed()] == ["/busy"]
    assert [one["trouble"] for one in await phones.listed("ben")] == [""] * 4
    assert phones.org.node.pushed == {"pushed": 3, "failed": 1, "gone": 1, "refused": 1}
    # A push that failed for a day is dropped.
    phones.service.statuses["/busy"] = (503, "")
    await ann.write([ben.user_id], "Again")
    await phones.pushed()
    phones.clock.ahead += LIVES_SECONDS + FIRST_PAUSE
    assert await phones.pushed() == []


async def test_one_person_s_slow_devices_do_not_delay_others(phones: Phones) -> None:
    ann, ben, cleo = phones.org["ann"], phones.org["ben"], phones.org["cleo"]
    service, answered = phones.service, asyncio.Event()
    slow = [f"/slow/{number}" for number in range(MAX_CONCURRENT + 2)]
    for path in slow:
        service.held[path] = answered
        await phones.add("ben", path)
    await phones.add("cleo", "/good")
    await ann.write([ben.user_id, cleo.user_id], "Hello")
    await phones.notices.once()
    await phones.notices.once()
    await phones.sender.once()
    async with asyncio.timeout(60):
        await service.answers.acquire()
        assert "/good" in {one.path for one in service.pushed}
        await until(lambda: len(phones.sender.tasks) == PER_PERSON)
        # Pushes that wait for a free slot aren't queried again and again.
        assert await phones.sender.once() > 1
        answered.set()
        while len(service.pushed) < len(slow) + 1:
            await phones.sender.tasks.settled()
            await phones.sender.once()
    assert {one.path for one in service.pushed} == {*slow, "/good"}


async def test_a_crashed_node_s_pushes_are_sent_by_another(phones: Phones) -> None:
    ann, ben = phones.org["ann"], phones.org["ben"]
    await phones.add("ben")
    await ann.write([ben.user_id], "Hello")
    await phones.notices.once()
    await phones.notices.once()
    store, clock = phones.org.node.store, phones.clock
    (lane,) = await store.write(lambda c: pushes.lease(c, clock(), 120, [1]))
    assert await phones.pushed() == []
    clock.ahead += 121
    (told,) = await phones.told()
    assert told["body"] == "Hello"
    # The first node changes nothing when it returns.
    await ann.write([ben.user_id], "There?")
    await store.write(lambda c: pushes.finish(c, lane, (), lane.pushes, clock(), None, ""))
    (told,) = await phones.told()
    assert told["body"] == "Hello\nThere?"


async def test_devices_are_named_paused_tested_and_removed(phones: Phones) -> None:
    ann, ben = phones.org["ann"], phones.org["ben"]
    listener = await ben.register(event_types=["push_subscriptions"])
    one = await phones.add("ben")
    assert await phones.add("ben") == one
    (event,) = await listener.events()
    assert event["type"] == "push_subscriptions"
    held = phones.service.held["/phone"] = asyncio.Event()
    trying = asyncio.create_task(ben.post(f"/push_subscriptions/{one}/test"))
    await until(lambda: bool(phones.service.pushed))
    # One test at a time: others' pushes keep their room.
    (await ben.post(f"/push_subscriptions/{one}/test")).refused("RATE_LIMIT_HIT", 429)
    held.set()
    (await trying).ok
    (tried,) = phones.service.pushed
    assert phones.read(tried)["type"] == "test"
    later = int(phones.clock()) + 3600
    changed = await ben.patch(f"/push_subscriptions/{one}", name=" My phone ", paused_until=later)
    shown = changed.ok["subscription"]
    assert (shown["name"], shown["paused_until"]) == ("My phone", later)
    await ann.write([ben.user_id], "Sleep well")
    assert await phones.pushed() == []
    phones.clock.ahead += 3601
    await ann.write([ben.user_id], "Good morning")
    assert [told["body"] for told in await phones.told()] == ["Good morning"]
    phones.service.statuses["/phone"] = (403, "")
    (await ben.post(f"/push_subscriptions/{one}/test")).refused()
    for method in ("patch", "delete"):
        (await getattr(ann, method)(f"/push_subscriptions/{one}")).refused(status=404)
    (await ann.post(f"/push_subscriptions/{one}/test")).refused(status=404)
    # Signing in to the same browser takes it over.
    other = await phones.add("ann")
    assert await phones.listed("ben") == []
    (await ann.delete(f"/push_subscriptions/{other}")).ok
    assert await phones.listed("ann") == []
    await phones.round()
    assert await phones.org.node.store.read(pushes.subscription_ids) == []


async def test_devices_end_with_their_session_and_account(phones: Phones) -> None:
    org, now = phones.org, int(phones.clock())
    ben: Person = org["ben"]
    session = Session(id=7, user_id=ben.user_id, digest="x", created_at=now, used_at=now)
    await org.do(SessionBegun(session=session))
    for number, session_id in ((1, 7), (2, None)):
        new = subscriptions.NewSubscription(
            endpoint=f"https://push.example/{number}",
            name="",
            session_id=session_id,
            key_id=None,
            **KEYS,
        )
        await org.node.log.submit(ben.user_id, subscriptions.subscribe, new, lambda _: False)
    await org.do(SessionsEnded(session_ids=(7,), user_ids=(ben.user_id,)))
    assert [one["id"] for one in await phones.listed("ben")] == [2]
    (await org["ann"].delete(f"/users/{ben.user_id}")).ok
    assert org.node.state.push_subscriptions.of_user[ben.user_id] == ()


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"endpoint": "http://push.example/1"}, "https"),
        ({"endpoint": "http://127.0.0.1/1"}, "https"),
        ({"endpoint": "https://"}, "valid URL"),
        ({"endpoint": "https://me@push.example/"}, "valid URL"),
        ({"endpoint": "https://push.example:99999/"}, "valid URL"),
        ({"endpoint": "https://push.example/" + "x" * 1000}, "1000"),
        ({"endpoint": "https://push.example/ x"}, "1000"),
        ({"p256dh": "AAAA"}, "p256dh"),
        ({"p256dh": text(b"\x04" + b"\x01" * 64)}, "p256dh"),
        ({"auth": "AAAA"}, "auth"),
    ],
)
async def test_invalid_subscriptions_are_refused(
    readonly_org: Organization, sent: dict[str, Any], words: str
) -> None:
    good = {"endpoint": "https://push.example/1", **KEYS}
    reply = await readonly_org["ben"].post("/push_subscriptions", **good | sent)
    assert words in reply.refused()["msg"]


async def test_bots_have_no_devices_and_private_addresses_are_not_contacted(
    org: Organization,
) -> None:
    good = {"endpoint": "https://127.0.0.1:9/1", **KEYS}
    (await org["robo"].post("/push_subscriptions", **good)).refused("UNAUTHORIZED_PRINCIPAL")
    one = (await org["ben"].post("/push_subscriptions", **good)).ok["subscription"]["id"]
    refusal = (await org["ben"].post(f"/push_subscriptions/{one}/test")).refused()
    assert "isn't on the public internet" in refusal["msg"]
