"""Outgoing webhooks: bots whose services get messages and reply."""

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import parse_qs

import msgspec
import pytest

from tertulia.outbound import http_client
from tertulia.service.config import Config
from tertulia.service.webhooks import calling
from tertulia.service.webhooks.calling import EncodedCall, Encoder, ServiceCaller
from tertulia.store import webhooks
from tertulia.store.database import DatabaseUnavailable
from tertulia.store.lanes import SERVICES
from tertulia.wire.api.embedded_bots import bot_interface
from tertulia.wire.api.webhooks import encoded_call
from tertulia.wire.application import application
from tests.conftest import OTHERS
from tests.support import Organization, Person, TestClock, new_organization, open_organization, row


@dataclass
class Service:
    """A bot's program on this machine: the requests it got, and its responses."""

    url: str = ""
    status: int = 200
    answer: Any = field(default_factory=dict)
    told: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has responded."""
    silent: asyncio.Event | None = None
    """If set, it responds only after this event."""

    @property
    def last(self) -> dict[str, Any]:
        """The last request, as JSON."""
        found: dict[str, Any] = json.loads(self.told[-1][1])
        return found


@asynccontextmanager
async def listening() -> AsyncIterator[Service]:
    """A service."""
    service = Service()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
        headers = {n.lower(): v for n, _, v in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        service.told.append((headers, body))
        if service.silent is not None:
            await service.silent.wait()
        answer = service.answer
        sent = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        head = f"HTTP/1.1 {service.status} X\r\nContent-Length: {len(sent)}\r\n\r\n"
        writer.write(head.encode() + sent)
        await writer.drain()
        writer.close()
        service.heard.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
        yield service


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with listening() as found:
        yield found


@pytest.fixture
async def org(config: Config, clock: TestClock) -> AsyncIterator[Organization]:
    """The organization, whose server may contact this machine."""
    config = msgspec.structs.replace(config, outgoing_webhook_networks="127.0.0.1")
    async with new_organization(config, clock=clock, others=OTHERS) as organization:
        yield organization


async def create_webhook(org: Organization, url: str, **more: Any) -> Person:
    """Create an outgoing webhook bot of ben's."""
    asked = {"full_name": "Hal", "short_name": "hal", "bot_type": 3, "payload_url": json.dumps(url)}
    bot = (await org["ben"].post("/bots", **(asked | more))).ok
    return Person(org.http, bot["user_id"], "hal-bot@chat.test", bot["api_key"])


_once = ServiceCaller.once


@pytest.fixture(autouse=True)
def _no_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent nodes from calling services by themselves; use `called`."""

    async def idle(self: ServiceCaller) -> float:
        return 3600.0

    monkeypatch.setattr(ServiceCaller, "once", idle)


def caller_of(org: Organization, encode: Encoder = encoded_call) -> ServiceCaller:
    """The caller of the organization's node."""
    return ServiceCaller(org.node, encode, bot_interface(org.node, application))


async def next_due(org: Organization) -> float | None:
    """When the next calls are due, or None."""
    lanes = await org.node.store.read(SERVICES.due)
    return lanes[0][1] if lanes else None


async def called(org: Organization, caller: ServiceCaller | None = None) -> None:
    """Make the calls that are due."""
    caller = caller or caller_of(org)
    while (due := await next_due(org)) is not None:
        if due > org.node.clock():
            break
        await _once(caller)
        await caller.tasks.settled()


async def newest(org: Organization, who: str = "ben", number: int = 1) -> list[dict[str, Any]]:
    asked = {"anchor": "newest", "num_before": number, "num_after": 0, "apply_markdown": False}
    found: list[dict[str, Any]] = (await org[who].get("/messages", **asked)).ok["messages"]
    return found


async def outcomes(org: Organization, bot: Person) -> list[tuple[str, str, str]]:
    lines = (await org["ben"].get(f"/bots/{bot.user_id}/deliveries")).ok["deliveries"]
    return [(one["integration"], one["outcome"], one["reason"]) for one in lines]


