"""Rate limits of accounts, and of clients without one."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from tertulia.app.composition import asgi
from tertulia.service.config import Config
from tertulia.wire.http.rate_limits import LIMIT, REMAINING, RESET
from tertulia.wire.http.request_head import POSITION
from tests.browsers import signed_in_browser
from tests.support import Newcomer, Organization, Person, Reply, TestClock, new_organization

NOW = float(int(time.time()))
LIMITS = {
    "rate_limits": True,
    "requests_per_minute": 10,
    "polls_per_minute": 30,
    "anonymous_requests_per_minute": 6,
}
HEADERS = (LIMIT, REMAINING, RESET)


@asynccontextmanager
async def limited(config: Config, **settings: Any) -> AsyncIterator[tuple[Organization, TestClock]]:
    """An organization with ann, ben, and limits, and its clock, which doesn't move."""
    clock = TestClock(stopped_at=NOW)
    changed = msgspec.structs.replace(config, **(LIMITS | settings))
    async with new_organization(changed, clock=clock, others=(Newcomer("ben"),)) as org:
        yield org, clock


def limit_headers(reply: Reply | httpx.Response) -> tuple[int, int, float]:
    """The limit, the remaining requests, and the seconds until it's fully available."""
    limit, remaining, reset = (int(reply.headers[name]) for name in HEADERS)
    return limit, remaining, reset - NOW


def from_address(org: Organization, host: str) -> Person:
    """A client without an account, at this address."""
    transport = httpx.ASGITransport(app=asgi(org.node), client=(host, 50_000))
    return Person(httpx.AsyncClient(transport=transport, base_url="http://chat.test"))


async def used_up(person: Person, path: str = "/users/me") -> Reply:
    """Send requests until one is refused. Returns the refusal."""
    for _ in range(50):
        reply = await person.get(path)
        if reply.status == 429:
            return reply
    raise AssertionError("never refused")


async def test_every_response_has_the_remaining_requests(config: Config) -> None:
    async with limited(config) as (org, _):
        ann = org["ann"]
        replies = [
            await ann.get("/users/me"),
            await ann.post("/messages"),
            await ann.get("/messages/999"),
            await ann.post("/register"),
            await ann.request("HEAD", "/users/me"),
        ]
        assert [limit_headers(reply)[:2] for reply in replies] == [
            (10, left) for left in (9, 8, 7, 6, 5)
        ]
        assert [limit_headers(reply)[2] for reply in replies] == [6, 12, 18, 24, 30]
        assert limit_headers(await org["ben"].get("/users/me"))[:2] == (10, 9)


async def test_beyond_the_limit_nothing_is_done_until_the_given_time(
    config: Config,
) -> None:
    async with limited(config) as (org, clock):
        ann = org["ann"]
        await org.channel("lounge", "ann")
        for number in range(10):
            await ann.send("lounge", "t", str(number))
        said = {"type": "stream", "to": "lounge", "topic": "t", "content": "one more"}
        for _ in range(3):
            reply = await ann.post("/messages", **said)
            body = reply.refused("RATE_LIMIT_HIT", 429)
            assert body["retry-after"] == 6.0
            assert reply.headers["retry-after"] == "6"
            assert limit_headers(reply)[:2] == (10, 0)
        assert org.node.state.last_message_id == 10
        clock.ahead = 3.75
        reply = await ann.post("/messages", **said)
        body = reply.refused("RATE_LIMIT_HIT", 429)
        assert (body["retry-after"], reply.headers["retry-after"]) == (2.25, "3")
        assert "2.25 s" in body["msg"]
        clock.ahead += body["retry-after"]
        assert (await ann.post("/messages", **said)).ok["id"] == 11
        assert (await org["ben"].get("/users/me")).ok


async def test_polls_are_counted_separately(config: Config) -> None:
    async with limited(config) as (org, _):
        ann = org["ann"]
        queue = await ann.register()
        asked = {"queue_id": queue.queue_id, "last_event_id": -1, "dont_block": True}
        for left in range(29, -1, -1):
            assert limit_headers(await ann.get("/events", **asked))[:2] == (30, left)
        (await ann.get("/events", **asked)).refused("RATE_LIMIT_HIT", 429)
        assert limit_headers(await ann.get("/users/me"))[:2] == (10, 8)
        await used_up(ann)
        reply = await ann.delete("/events", queue_id=queue.queue_id)
        reply.refused("RATE_LIMIT_HIT", 429)


async def test_a_client_beyond_the_limit_still_gets_events(config: Config) -> None:
    async with limited(config) as (org, _):
        await org.channel("lounge", "ann", "ben")
        queue = await org["ann"].register(event_types=["message"])
        await used_up(org["ann"])
        await org["ben"].send("lounge", "t", "hello")
        assert len(await queue.events()) == 1


