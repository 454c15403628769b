"""A running server answers invalid requests with a JSON error and keeps working."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tertulia.wire.protocol.request_head import MAX_HEAD
from tests.e2e.conftest import Site
from tests.e2e.raw_http import connected, request
from tests.e2e.server import Account, Server, ended

MIB = 1024 * 1024


@pytest.fixture
def site(sqlite_site: Site) -> Iterator[Site]:
    """The shared site, which must be healthy after the test."""
    yield sqlite_site
    with connected(sqlite_site.server) as connection:
        assert connection.ask(request(b"GET", b"/server_settings")).status == 200
    assert "Traceback" not in sqlite_site.server.log_text()


DEEP = b"[" * 20_000


@pytest.mark.parametrize(
    ("method", "target", "form", "code", "status"),
    [
        # Unknown paths
        (b"GET", b"/nothing", None, "BAD_REQUEST", 404),
        (b"GET", b"/", None, "BAD_REQUEST", 404),
        (b"GET", b"/messages/", None, "BAD_REQUEST", 404),
        (b"GET", b"/messages/abc", None, "BAD_REQUEST", 404),
        (b"GET", b"/nothing/%ff%fe", None, "BAD_REQUEST", 404),
        (b"GET", b"/nothing/%00", None, "BAD_REQUEST", 404),
        (b"GET", b"/nothing/" + b"x" * 30_000, None, "BAD_REQUEST", 404),
        (b"GET", b"/../../../etc/passwd", None, "BAD_REQUEST", 404),
        # Wrong methods
        (b"DELETE", b"/server_settings", None, "BAD_REQUEST", 405),
        (b"PUT", b"/messages", b"", "BAD_REQUEST", 405),
        # Missing or malformed parameters
        (b"POST", b"/messages", b"", "REQUEST_VARIABLE_MISSING", 400),
        (b"POST", b"/messages", b"type=stream&to=general", "REQUEST_VARIABLE_MISSING", 400),
        (b"POST", b"/messages", b"type=pigeon&to=1&content=x", "REQUEST_VARIABLE_INVALID", 400),
        (b"POST", b"/messages", b"%00=%00", "REQUEST_VARIABLE_MISSING", 400),
        (b"GET", b"/events", None, "REQUEST_VARIABLE_MISSING", 400),
        (b"GET", b"/events?queue_id=x&last_event_id=x", None, "REQUEST_VARIABLE_INVALID", 400),
        (b"GET", b"/messages?num_before=-1&num_after=0", None, "REQUEST_VARIABLE_INVALID", 400),
        (b"GET", b"/messages?narrow=" + DEEP, None, "REQUEST_VARIABLE_INVALID", 400),
        (b"POST", b"/register", b"event_types={}", "REQUEST_VARIABLE_INVALID", 400),
        (b"POST", b"/register", b"narrow=" + DEEP, "REQUEST_VARIABLE_INVALID", 400),
        # Invalid UTF-8
        (b"GET", b"/messages?anchor=%ff", None, "BAD_REQUEST", 400),
        (b"GET", b"/messages?%c3%28=1", None, "BAD_REQUEST", 400),
        (b"POST", b"/messages", b"type=stream&to=general&topic=t&content=%ff", "BAD_REQUEST", 400),
        (b"POST", b"/messages", b"type=stream&content=\xff\xfe", "BAD_REQUEST", 400),
        # Oversized values
        (b"POST", b"/messages", b"&".join(b"a%d=1" % i for i in range(2000)), "BAD_REQUEST", 400),
        # Unknown queues
        (b"GET", b"/events?queue_id=x&last_event_id=-1", None, "BAD_EVENT_QUEUE_ID", 400),
        (b"DELETE", b"/events", b"queue_id=x", "BAD_EVENT_QUEUE_ID", 400),
    ],
)
def test_a_bad_request_is_explained(
    site: Site, method: bytes, target: bytes, form: bytes | None, code: str, status: int
) -> None:
    with connected(site.server) as connection:
        answer = connection.ask(request(method, target, site.ann, form=form))
        refusal = answer.refused(code, status)
        if status == 405:
            assert answer.headers["allow"].split(", ") == refusal["allowed_methods"]
        # The connection remains usable.
        assert connection.ask(request(b"GET", b"/server_settings")).status == 200


@pytest.mark.parametrize(
    ("authorization", "code", "status"),
    [
        ("", "UNAUTHORIZED", 401),
        ("Basic", "UNAUTHORIZED", 401),
        ("Basic !!!", "UNAUTHORIZED", 401),
        ("Basic /////w==", "UNAUTHORIZED", 401),
        ("Basic YW5u", "UNAUTHORIZED", 401),
        ("Basic YW5uQGV4YW1wbGUuY29tOndyb25n", "INVALID_API_KEY", 401),
        ("Bearer abc", "BAD_REQUEST", 400),
    ],
)
def test_unauthenticated_requests_are_refused(
    site: Site, authorization: str, code: str, status: int
) -> None:
    head = "GET /api/v1/events?queue_id=x HTTP/1.1\r\nHost: chat.test\r\n"
    with connected(site.server) as connection:
        answer = connection.ask(f"{head}Authorization: {authorization}\r\n\r\n".encode())
        answer.refused(code, status)


def test_a_key_works_only_with_its_own_account(site: Site) -> None:
    mixed = Account(0, site.ann.email, site.ben.api_key)
    with connected(site.server) as connection:
        connection.ask(request(b"POST", b"/register", mixed, form=b"")).refused(
            "INVALID_API_KEY", 401
        )


def test_another_account_s_queue_does_not_exist(site: Site) -> None:
    with connected(site.server) as connection:
        answer = connection.ask(request(b"POST", b"/register", site.ann, form=b""))
        queue_id = json.loads(answer.body)["queue_id"].encode()
        poll = b"/events?dont_block=true&last_event_id=-1&queue_id=" + queue_id
        assert connection.ask(request(b"GET", poll, site.ann)).status == 200
        connection.ask(request(b"GET", poll, site.ben)).refused("BAD_EVENT_QUEUE_ID")


def test_a_deactivated_account_is_refused_and_its_poll_ends(site: Site) -> None:
    dora = site.server.add("dora")
    with connected(site.server) as hers, connected(site.server) as anns:
        answer = hers.ask(request(b"POST", b"/register", dora, form=b""))
        queue = json.loads(answer.body)
        poll = f"/events?queue_id={queue['queue_id']}&last_event_id={queue['last_event_id']}"
        hers.write(request(b"GET", poll.encode(), dora))
        target = b"/users/%d" % dora.user_id
        assert anns.ask(request(b"DELETE", target, site.ann, form=b"")).status == 200
        hers.read().refused("USER_DEACTIVATED", 401)
        hers.ask(request(b"GET", b"/users/me", dora)).refused("USER_DEACTIVATED", 401)


def _pieces(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b"x" * MIB


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_50_mib_is_refused(site: Site, chunked: bool) -> None:
    answer = requests.post(
        f"{site.server.url}/api/v1/messages",
        data=_pieces(50) if chunked else b"content=" + b"x" * (50 * MIB),
        headers={"Content-Type": "application/x-www-form-urlencoded", "Connection": "close"},
        auth=(site.ann.email, site.ann.api_key),
        timeout=60,
    )
    assert answer.status_code == 413
    assert answer.json()["result"] == "error"
    assert answer.json()["code"] == "BAD_REQUEST"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"{}"),
        ("text/plain", b"hello"),
        ("multipart/form-data", b"hello"),
        ("multipart/form-data; boundary=x", b"hello"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\n\xff"),
    ],
)
def test_a_body_that_is_no_form_is_refused(site: Site, kind: str, body: bytes) -> None:
    answer = requests.post(
        f"{site.server.url}/api/v1/messages",
        data=body,
        headers={"Content-Type": kind, "Connection": "close"},
        auth=(site.ann.email, site.ann.api_key),
        timeout=60,
    )
    assert answer.status_code == 400
    assert answer.json()["code"] == "BAD_REQUEST"


@pytest.mark.parametrize(
    "noise",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"HELO chat.test\r\n\r\n",
        b"GET /api/v1/\xff\xfe HTTP/1.1\r\nHost: chat.test\r\n\r\n",
        b"GET /api/v1/server_settings HTTP/9.9\r\nHost: chat.test\r\n\r\n",
        b"POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: nine\r\n\r\n",
        b"POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /api/v1/server_settings HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
    ],
)
def test_invalid_http_is_refused_and_the_connection_closed(site: Site, noise: bytes) -> None:
    with connected(site.server) as connection:
        connection.ask(noise).refused()
        assert connection.is_closed()


@pytest.mark.parametrize("start", [b"GET /api/v1/", b"GET / HTTP/1.1\r\nX-Long: "])
def test_endless_headers_close_the_connection(site: Site, start: bytes) -> None:
    with connected(site.server) as connection:
        endless = start + b"x" * (MAX_HEAD + 1 - len(start))
        connection.ask(endless).refused("BAD_REQUEST", 431)
        assert connection.is_closed()


def test_a_body_may_be_larger_than_the_headers(site: Site) -> None:
    form = b"type=direct&to=[%d]&content=" % site.ann.user_id + b"%20" * MAX_HEAD
    with connected(site.server) as connection:
        for _ in range(2):
            answer = connection.ask(request(b"POST", b"/messages", site.ben, form=form))
            assert answer.refused()["msg"] == "Messages can't be empty."


def test_a_slow_client_delays_nobody(site: Site) -> None:
    form = b"type=direct&to=[%d]&content=late" % site.ann.user_id
    slow = request(b"POST", b"/messages", site.ben, form=form)
    with connected(site.server) as first, connected(site.server) as second:
        for position in range(len(slow) - 1):
            first.write(slow[position : position + 1])
            if position % 50 == 0:
                assert second.ask(request(b"GET", b"/server_settings")).status == 200
        assert first.ask(slow[-1:]).status == 200


def test_pipelined_requests_are_answered_in_order(site: Site) -> None:
    wrong = request(b"GET", b"/nothing", site.ann)
    right = request(b"GET", b"/server_settings")
    with connected(site.server) as connection:
        connection.write(right + wrong + right + wrong)
        assert [connection.read().status for _ in range(4)] == [200, 404, 200, 404]
        assert connection.ask(right).status == 200


def test_a_poll_of_a_disconnected_client_is_dropped(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    ben = server.create_organization()
    with ended(server):
        # Successful polls are logged only at the debug level.
        (server.data_dir / "tertulia.toml").write_text('log_level = "debug"\n')
        server.start()
        is_forgotten(server, ben)


def is_forgotten(server: Server, ben: Account) -> None:
    with connected(server) as connection:
        answer = connection.ask(request(b"POST", b"/register", ben, form=b""))
        queue = json.loads(answer.body)
    poll = f"/events?queue_id={queue['queue_id']}&last_event_id={queue['last_event_id']}"
    before = server.log_text().count("path=/api/v1/events ")
    with connected(server) as connection:
        connection.write(request(b"GET", poll.encode(), ben))
        with connected(server) as other:  # The poll has been accepted by now.
            assert other.ask(request(b"GET", b"/server_settings")).status == 200
        assert server.log_text().count("path=/api/v1/events ") == before
    server.wait_for_log("path=/api/v1/events ", before + 1)