async def test_a_service_gets_mentions_and_replies(org: Organization, service: Service) -> None:
    lounge = await org.channel("lounge", "ben")
    bot = await create_webhook(org, service.url)
    service.answer = {"content": "four"}
    sent = await org["ben"].send(lounge, "sums", "@**Hal** 2+2?")
    await called(org)
    headers, body = service.told[0]
    told = service.last
    found = (await org["ben"].get(f"/bots/{bot.user_id}/service")).ok
    assert (told["bot_email"], told["bot_full_name"]) == ("hal-bot@chat.test", "Hal")
    assert (told["data"], told["trigger"]) == ("@**Hal** 2+2?", "mention")
    assert told["token"] == found["token"]
    message = told["message"]
    assert (message["id"], message["content"]) == (sent, "@**Hal** 2+2?")
    assert (message["display_recipient"], message["subject"]) == ("lounge", "sums")
    assert 'data-user-id="' in message["rendered_content"]
    at = headers["x-tertulia-signature"].partition(",")[0].removeprefix("t=")
    proof = hmac.new(found["token"].encode(), f"{at}.".encode() + body, hashlib.sha256)
    assert headers["x-tertulia-signature"] == f"t={at},v1={proof.hexdigest()}"
    (answer,) = await newest(org)
    assert (answer["sender_id"], answer["content"]) == (bot.user_id, "four")
    assert (answer["display_recipient"], answer["subject"]) == ("lounge", "sums")
    assert await outcomes(org, bot) == [("mention", "delivered", "")]
    assert found["waiting"] == 0
    service.told.clear()
    for quiet in ("hal is here", "@_**Hal** is here", "`@**Hal**`"):
        await org["ben"].send(lounge, "sums", quiet)
    await org["robo"].send(lounge, "sums", "@**Hal**")  # Bots don't talk to each other forever.
    await called(org)
    assert service.told == []


async def test_a_reply_to_a_direct_message_goes_to_all_participants(
    org: Organization, service: Service
) -> None:
    bot = await create_webhook(org, service.url)
    service.answer = {"response_string": "hello"}
    await org["ben"].write([bot.user_id, org["cleo"].user_id], "hi")
    await called(org)
    assert (service.last["trigger"], service.last["data"]) == ("direct_message", "hi")
    (answer,) = await newest(org, "cleo")
    assert answer["content"] == "hello"
    assert len(answer["display_recipient"]) == 3
    service.answer = {"content": "only you", "response_type": "ephemeral"}
    await org["ben"].write([bot.user_id, org["cleo"].user_id], "psst")
    await called(org)
    assert (await newest(org, "cleo"))[0]["content"] == "psst"
    assert (await newest(org, "ben"))[0]["content"] == "only you"
    for nothing in ({"response_not_required": True}, b"", {"content": " "}, {"other": 1}):
        service.answer = nothing
        await org["ben"].write([bot.user_id], "quiet")
        await called(org)
        assert (await newest(org))[0]["content"] == "quiet"
    for wrong in (b"[", b"[1]", {"content": 7}, {"content": "\0"}):
        service.answer = wrong
        await org["ben"].write([bot.user_id], "wrong")
        await called(org)
        assert (await newest(org))[0]["content"] == "wrong"
        (_, outcome, reason), *_rest = await outcomes(org, bot)
        assert (outcome, bool(reason)) == ("delivered", True)


async def test_slacks_format_is_supported(org: Organization, service: Service) -> None:
    lounge = await org.channel("lounge", "ben")
    bot = await create_webhook(org, service.url, interface_type=2)
    service.answer = {"text": "*done*"}
    await org["ben"].send(lounge, "t", "@**Hal** go")
    await called(org)
    headers, body = service.told[0]
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    told = {name: values[0] for name, values in parse_qs(body.decode()).items()}
    assert told["text"] == "@**Hal** go"
    assert (told["channel_name"], told["channel_id"]) == ("lounge", f"C{lounge}")
    assert (told["user_id"], told["trigger_word"]) == (f"U{org['ben'].user_id}", "mention")
    assert (await newest(org))[0]["content"] == "*done*"
    await org["ben"].write([bot.user_id], "in secret")
    await called(org)
    assert len(service.told) == 1
    assert (await outcomes(org, bot))[0][1] == "nothing"