async def test_a_key_and_a_browser_of_one_account_count_together(config: Config) -> None:
    async with limited(config) as (org, _):
        browser = await signed_in_browser(org)
        assert limit_headers(await browser.get("/users/me"))[1] == 9
        assert limit_headers(await org["ann"].get("/users/me"))[1] == 8


async def test_without_an_account_the_address_counts(config: Config) -> None:
    async with limited(config) as (org, clock):
        one, other = from_address(org, "192.0.2.1"), from_address(org, "192.0.2.2")
        for left in range(5, -1, -1):
            assert limit_headers(await one.get("/server_settings"))[:2] == (6, left)
        body = (await one.get("/server_settings")).refused("RATE_LIMIT_HIT", 429)
        assert body["retry-after"] == 10.0
        (await other.get("/server_settings")).ok
        at_one = Person(one.http, org["ben"].user_id, org["ben"].email, org["ben"].api_key)
        assert limit_headers(await at_one.get("/users/me"))[:2] == (10, 9)
        clock.ahead = 10
        (await one.get("/server_settings")).ok


@pytest.mark.parametrize(
    ("other", "together"),
    [
        ("2001:db8:0:1:ffff:ffff:ffff:ffff", True),
        ("2001:db8:0:2::1", False),
        ("192.0.2.1", False),
    ],
)
async def test_for_ipv6_the_network_counts(config: Config, other: str, together: bool) -> None:
    async with limited(config) as (org, _):
        await used_up(from_address(org, "2001:db8:0:1::1"), "/server_settings")
        reply = await from_address(org, other).get("/server_settings")
        assert (reply.status == 429) is together


@pytest.mark.parametrize(
    ("email", "api_key", "code"),
    [
        ("", "", "UNAUTHORIZED"),
        ("ann@example.com", "x" * 32, "INVALID_API_KEY"),
        ("nobody@example.com", "x" * 32, "INVALID_API_KEY"),
    ],
)
async def test_a_client_without_a_valid_key_is_counted_by_address(
    config: Config, email: str, api_key: str, code: str
) -> None:
    async with limited(config) as (org, _):
        person = from_address(org, "192.0.2.1")
        stranger = Person(person.http, email=email, api_key=api_key)
        for left in range(5, -1, -1):
            reply = await stranger.get("/users/me")
            reply.refused(code, 401)
            assert limit_headers(reply)[:2] == (6, left)
        reply = await stranger.get("/users/me")
        reply.refused("RATE_LIMIT_HIT", 429)
        assert "www-authenticate" not in reply.headers
        assert limit_headers(await org["ann"].get("/users/me"))[:2] == (10, 9)


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Client-IP"])
async def test_a_client_cannot_choose_its_address(config: Config, header: str) -> None:
    async with limited(config) as (org, _):
        person = from_address(org, "192.0.2.1")
        for number in range(6):
            await person.raw("GET", "/server_settings", headers={header: f"198.51.100.{number}"})
        reply = await person.raw("GET", "/server_settings", headers={header: "198.51.100.99"})
        reply.refused("RATE_LIMIT_HIT", 429)


async def test_the_sign_in_form_has_its_own_limit(config: Config) -> None:
    """The limit of wrong passwords is unchanged and reported in the same way."""
    async with limited(config, anonymous_requests_per_minute=100) as (org, _):
        wrong = {"username": "ann@example.com", "password": "wrong"}
        while (reply := await org.nobody.post("/sessions", **wrong)).status == 401:
            pass
        body = reply.refused("RATE_LIMIT_HIT", 429)
        assert body["retry-after"] == int(reply.headers["retry-after"]) == 60
        assert limit_headers(reply)[:2] == (100, 89)


@pytest.mark.parametrize("settings", [{"rate_limits": False}, {"dev": True}], ids=str)
async def test_limits_can_be_disabled(config: Config, settings: Any) -> None:
    async with limited(config, **settings) as (org, _):
        for person in (org["ann"], org.nobody):
            for _ in range(20):
                reply = await person.get("/server_settings")
                assert reply.status == 200
                assert not {name.lower() for name in HEADERS} & set(reply.headers)


async def test_scripts_of_other_origins_can_read_the_headers(config: Config) -> None:
    async with limited(config) as (org, _):
        origin = {"Origin": "https://elsewhere.example.com"}
        for reply in (
            await org["ann"].raw("GET", "/users/me", headers=origin),
            await used_up(org["ann"]),
            await org["ann"].raw("HEAD", "/tus/x", headers=origin),
        ):
            exposed = reply.headers["access-control-expose-headers"].split(", ")
            assert {*HEADERS, "Retry-After", POSITION} <= set(exposed)


async def test_preflight_requests_do_not_count(config: Config) -> None:
    async with limited(config) as (org, _):
        for _ in range(20):
            reply = await org.nobody.raw("OPTIONS", "/users/me")
            assert reply.status == 204
        assert limit_headers(await org.nobody.get("/server_settings"))[:2] == (6, 5)


