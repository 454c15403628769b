"""Read your own writes at any node."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tertulia.log import replica
from tertulia.service.config import Config
from tertulia.store import notification_reader
from tertulia.store.broadcast import EntryBroadcast
from tertulia.store.database import DatabaseUnavailable
from tertulia.wire.http.positions import COOKIE_SECONDS
from tertulia.wire.http.request_head import POSITION, POSITION_COOKIE
from tests import postgres
from tests.browsers import FIREFOX, set_password
from tests.nodes import Client, Cluster, cluster
from tests.support import PASSWORD, Organization, Person, Reply, until
from tests.wire.loopback import request, serving


@pytest.fixture(scope="module")
def shared_config(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Config]:
    with postgres.schema(postgres_url) as url:
        yield _config(tmp_path_factory.mktemp("nodes"), url)


def _config(directory: Path, url: str) -> Config:
    return Config(
        data_dir=str(directory / "data"),
        database_url=url,
        external_url="http://chat.test",
        rate_limits=False,
    )


@pytest.fixture(scope="module")
async def three(shared_config: Config) -> AsyncIterator[Cluster]:
    """Three nodes, shared by all tests. Each test creates what it needs."""
    async with cluster(shared_config, 3) as found:
        await found.nodes[0].channel("lounge", "ann", "ben")
        await found.nodes[0].channel("attic", "ann")
        yield found


@pytest.fixture
def deaf(three: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The same without notifications: nodes learn about each other's changes only by checking."""
    for node in three.nodes:
        monkeypatch.setattr(node.node.log._inbox, "add_growth", _only_when_asked(node))
        monkeypatch.setattr(node.node.log._replica, "hear", _nothing)
    return three


def _nothing(_: EntryBroadcast) -> bool:
    """Ignore other nodes' announcements."""
    return True


def _only_when_asked(org: Organization) -> Callable[[], None]:
    inbox, waiting = org.node.log._inbox, org.node.log.catching_up
    add_growth = inbox.add_growth

    def when_asked() -> None:
        if len(waiting):
            add_growth()

    return when_asked


# Changes at one node are visible at another


def ids_of(reply: Reply, key: str) -> set[int]:
    return {one["id"] for one in reply.ok[key]}


async def topic(client: Client, here: int, there: int, mark: str) -> bool:
    await client.at(here).send("lounge", mark, "hello")
    return await shows(client, there, mark)


async def shows(client: Client, there: int, topic: str) -> bool:
    reply = await client.at(there).get("/users/me/1/topics")
    return topic in {one["name"] for one in reply.ok["topics"]}


async def draft(client: Client, here: int, there: int, mark: str) -> bool:
    made = {"type": "stream", "to": [1], "topic": "t", "content": mark, "timestamp": 1}
    (number,) = (await client.at(here).post("/drafts", drafts=[made])).ok["ids"]
    found = number in ids_of(await client.at(there).get("/drafts"), "drafts")
    gone = await client.at(there).delete(f"/drafts/{number}")
    return found and bool(gone.ok)


async def status(client: Client, here: int, there: int, mark: str) -> bool:
    (await client.at(here).post("/users/me/status", status_text=mark[:60])).ok
    reply = await client.at(there).get(f"/users/{client.person.user_id}/status")
    return bool(reply.ok["status"]["status_text"] == mark[:60])


async def upload(client: Client, here: int, there: int, mark: str) -> bool:
    path = await client.at(here).upload(f"{mark}.txt")
    return (await client.at(there).open(f"/user_uploads/{path}")).status_code == 200


async def edit(client: Client, here: int, there: int, mark: str) -> bool:
    message_id = await client.at(here).send("lounge", "edits", "before")
    (await client.at(here).patch(f"/messages/{message_id}", topic=mark)).ok
    reply = await client.at(there).get(f"/messages/{message_id}")
    return bool(reply.ok["message"]["subject"] == mark)


async def flags(client: Client, here: int, there: int, mark: str) -> bool:
    message_id = await client.at(here).send("lounge", "flags", mark)
    sent = {"messages": [message_id], "op": "add", "flag": "starred"}
    (await client.at(there).post("/messages/flags", **sent)).ok
    shown = await client.at(here).post(
        "/register", fetch_event_types=["starred_messages"], event_types=["message"]
    )
    return message_id in shown.ok["starred_messages"]


async def subscription(client: Client, here: int, there: int, mark: str) -> bool:
    wanted = [{"name": mark}]
    (await client.at(here).post("/users/me/subscriptions", subscriptions=wanted)).ok
    reply = await client.at(there).get("/users/me/subscriptions")
    return mark in {one["name"] for one in reply.ok["subscriptions"]}


KINDS = (topic, draft, status, upload, edit, flags, subscription)
Kind = Callable[[Client, int, int, str], Awaitable[bool]]


async def misses(client: Client, times: int, kinds: tuple[Kind, ...] = KINDS) -> list[str]:
    """Create things of each kind this many times at each node, read them immediately at each other
    node, and return those that weren't found."""
    ways = enumerate([*permutations(range(3), 2)] * times)
    return [
        f"{kind.__name__} {here} {there}"
        for number, (here, there) in ways
        for kind in kinds
        if not await kind(client, here, there, f"{kind.__name__}-{id(client)}-{number}")
    ]


