"""What operators do with a running server: stop, restart, and add users and nodes."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests import postgres
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, listening, ok
from tests.e2e.raw_http import connected, request
from tests.e2e.server import PASSWORD, Account, Server, ended

GENERAL = {"type": "stream", "to": "general", "topic": "news"}


def registered(server: Server, account: Account) -> tuple[str, int]:
    """Register a queue for the account. Return its ID and first event ID."""
    with connected(server) as connection:
        queue = json.loads(connection.ask(request(b"POST", b"/register", account, form=b"")).body)
        return queue["queue_id"], queue["last_event_id"]


def poll_of(account: Account, queue_id: str, last_event_id: int, *, block: bool = True) -> bytes:
    """A poll of the queue."""
    target = f"/events?queue_id={queue_id}&last_event_id={last_event_id}"
    return request(b"GET", (target if block else target + "&dont_block=true").encode(), account)


def test_a_stopping_server_answers_waiting_polls_and_exits_cleanly(site: Site) -> None:
    server = site.server
    queue_id, last = registered(server, site.ben)
    with connected(server) as waiting, connected(server) as idle:
        waiting.write(poll_of(site.ben, queue_id, last))
        assert idle.ask(request(b"GET", b"/server_settings")).status == 200
        assert server.stop() == 0
        answer = waiting.read()
        assert (answer.status, json.loads(answer.body)["events"]) == (200, [])
        assert idle.is_closed()


def test_queues_and_pending_events_survive_a_restart(site: Site) -> None:
    server = site.server
    queue_id, last = registered(server, site.ben)
    with client_of(site.ann, server) as ann:
        before = ok(ann.send_message({**GENERAL, "content": "before"}))["id"]
        assert server.stop() == 0
        server.start()
        after = ok(ann.send_message({**GENERAL, "content": "after"}))["id"]
    with connected(server) as connection:
        answer = connection.ask(poll_of(site.ben, queue_id, last))
        events = json.loads(answer.body)["events"]
        assert [e["message"]["id"] for e in events if e["type"] == "message"] == [before, after]
        last = events[-1]["id"]
        answer = connection.ask(poll_of(site.ben, queue_id, last, block=False))
        assert json.loads(answer.body)["events"] == []


def test_a_user_created_on_the_command_line_can_talk_immediately(site: Site) -> None:
    server = site.server
    with listening(server, site.ann) as (ann,):
        cleo = server.add("cleo")
        asked = {"username": cleo.email, "password": PASSWORD}
        key = httpx.post(f"{server.url}/api/v1/fetch_api_key", data=asked).json()
        assert (key["user_id"], key["api_key"]) == (cleo.user_id, cleo.api_key)
        with client_of(cleo, server) as client:
            sent = ok(client.send_message({**GENERAL, "content": "I am new"}))["id"]
        assert ann.hears_message(sent)["sender_id"] == cleo.user_id
        came = ann.hears(lambda e: e["type"] == "realm_user" and e["op"] == "add")
        assert came["person"]["user_id"] == cleo.user_id


@pytest.fixture
def two_nodes(postgres_url: str, tmp_path: Path) -> Iterator[tuple[Site, Server]]:
    """The site on PostgreSQL, with a second node on the same database."""
    with postgres.schema(postgres_url) as url:
        first, second = Server(tmp_path / "data", url), Server(tmp_path / "data", url)
        town = Site(first, first.create_organization(), first.add("ben"))
        with ended(first), ended(second):
            first.start()
            second.start()
            yield town, second


def test_a_message_sent_at_one_node_reaches_a_poll_at_the_other(
    two_nodes: tuple[Site, Server],
) -> None:
    town, second = two_nodes
    with (
        listening(second, town.ben) as (ben,),
        listening(town.server, town.ann) as (ann,),
        client_of(town.ann, town.server) as on_first,
        client_of(town.ben, second) as on_second,
    ):
        for number in range(10):
            there = ok(on_first.send_message({**GENERAL, "content": f"there {number}"}))["id"]
            back = ok(on_second.send_message({**GENERAL, "content": f"back {number}"}))["id"]
            assert there < back
            for listener in (ann, ben):
                listener.hears_message(there)
                listener.hears_message(back)
        ok(on_first.set_typing_status({"op": "start", "to": [town.ben.user_id]}))
        typing = ben.hears(lambda e: e["type"] == "typing")
        assert typing["sender"]["user_id"] == town.ann.user_id
    for listener in (ann, ben):
        ids = [event["id"] for event in listener.events]
        assert ids == sorted(set(ids))
        assert len(listener.messages()) == len(set(listener.messages())) == 20


def test_a_client_reads_its_own_writes_at_another_node(
    two_nodes: tuple[Site, Server],
) -> None:
    """It uses the cookies that Zulip's own client keeps. (For a client, all nodes have one
    address.)"""
    town, second = two_nodes
    with client_of(town.ben, town.server) as on_first, client_of(town.ben, second) as on_second:
        channel = ok(on_first.get_stream_id("general"))["stream_id"]
        ok(on_second.get_stream_id("general"))
        assert on_first.session is not None
        assert on_second.session is not None
        on_second.session.cookies = on_first.session.cookies
        clients = [on_first, on_second]
        for number in range(30):
            here, there = clients[number % 2], clients[1 - number % 2]
            ok(here.send_message({**GENERAL, "topic": f"news {number}", "content": "new"}))
            topics = ok(there.get_stream_topics(channel))["topics"]
            assert topics[0]["name"] == f"news {number}"


def test_a_queue_continues_at_another_node(two_nodes: tuple[Site, Server]) -> None:
    town, second = two_nodes
    queue_id, last = registered(town.server, town.ben)
    with client_of(town.ann, town.server) as ann:
        sent = ok(ann.send_message({**GENERAL, "content": "hello"}))["id"]
    town.server.kill()
    with connected(second) as connection:
        events = json.loads(connection.ask(poll_of(town.ben, queue_id, last)).body)["events"]
        assert [e["message"]["id"] for e in events if e["type"] == "message"] == [sent]