async def test_uploads_count_in_one_request_and_in_pieces(config: Config) -> None:
    async with limited(config) as (org, _):
        ann = org["ann"]
        await ann.upload()
        head = {"Tus-Resumable": "1.0.0", "Upload-Length": "3"}
        assert limit_headers(await ann.raw("POST", "/tus", headers=head))[:2] == (10, 8)
        await used_up(ann)
        reply = await ann.raw("POST", "/tus", headers=head, content=b"abc")
        reply.refused("RATE_LIMIT_HIT", 429)
        assert reply.headers["tus-resumable"] == "1.0.0"
        files = {"file": ("a.txt", b"abc", "text/plain")}
        (await ann.raw("POST", "/user_uploads", files=files)).refused("RATE_LIMIT_HIT", 429)
        assert org.node.state.uploads.space_used == 5


async def test_files_are_not_counted_for_accounts(config: Config) -> None:
    async with limited(config) as (org, _):
        path = f"/user_uploads/{await org['ann'].upload()}"
        await used_up(org["ann"])
        for _ in range(20):
            assert (await org["ann"].open(path)).status_code == 200
        for _ in range(6):
            assert (await org.nobody.open(path)).status_code == 403
        answer = await org.nobody.open(path)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")


async def test_many_accounts_do_not_share_a_limit(config: Config) -> None:
    async with limited(config) as (org, _):
        for number in range(30):
            person = await org.add(f"p{number}")
            assert limit_headers(await person.get("/users/me"))[:2] == (10, 9)
        await used_up(org["ben"])
        assert limit_headers(await org["ann"].get("/users/me"))[:2] == (10, 9)


async def test_a_clock_set_back_blocks_nobody(config: Config) -> None:
    async with limited(config) as (org, clock):
        await used_up(org["ann"])
        clock.ahead = -86400
        body = (await org["ann"].get("/users/me")).refused("RATE_LIMIT_HIT", 429)
        assert body["retry-after"] == 6.0
        clock.ahead += 6
        (await org["ann"].get("/users/me")).ok


@pytest.mark.parametrize("jump", [-86400.0, 7200.0])
async def test_the_remaining_requests_do_not_depend_on_clock_changes(
    config: Config, jump: float
) -> None:
    clock, elapsed = TestClock(stopped_at=NOW), TestClock(stopped_at=5000.0)
    changed = msgspec.structs.replace(config, **LIMITS)
    async with new_organization(changed, clock=clock, elapsed=elapsed) as org:
        await used_up(org["ann"])
        clock.ahead = jump
        answer = await org["ann"].get("/users/me")
        assert answer.refused("RATE_LIMIT_HIT", 429)["retry-after"] == 6.0
        # The reset time is given by the clock, whatever that shows.
        assert int(answer.headers["x-ratelimit-reset"]) == NOW + jump + 60
        elapsed.ahead = 6
        (await org["ann"].get("/users/me")).ok


async def test_the_bots_of_one_owner_share_a_limit(config: Config) -> None:
    async with limited(config) as (org, clock):
        ben = org["ben"]
        bots = [await org.add(f"bot{n}", owner="ben") for n in range(7)]
        other = await org.add("other", owner="ann")
        # Each has its own limit, as before, and all together have five times that.
        assert limit_headers(await bots[0].get("/users/me"))[:2] == (10, 9)
        await used_up(bots[0])
        for bot in bots[1:5]:
            for _ in range(10):
                (await bot.get("/users/me")).ok
        reply = await bots[5].get("/users/me")
        wait = reply.refused("RATE_LIMIT_HIT", 429)["retry-after"]
        assert wait == pytest.approx(1.2, abs=0.01)
        assert limit_headers(reply)[:2] == (50, 0)
        (await ben.get("/users/me")).ok
        assert limit_headers(await other.get("/users/me"))[:2] == (10, 9)
        # Refused requests didn't count: the shared limit recovers evenly, and the bot's own is
        # full.
        clock.ahead = wait
        assert limit_headers(await bots[5].get("/users/me"))[:2] == (50, 0)
        clock.ahead = 60
        assert limit_headers(await bots[5].get("/users/me"))[:2] == (10, 9)

        queue = await bots[6].register()
        asked = {"queue_id": queue.queue_id, "last_event_id": -1, "dont_block": True}
        for _ in range(30):
            (await bots[6].get("/events", **asked)).ok
        reply = await bots[6].get("/events", **asked)
        reply.refused("RATE_LIMIT_HIT", 429)
        assert limit_headers(reply)[:2] == (30, 0)


async def test_bots_without_an_active_owner_are_counted(config: Config) -> None:
    async with limited(config) as (org, _):
        robo = await org.add("robo", owner="ben")
        limits, state = org.node.request_limits, org.node.state
        (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
        (gateway, *_) = (one for one in state.users if one.is_system_bot)
        for user in gateway, state.users[robo.user_id]:
            assert sum(limits.admits_poll(user) for _ in range(40)) == 30