async def test_the_organization_can_define_commands(org: Organization, service: Service) -> None:
    lounge = await org.channel("lounge", "ben")
    bot = await create_webhook(org, service.url)
    place = f"/bots/{bot.user_id}/service"
    (await org["ben"].patch(place, commands=["deploy"])).refused("UNAUTHORIZED_PRINCIPAL")
    found = (await org["ann"].patch(place, commands=["/deploy", "undo"])).ok
    assert found["commands"] == ["deploy", "undo"]
    for wrong in (["me"], ["Deploy"], ["x" * 31], [""], ["a b"], [f"c{n}" for n in range(21)]):
        (await org["ann"].patch(place, commands=wrong)).refused()
    other = {"full_name": "Other", "short_name": "other"}
    other_id = (await create_webhook(org, service.url, **other)).user_id
    (await org["ann"].patch(f"/bots/{other_id}/service", commands=["undo"])).refused()
    service.answer = {"content": "on its way", "response_type": "ephemeral"}
    await org["ben"].send(lounge, "ops", "/deploy staging now")
    await called(org)
    assert (service.last["trigger"], service.last["command"]) == ("command", "/deploy")
    assert service.last["text"] == "staging now"
    assert (await newest(org))[0]["content"] == "on its way"
    assert (await newest(org))[0]["type"] == "private"
    service.told.clear()
    for quiet in ("/deployment", "now /deploy", "/other", "/"):
        await org["ben"].send(lounge, "ops", quiet)
    hidden = await org.channel("hidden", "cleo", is_private=True)
    await org["cleo"].send(hidden, "ops", "/undo")
    await called(org)
    assert service.told == []
    assert (await outcomes(org, bot))[0][1:] == (
        "nothing",
        "The message no longer exists, or the bot can't read it.",
    )


async def test_a_failed_call_is_retried_and_reported_to_the_owner(
    org: Organization, service: Service, clock: TestClock
) -> None:
    bot = await create_webhook(org, service.url)
    service.status = 503
    for n in range(6):
        await org["ben"].write([bot.user_id], f"message {n}")
    pauses = []
    for _ in range(7):
        before = org.node.clock()
        await called(org)
        due = await next_due(org)
        assert due is not None
        pauses.append(due - before)
        clock.ahead += due - org.node.clock() + 1
    assert all(later > earlier for earlier, later in itertools.pairwise(pauses))
    assert len(service.told) == 4 + 6  # One is tried while the service fails.
    assert {one[1] for one in await outcomes(org, bot)} == {"failed"}
    (told,) = (
        m for m in await newest(org, number=10) if "has failed several times" in m["content"]
    )
    assert "The service responded with status 503." in told["content"]
    assert (await org["ben"].get(f"/bots/{bot.user_id}/service")).ok["waiting"] == 6
    service.status, service.answer = 200, {}
    service.told.clear()
    await called(org)
    told_now = [json.loads(body)["data"] for _, body in service.told]
    assert told_now[0] == "message 0"  # One is tried first, and the others when it succeeded.
    assert sorted(told_now) == [f"message {n}" for n in range(6)]
    assert await next_due(org) is None
    service.status = 404
    await org["ben"].write([bot.user_id], "not there")
    await called(org)
    assert (await outcomes(org, bot))[0][1:] == (
        "given up",
        "The service responded with status 404.",
    )
    service.status = 503
    await org["ben"].write([bot.user_id], "too late")
    clock.ahead += calling.GIVEN_UP_AFTER + 1
    await called(org)
    assert (await outcomes(org, bot))[0][1] == "given up"


async def test_local_failures_lose_no_call(
    org: Organization, service: Service, clock: TestClock
) -> None:
    bot = await create_webhook(org, service.url)
    await org["ben"].write([bot.user_id], "hello")

    def hindered(*_: Any) -> EncodedCall:
        raise DatabaseUnavailable("it is away")

    await called(org, caller_of(org, hindered))
    assert (await outcomes(org, bot))[0][1] == "failed"
    clock.ahead += 60
    await called(org)
    assert service.last["data"] == "hello"


async def test_a_bot_does_not_wait_for_another(org: Organization, service: Service) -> None:
    dead = await create_webhook(org, "http://127.0.0.1:1/")
    good = await create_webhook(org, service.url, full_name="Good", short_name="good")
    for n in range(30):
        await org["ben"].write([dead.user_id], f"{n}")
    await org["ben"].write([good.user_id], "hello")
    await called(org)
    assert service.last["data"] == "hello"
    reason = (await outcomes(org, dead))[0][2]
    assert reason == "Couldn't reach the service: it refused the connection."