async def test_a_change_at_one_node_is_visible_at_another(three: Cluster) -> None:
    assert await misses(three.client(), 2) == []


async def test_a_change_is_visible_even_without_notifications(deaf: Cluster) -> None:
    ben = deaf.client()
    assert await misses(ben, 1) == []
    # The premise of this test: without a position, nothing is found.
    forgetful = deaf.client(keeps_cookies=False)
    assert await misses(forgetful, 1, (topic, status)) != []


async def test_programs_send_the_header_back(deaf: Cluster) -> None:
    """It's in every response, so data that was visible once stays visible."""
    ben = deaf.client(keeps_cookies=False)
    await ben.at(0).send("lounge", "said once", "hello")
    shown = await ben.at(0).get("/users/me/1/topics")
    headers = {POSITION: shown.headers[POSITION]}
    reply = await ben.at(1).raw("GET", "/users/me/1/topics", headers=headers)
    assert "said once" in {one["name"] for one in reply.ok["topics"]}
    assert reply.headers[POSITION] == shown.headers[POSITION]


async def test_a_client_without_a_position_sees_announced_changes(
    three: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although nothing waits there, so that the node reads only for requests."""
    monkeypatch.setattr(notification_reader, "DEFER_SECONDS", 1000.0)
    ben = three.client(keeps_cookies=False)
    try:
        for mark in ("first", "second", "third"):
            await ben.at(0).send("lounge", mark, "hello")
            async with asyncio.timeout(60):
                # The announcement arrives a little after the response.
                while not await shows(ben, 1, mark):  # noqa: ASYNC110 (it has no event)
                    await asyncio.sleep(0.005)
    finally:
        monkeypatch.undo()
        for node in three.nodes:
            node.node.log.store.listen()


async def test_a_session_from_one_node_works_at_another(deaf: Cluster) -> None:
    first = deaf.nodes[0]
    await set_password(first, "ben")
    browser = deaf.client("")
    browser.person.http.headers["User-Agent"] = FIREFOX
    page = await browser.at(0).open("/login")
    assert POSITION_COOKIE not in page.headers.get("set-cookie", "")
    sent = {"username": first["ben"].email, "password": PASSWORD}
    answer = await browser.at(0).http.post("/login", data=sent)
    assert answer.status_code == 303
    for number in (1, 2, 0):
        assert (await browser.at(number).open("/")).status_code == 200


async def test_a_poll_that_does_not_wait_sees_its_client_s_changes(deaf: Cluster) -> None:
    ben, there = deaf.client(), deaf.nodes[1]
    queue = await ben.at(1).register(event_types=["message"])
    async with serving(there, "below") as server:
        line = await server.connect()
        for number in range(3):
            sent = await ben.at(0).post(
                "/messages", type="stream", to="lounge", topic="polls", content=str(number)
            )
            asked = f"/events?queue_id={queue.queue_id}&last_event_id={queue.last_event_id}"
            target = f"{asked}&dont_block=true"
            answer = await line.ask(
                request(target, ben.person, f"{POSITION}: {sent.headers[POSITION]}")
            )
            assert [event["message"]["id"] for event in answer.events] == [sent.ok["id"]]
            assert answer.header(POSITION.lower()) == sent.headers[POSITION]
            queue.last_event_id = answer.events[-1]["id"]
        # The next poll is plain, and takes the fast path with its position.
        assert await line.ask(request(target, ben.person)) == answer
        assert server.polls is not None
        assert server.polls.started == 1


# Header and cookie


async def test_the_cookie_is_set_by_changes(three: Cluster) -> None:
    ben = three.client(keeps_cookies=False).at(0)
    asked = await ben.get("/users/me")
    assert POSITION in asked.headers
    assert "set-cookie" not in asked.headers
    done = await ben.post("/users/me/status", status_text="away now")
    position = done.headers[POSITION]
    assert done.headers["set-cookie"] == (
        f"{POSITION_COOKIE}={position}; HttpOnly; Max-Age={COOKIE_SECONDS}; Path=/; SameSite=Lax"
    )
    history, _, seq = position.partition(".")
    log = three.nodes[0].node.log
    assert (history, int(seq)) == (log.position.history, log.durable)
    again = await ben.post("/users/me/status", status_text="away now")
    assert "set-cookie" not in again.headers
    refused = await ben.post("/messages", type="stream", to="nowhere", topic="t", content="c")
    assert refused.status == 400
    assert refused.headers[POSITION] == position


async def test_unauthenticated_clients_do_not_learn_the_position(three: Cluster) -> None:
    nobody = three.client("").at(0)
    for reply in (
        await nobody.get("/server_settings"),
        await nobody.post("/sessions", username="nobody@example.com", password="wrong"),
        await nobody.get("/users/me"),
    ):
        assert POSITION not in reply.headers
        assert "set-cookie" not in reply.headers


async def test_a_single_server_sends_no_position(sqlite_org: Organization) -> None:
    reply = await sqlite_org["ann"].post("/users/me/status", status_text="here")
    assert POSITION not in reply.headers
    assert "set-cookie" not in reply.headers
    headers = {POSITION: f"{sqlite_org.node.log.position.history}.999999999"}
    (await sqlite_org["ann"].raw("GET", "/users/me", headers=headers)).ok


# Invalid positions


@pytest.fixture
def looks(three: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has an element for each check of the head by the second node on behalf of requests. (The node
    also checks by itself.)"""
    store, seen = three.nodes[1].node.store, list[int]()
    look = store.look

    async def looked() -> Any:
        task = asyncio.current_task()
        if task is not None and task.get_name() == "log-catching-up":
            seen.append(1)
        return await look()

    monkeypatch.setattr(store, "look", looked)
    return seen


@pytest.mark.parametrize(
    "position",
    [
        "",
        "x",
        ".",
        "{history}",
        "{history}.",
        "{history}.-1",
        "{history}.1e9",
        "{history}.9999999999999999999999",
        "{history}.٩٩٩",
        "{history}.99999999, {history}.99999999",
        "0123456789abcdef.99999999",
        "x" * 5000 + ".99999999",
    ],
)
async def test_an_invalid_position_costs_nothing(
    three: Cluster, looks: list[int], position: str
) -> None:
    history = three.nodes[1].node.log.position.history
    value = position.format(history=history).encode()
    for headers in ({POSITION: value}, {"Cookie": POSITION_COOKIE.encode() + b"=" + value}):
        reply = await three.client().at(1).raw("GET", "/users/me", headers=headers)
        assert reply.ok
    assert looks == []
    assert not len(three.nodes[1].node.log.catching_up)


async def test_forged_positions_share_one_check(three: Cluster, looks: list[int]) -> None:
    log = three.nodes[1].node.log

    async def asked(number: int) -> Reply:
        headers = {POSITION: f"{log.position.history}.{log.durable + 1 + number * 10**9}"}
        return await three.client().at(1).raw("GET", "/users/me", headers=headers)

    replies = await asyncio.gather(*(asked(number) for number in range(300)))
    assert {reply.status for reply in replies} == {200}
    # Requests that arrive during a check wait for the next one.
    assert 1 <= len(looks) <= 30
    await until(lambda: log.catching_up._task is None)


# Limited waiting


async def away(*_: Any) -> Any:
    raise DatabaseUnavailable("away")


async def test_a_node_that_cannot_catch_up_says_so_in_time(
    three: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ben, behind = three.client(), three.nodes[1]
    with monkeypatch.context() as patch:
        patch.setattr(replica, "BEHIND_SECONDS", 0.05)
        for name in ("look", "read_log"):
            patch.setattr(behind.node.store, name, away)
        patch.setattr(behind.node.log._replica, "hear", _nothing)
        await ben.at(0).send("lounge", "while it is away", "hello")
        reply = await ben.at(1).get("/users/me")
        reply.refused("SERVER_NOT_READY", 503)
        assert reply.headers["retry-after"] == "1"
        # A client that has seen nothing newer is answered with the node's position.
        assert (await three.client().at(1).get("/users/me")).ok
        assert (await ben.at(1).open("/health")).status_code == 200
    behind.node.log._inbox.add_growth()
    reply = await ben.at(1).get("/users/me/1/topics")
    assert "while it is away" in {one["name"] for one in reply.ok["topics"]}
    assert not len(behind.node.log.catching_up)


async def test_waiting_requests_are_limited(
    three: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = three.nodes[1].node.log
    monkeypatch.setattr(replica, "MAX_BEHIND_REQUESTS", 3)
    monkeypatch.setattr(replica, "BEHIND_SECONDS", 0.05)
    monkeypatch.setattr(three.nodes[1].node.store, "look", away)
    headers = {POSITION: f"{log.position.history}.{log.durable + 1000}"}

    def asked(person: Person) -> Awaitable[Reply]:
        return person.raw("GET", "/users/me", headers=headers)

    replies = await asyncio.gather(*(asked(three.client().at(1)) for _ in range(5)))
    assert {reply.status for reply in replies} == {503}
    await until(lambda: log.catching_up._task is None)
    assert log.catching_up._waiting == []


async def test_requests_wait_for_entries_that_a_new_state_lacks(
    three: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entries may have been committed after the state was read."""
    log = three.nodes[1].node.log
    headers = {POSITION: f"{log.position.history}.{log.durable + 1000}"}
    with monkeypatch.context() as patch:
        patch.setattr(three.nodes[1].node.store, "look", away)
        waiting = asyncio.create_task(three.client().at(1).raw("GET", "/users/me", headers=headers))
        await until(lambda: len(log.catching_up) == 1)
        log.subscribers.reloaded(is_other_history=False)
        assert len(log.catching_up) == 1
    # The head lacks them, too: the database went back in time, and the client sees that.
    assert (await waiting).ok
    await until(lambda: log.catching_up._task is None)
