"""Rate limits, and how Zulip's own client handles them."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import zulip

from tests.e2e.conftest import Site
from tests.e2e.people import client_of, listening, ok
from tests.e2e.raw_http import Response, connected, request
from tests.e2e.server import Account, Server, ended

SAID = {"type": "stream", "to": "general", "topic": "tea"}


@contextmanager
def limited(directory: Path, **settings: object) -> Iterator[Site]:
    """A server with ann and ben, and these settings."""
    server = Server(directory / "data", rate_limits=True)
    ann, ben = server.create_organization(), server.add("ben")
    lines = "".join(f"{name} = {value!r}\n" for name, value in settings.items())
    (server.data_dir / "tertulia.toml").write_text(lines)
    with ended(server):
        server.start()
        yield Site(server, ann, ben)


def use_up(account: Account, server: Server) -> None:
    """Send requests until the account's limit is reached."""
    with httpx.Client(base_url=server.url, auth=(account.email, account.api_key)) as client:
        while client.get("/api/v1/users/me").headers["X-RateLimit-Remaining"] != "0":
            pass


def sent(client: zulip.Client, content: str) -> int:
    """Send a message, retrying as needed. Return its ID."""
    while True:
        answer = client.send_message({**SAID, "content": content})
        if answer.get("code") != "RATE_LIMIT_HIT":
            message_id: int = ok(answer)["id"]
            return message_id
        time.sleep(answer["retry-after"])  # As the server asks.


def test_a_client_that_waits_as_asked_sends_everything(tmp_path: Path) -> None:
    with (
        limited(tmp_path, requests_per_minute=120) as town,
        client_of(town.ann, town.server) as ann,
        listening(town.server, town.ben, event_types=["message"]) as (ben,),
    ):
        ids: list[int] = []
        # On a slow machine, another request may already be allowed.
        while "status=429" not in town.server.log_text() and len(ids) < 100:
            use_up(town.ann, town.server)
            ids += [sent(ann, str(number)) for number in range(len(ids), len(ids) + 5)]
        ben.hears_message(ids[-1])
        assert ben.messages() == [(one, str(n)) for n, one in enumerate(ids)]
    assert "status=429" in town.server.log_text()


def test_the_client_s_event_loop_waits_until_it_can_register(tmp_path: Path) -> None:
    def registered() -> list[str]:
        log = town.server.log_text().splitlines()
        return [line.partition("status=")[2][:3] for line in log if "/register" in line]

    with limited(tmp_path, requests_per_minute=20) as town:
        for _ in range(10):
            before = len(registered())
            use_up(town.ben, town.server)
            with (
                listening(town.server, town.ben, event_types=["message"]) as (ben,),
                client_of(town.ann, town.server) as ann,
            ):
                ben.hears_message(sent(ann, "there you are"))
            statuses = registered()[before:]
            # Otherwise the machine was so slow that the limit had recovered.
            if statuses[0] == "429":
                break
    assert statuses[0] == "429"
    assert statuses[-1] == "200"


def test_each_poll_counts_once_however_long_it_waits(tmp_path: Path) -> None:
    def told(answer: Response) -> tuple[str, str]:
        return answer.headers["x-ratelimit-limit"], answer.headers["x-ratelimit-remaining"]

    with (
        limited(tmp_path, polls_per_minute=3, requests_per_minute=3) as town,
        client_of(town.ann, town.server) as ann,
        connected(town.server) as ben,
    ):
        queue = json.loads(ben.ask(request(b"POST", b"/register", town.ben, form=b"")).body)

        def poll(queue_id: str, more: str = "") -> bytes:
            cursor = f"last_event_id={queue['last_event_id']}"
            target = f"/events?queue_id={queue_id}&{cursor}{more}"
            return request(b"GET", target.encode(), town.ben)

        ben.write(poll(queue["queue_id"]))
        sent(ann, "hello")
        answer = ben.read()
        assert [event["type"] for event in json.loads(answer.body)["events"]] == ["message"]
        # (Another one is allowed only after twenty seconds.)
        assert told(answer) == ("3", "2")
        assert float(answer.headers["x-ratelimit-reset"]) <= time.time() + 61
        assert told(ben.ask(poll(queue["queue_id"], "&dont_block=true"))) == ("3", "1")
        missing = ben.ask(poll("00000000-0000-4000-8000-000000000000"))
        missing.refused("BAD_EVENT_QUEUE_ID")
        assert told(missing) == ("3", "0")
        answer = ben.ask(poll(queue["queue_id"], "&client=other"))
        assert 0 < answer.refused("RATE_LIMIT_HIT", 429)["retry-after"] <= 20
        assert told(answer) == ("3", "0")
        assert told(ben.ask(request(b"GET", b"/users/me", town.ben))) == ("3", "1")


def test_only_a_trusted_proxy_sets_the_client_address(tmp_path: Path) -> None:
    def remaining(server: Server, *hosts: str) -> list[int]:
        url = f"{server.url}/api/v1/server_settings"
        answers = [httpx.get(url, headers={"X-Forwarded-For": host}) for host in hosts]
        return [int(answer.headers["X-RateLimit-Remaining"]) for answer in answers]

    settings = {"anonymous_requests_per_minute": 3}
    with limited(tmp_path / "proxy", **settings) as town:
        hosts = ("192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.3, 192.0.2.2")
        assert remaining(town.server, *hosts) == [2, 2, 1, 1]
        assert remaining(town.server, "2001:db8::1", "2001:db8::2") == [2, 1]
    with limited(tmp_path / "none", **settings, proxy_trusted="192.0.2.99") as town:
        assert remaining(town.server, "192.0.2.1", "192.0.2.2", "192.0.2.3") == [2, 1, 0]
