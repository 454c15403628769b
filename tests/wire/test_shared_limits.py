"""Rate limits shared by all nodes."""

import dataclasses
from collections.abc import AsyncIterator, Hashable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from tertulia.delivery import peer_messages
from tertulia.service.config import Config
from tertulia.wire.http import limiters as shared_limits
from tertulia.wire.http.rate_limits import BOTS_OF_OWNER, TRIES, TRIES_PER_ACCOUNT
from tertulia.wire.mail import server
from tests import postgres
from tests.nodes import Cluster, cluster
from tests.support import PASSWORD, TestClock, until
from tests.wire.test_incoming_email import a_mail, listening

REQUESTS, POLLS, ANONYMOUS = 12, 24, 6
ADDRESS = "127.0.0.1"
"""The address of the tests' requests."""


@pytest.fixture
def elapsed() -> TestClock:
    return TestClock(stopped_at=5000.0)


@pytest.fixture
async def three(
    postgres_url: str, tmp_path: Path, elapsed: TestClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Cluster]:
    """Three nodes with low limits, where no time passes unless the test says so."""
    monkeypatch.setattr(shared_limits, "SEND_SECONDS", 0.001)
    # The node gets the announcement, however slow the machine is.
    monkeypatch.setattr(peer_messages, "LATE_SECONDS", 1000.0)
    with postgres.schema(postgres_url) as url:
        config = Config(
            data_dir=str(tmp_path / "data"),
            database_url=url,
            external_url="http://chat.test",
            requests_per_minute=REQUESTS,
            polls_per_minute=POLLS,
            anonymous_requests_per_minute=ANONYMOUS,
        )
        # Separate connections.
        monkeypatch.setattr(postgres, "share_connections", lambda _: None)
        async with cluster(config, 3, elapsed) as found:
            yield found


async def all_know(three: Cluster, name: str, who: Hashable, left: int) -> None:
    """Return when every node knows that this much is left."""
    limiters = [node.node.limits.limiters._limiters[name] for node in three.nodes]
    await until(lambda: {limiter.left(limiter.ahead(who)) for limiter in limiters} == {left})


async def test_requests_spread_over_nodes_share_one_limit(
    three: Cluster, elapsed: TestClock
) -> None:
    ben = three.client()
    for number in range(REQUESTS):
        reply = await ben.at(number).get("/users/me")
        assert reply.ok
        left = REQUESTS - number - 1
        assert reply.headers["x-ratelimit-remaining"] == str(left)
        await all_know(three, "requests", ben.person.user_id, left)
    for number in range(3):
        reply = await ben.at(number).get("/users/me")
        assert reply.refused("RATE_LIMIT_HIT", 429)["retry-after"] == 60 / REQUESTS
        assert reply.headers["x-ratelimit-remaining"] == "0"
    # The recovered requests can be used at any one node.
    elapsed.ahead = 60 / REQUESTS
    assert (await ben.at(1).get("/users/me")).ok
    await all_know(three, "requests", ben.person.user_id, 0)
    for number in range(3):
        (await ben.at(number).get("/users/me")).refused("RATE_LIMIT_HIT", 429)
    assert (await three.client("ann").at(2).get("/users/me")).ok


async def test_polls_and_unauthenticated_requests_share_limits_too(three: Cluster) -> None:
    ben, nobody = three.client(), three.client("")
    queue = await ben.at(0).register()
    asked = {"queue_id": queue.queue_id, "last_event_id": queue.last_event_id, "dont_block": True}
    for number in range(POLLS):
        (await ben.at(number).get("/events", **asked)).ok
        await all_know(three, "polls", ben.person.user_id, POLLS - number - 1)
    for number in range(ANONYMOUS):
        (await nobody.at(number).get("/server_settings")).ok
        await all_know(three, "anonymous", ADDRESS, ANONYMOUS - number - 1)
    for number in range(3):
        (await ben.at(number).get("/events", **asked)).refused("RATE_LIMIT_HIT", 429)
        (await nobody.at(number).get("/server_settings")).refused("RATE_LIMIT_HIT", 429)


async def test_the_bots_of_one_owner_share_a_limit(three: Cluster) -> None:
    ben, first = three.client(), three.nodes[0]
    bots = [(await first.add(f"bot{number}", owner="ben")) for number in range(BOTS_OF_OWNER + 1)]
    head = first.node.log.durable
    await until(lambda: all(one.node.log.state.seq >= head for one in three.nodes))
    for count, bot in enumerate(bots[:-1], start=1):
        for number in range(REQUESTS):
            as_bot = dataclasses.replace(ben.at(number), email=bot.email, api_key=bot.api_key)
            (await as_bot.get("/users/me")).ok
        left = (BOTS_OF_OWNER - count) * REQUESTS
        await all_know(three, "requests of an owner's bots", ben.person.user_id, left)
    for number in range(3):
        as_bot = dataclasses.replace(ben.at(number), email=bots[-1].email, api_key=bots[-1].api_key)
        (await as_bot.get("/users/me")).refused("RATE_LIMIT_HIT", 429)
    (await ben.at(1).get("/users/me")).ok


async def test_guessing_at_several_nodes_has_one_limit(three: Cluster) -> None:
    right = {"username": "ann@example.com", "password": PASSWORD}
    for number in range(TRIES_PER_ACCOUNT):
        reply = await guess(three, number, right | {"password": "something else"})
        assert reply.status_code == 403
        left = TRIES - number - 1
        await all_know(three, "sign-ins from one network", ADDRESS, left)
    for number in range(3):
        assert (await guess(three, number, right)).status_code == 429


async def guess(three: Cluster, number: int, sent: dict[str, str]) -> httpx.Response:
    """The response of a node's sign-in page."""
    return await three.client("").at(number).http.post("/login", data=sent)


async def test_the_address_of_a_sign_in_is_known_at_every_node(three: Cluster) -> None:
    right = {"username": "ann@example.com", "password": PASSWORD}
    (await three.client("").at(0).post("/sessions", **right)).ok
    limits = [node.node.sign_in_limits for node in three.nodes]
    await until(lambda: all(one.knows(ADDRESS, "ann@example.com") for one in limits))
    assert not any(one.knows("192.0.2.1", "ann@example.com") for one in limits)
    # The right password doesn't count, at any node.
    await all_know(three, "sign-ins from one network", ADDRESS, 60)


async def test_emails_to_an_address_have_one_limit_at_all_nodes(
    three: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PER_MINUTE", 2)
    await three.nodes[0].channel("kitchen", "ann", "ben")
    for node in three.nodes[1:]:
        await node.node.log.catch_up()
    async with AsyncExitStack() as stack:
        posts = [await stack.enter_async_context(listening(node)) for node in three.nodes]
        address = posts[0].of_channel("kitchen", "ben")
        target = posts[0].addresses.target(three.nodes[0].node.state, address, 0)
        for number in range(2):
            assert await posts[number].bring(address, a_mail(f"no. {number}")) == {}
            await all_know(three, "mails that come in", target, 1 - number)
        for post in posts:
            assert (await post.bring(address, a_mail("one more")))[address][0] == 451
