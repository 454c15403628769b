"""Memory used by clients that misuse their connections."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.raw_http import connected, request
from tests.e2e.server import Account, Server, ended

MIB = 2**20
MOST = 150 * MIB
"""The allowed growth: several times the actual one, and a tenth of what it once was."""
HEALTH = b"GET /health HTTP/1.1\r\nHost: chat.test\r\n\r\n"
SETTINGS = b"GET /api/v1/server_settings HTTP/1.1\r\nHost: chat.test\r\n\r\n"
HALF = (
    b"POST /api/v1/messages HTTP/1.1\r\nHost: chat.test\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Account]]:
    server = Server(tmp_path_factory.mktemp("misused"))
    ann = server.create_organization()
    with ended(server):
        server.start()
        yield server, ann


def memory(server: Server) -> int:
    """The process's memory in bytes."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status")
    if not status.exists():
        pytest.skip("this system does not tell the memory of a process")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def pushed(plug: socket.socket, data: bytes, seconds: float) -> int:
    """Send the same data until it's no longer accepted. Return the number of bytes sent."""
    plug.settimeout(0.2)
    sent, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            sent += plug.send(data)
        except TimeoutError:
            continue
        except OSError:
            break
    return sent


def pipelining(server: Server, _ann: Account) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.port)) as plug:
            pushed(plug, HEALTH * 1000, 1)


def pipelining_to_be_refused(server: Server, _: Account) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as plug:
        pushed(plug, b"nonsense\r\n\r\n" * 1000, 1)


def a_thousand_polls(server: Server, ann: Account) -> None:
    with connected(server) as connection:
        answer = connection.ask(request(b"POST", b"/register", ann, form=b""))
    queue_id = answer.body.partition(b'"queue_id":"')[2].partition(b'"')[0]
    poll = b"/events?last_event_id=-1&queue_id=" + queue_id
    for more in (b"", b"&dont_block=true"):
        with socket.create_connection(("127.0.0.1", server.port)) as plug:
            pushed(plug, request(b"GET", poll + more, ann) * 1000, 2)


def endless_heads(server: Server, _: Account) -> None:
    for start in (b"GET /" + b"x" * 100_000, b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * 100_000):
        with socket.create_connection(("127.0.0.1", server.port)) as plug:
            pushed(plug, start, 1)


def half_a_request(server: Server, _: Account) -> None:
    body = HALF + b"Content-Length: 8000000\r\n\r\n" + b"x" * 4_000_000
    many(server, [HEALTH[:-3], body])


def never_reading(server: Server, _: Account) -> None:
    many(server, [SETTINGS * 30, HEALTH * 30])


def many(server: Server, beginnings: list[bytes]) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(150):
            plug = socket.create_connection(("127.0.0.1", server.port))
            stack.enter_context(plug)
            plug.settimeout(10)
            with contextlib.suppress(OSError):
                plug.sendall(beginnings[number % len(beginnings)])
        assert_healthy(server)


def assert_healthy(server: Server) -> None:
    with connected(server) as connection:
        assert connection.ask(HEALTH).status == 200


def coming_and_going(server: Server, _: Account) -> None:
    for number in range(3000):
        with socket.create_connection(("127.0.0.1", server.port)) as plug:
            plug.sendall((b"", HEALTH, HEALTH[:-3], b"x")[number % 4])


@pytest.mark.parametrize(
    "misuse",
    [
        pipelining,
        pipelining_to_be_refused,
        a_thousand_polls,
        endless_heads,
        half_a_request,
        never_reading,
        coming_and_going,
    ],
)
def test_memory_is_bounded(
    server: tuple[Server, Account], misuse: Callable[[Server, Account], None]
) -> None:
    running, ann = server
    assert_healthy(running)
    before = memory(running)
    misuse(running, ann)
    assert_healthy(running)
    assert memory(running) - before < MOST
    assert "Traceback" not in running.log_text()


class SmallServer(Server):
    """A server with a low limit of open files."""

    is_forked = False

    def _command_line(self, *words: str) -> list[str]:
        shell = ["sh", "-c", 'ulimit -n 260 && exec "$@"', "sh"]
        return [*shell, *super()._command_line(*words)]


def test_unfinished_bodies_lock_nobody_out(tmp_path: Path) -> None:
    """Even from an address without a connection limit."""
    server = SmallServer(tmp_path / "data")
    server.create_organization()
    with ended(server), contextlib.ExitStack() as stack:
        server.start()
        for _ in range(175):
            with contextlib.suppress(OSError):
                plug = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                plug.sendall(HALF + b"Content-Length: 9\r\n\r\na")
        # The health check answers immediately,
        assert_healthy(server)
        # and everything else once idle connections have been closed.
        server.wait(lambda: is_answered(server), "somebody else is answered")
        assert "Traceback" not in server.log_text()


def is_answered(server: Server) -> bool:
    with connected(server) as connection:
        return connection.ask(SETTINGS).status == 200