async def test_one_person_s_many_bots_do_not_delay_others(
    org: Organization, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "PER_OWNER", 2)
    monkeypatch.setattr(calling, "MAX_CONCURRENT", 4)
    monkeypatch.setattr(calling, "CALL_SECONDS", 600.0)
    silent = asyncio.Event()
    # The call is still in progress at the check, however long that takes.
    service.silent = asyncio.Event()

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await silent.wait()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
        slow = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        many = [
            await create_webhook(org, slow, full_name=f"Slow {n}", short_name=f"slow{n}")
            for n in range(6)
        ]
        url = json.dumps(service.url)
        asked = {"full_name": "Quick", "short_name": "quick", "bot_type": 3, "payload_url": url}
        quick = (await org["cleo"].post("/bots", **asked)).ok["user_id"]
        for bot in many:
            await org["ben"].write([bot.user_id], "hi")
        await org["cleo"].write([quick], "hello")
        caller = caller_of(org)
        assert await _once(caller) == calling.LONGEST_SLEEP  # The others wait for a free slot.
        assert len(caller.tasks) == 3
        service.silent.set()
        await asyncio.wait_for(service.heard.wait(), 60)
        assert service.last["data"] == "hello"
        silent.set()
        await caller.tasks.settled()


async def test_each_call_is_made_by_one_node_and_none_is_lost(
    org: Organization, service: Service, clock: TestClock
) -> None:
    bot = await create_webhook(org, service.url)
    await org["ben"].write([bot.user_id], "once")
    store, now = org.node.store, org.node.clock()
    (lane,) = await store.write(lambda c: webhooks.lease_calls(c, now, 60.0, [bot.user_id]))
    assert await store.write(lambda c: webhooks.lease_calls(c, now, 60.0, [bot.user_id])) == []
    await called(org)
    assert service.told == []
    # The node with the call was killed.
    clock.ahead += 61
    async with open_organization(org.node.config, clock=clock) as again:
        await called(again)
        assert service.last["data"] == "once"
        await again["ben"].write([bot.user_id], "twice")
        # The first node's late result doesn't affect the other's call.
        await store.write(
            lambda c: webhooks.finish_calls(c, lane, [lane.calls[0].id], now, now + 9)
        )
        await called(again)
    assert service.last["data"] == "twice"


async def test_a_call_made_twice_has_one_reply(org: Organization, service: Service) -> None:
    bot = await create_webhook(org, service.url)
    service.answer = {"content": "done"}
    await org["ben"].write([bot.user_id], "do")
    now = org.node.clock()
    (lane,) = await org.node.store.write(
        lambda c: webhooks.lease_calls(c, now, 60.0, [bot.user_id])
    )
    caller = caller_of(org)
    for _ in range(2):
        assert await caller._one(lane.calls[0]) is None
    assert len(service.told) == 2
    assert [m["content"] for m in await newest(org, number=3)] == ["do", "done"]


PRIVATE = [
    ("http://127.0.0.2:9/", "127.0.0.2 isn't on the public internet"),
    ("http://10.0.0.1/", "10.0.0.1 isn't on the public internet"),
    ("http://[::1]/", "::1 isn't on the public internet"),
    ("http://169.254.169.254/latest", "169.254.169.254 isn't on the public internet"),
]
"""An address, and the error for it."""


async def test_private_addresses_cannot_be_set_unless_they_are_listed(
    org: Organization, service: Service
) -> None:
    bot = await create_webhook(org, service.url)
    for url, reason in (*PRIVATE, ("http://2130706434/", "the host isn't on the public internet")):
        with row(url):
            asked = {"full_name": "Pal", "short_name": "pal", "bot_type": 3}
            new = await org["ben"].post("/bots", **asked, payload_url=json.dumps(url))
            assert reason in new.refused()["msg"]
            changed = {"service_payload_url": json.dumps(url)}
            reply = await org["ben"].patch(f"/bots/{bot.user_id}", **changed)
            assert reason in reply.refused()["msg"]
    # A name may resolve to another address later, so it's resolved again for each call.
    await create_webhook(org, "http://nowhere.test/", full_name="Pal", short_name="pal")


async def test_a_host_that_is_not_resolved_in_time_is_accepted(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(_host: str, _port: int) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(http_client, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(org.node.services, "_resolve", resolve)
    await create_webhook(org, "http://slow.test/")


async def test_private_addresses_are_not_called_unless_they_are_listed(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def allowed(_: str) -> None:
        """They had other addresses when they were set."""

    monkeypatch.setattr(org.node.services, "require_allowed", allowed)
    for number, (url, reason) in enumerate(PRIVATE):
        with row(url):
            bot = await create_webhook(
                org, url, full_name=f"Hal {number}", short_name=f"hal{number}"
            )
            await org["ben"].write([bot.user_id], "hi")
            await called(org)
            assert reason in (await outcomes(org, bot))[0][2]


async def test_an_outgoing_webhook_is_created_and_changed(
    org: Organization, service: Service
) -> None:
    asked = {"full_name": "Hal", "short_name": "hal", "bot_type": 3}
    (await org["ben"].post("/bots", **asked)).refused("REQUEST_VARIABLE_MISSING")
    for wrong in ('"ftp://x.test"', "x", '"http://a:b@x.test"', '"http://"', '"h', "http://x y"):
        (await org["ben"].post("/bots", **asked, payload_url=wrong)).refused()
    (
        await org["ben"].post("/bots", **asked, payload_url="http://x.test", interface_type=3)
    ).refused("REQUEST_VARIABLE_INVALID")
    queue = await org["ben"].register(event_types=["realm_bot"])
    bot = await create_webhook(org, "https://x.test:5002/hook?a=b", service_name="hooks")
    (event,) = await queue.events()
    place = f"/bots/{bot.user_id}"
    token = (await org["ben"].get(f"{place}/service")).ok["token"]
    services = [{"base_url": "https://x.test:5002/hook?a=b", "interface": 1, "token": token}]
    assert event["bot"]["services"] == services
    assert len(token) > 20
    for who, seen in (("ben", services), ("ann", services), ("cleo", None)):
        bots = (await org[who].register(fetch_event_types=["realm_bot"])).data["realm_bots"]
        assert {one["user_id"]: one["services"] for one in bots}.get(bot.user_id) == seen
    changed = {"service_payload_url": json.dumps(service.url), "service_interface": 2}
    updated = (await org["ben"].patch(place, **changed)).ok
    assert (updated["service_payload_url"], updated["service_interface"]) == (service.url, 2)
    (event,) = await queue.events()
    assert event["bot"]["services"] == [{"base_url": service.url, "interface": 2, "token": token}]
    found = (await org["ben"].get(f"{place}/service")).ok
    newer = (await org["ben"].patch(f"{place}/service", new_token=True)).ok
    assert found["token"] != newer["token"]
    assert newer["payload_url"] == service.url
    (event,) = await queue.events()
    assert event["bot"]["services"][0]["token"] == newer["token"]
    (await org["cleo"].get(f"{place}/service")).refused()
    (await org["ben"].get(f"/bots/{org['robo'].user_id}/service")).refused()
    stored = org.node.state.users[bot.user_id].bot
    assert stored is not None
    assert stored.service is not None
    assert newer["token"] not in stored.service.token_sealed
    await org["ben"].write([bot.user_id], "hi")
    assert (await org["ben"].delete(place)).ok
    await called(org)
    assert service.told == []


async def test_waiting_calls_are_limited(
    org: Organization, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "MAX_WAITING", 5)
    bot = await create_webhook(org, service.url)
    for n in range(9):
        await org["ben"].write([bot.user_id], f"{n}")
    await called(org)
    told = {json.loads(body)["data"] for _, body in service.told}
    assert told == {"4", "5", "6", "7", "8"}
    lines = await outcomes(org, bot)
    assert (
        "",
        "given up",
        "4 messages were dropped because too many were waiting for the service.",
    ) in lines


async def test_the_operator_can_disable_outgoing_webhooks(config: Config) -> None:
    config = msgspec.structs.replace(config, outgoing_webhooks=False)
    async with new_organization(config, others=OTHERS) as org:
        asked = {"full_name": "Hal", "short_name": "hal", "bot_type": 3}
        refused = await org["ben"].post("/bots", **asked, payload_url="http://x.test")
        assert "Outgoing webhooks are turned off" in refused.refused()["msg"]
