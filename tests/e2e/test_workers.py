"""Several workers behind one address, replaced and killed while clients use them."""

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import Site
from tests.e2e.people import PATIENCE
from tests.e2e.raw_http import connected, request
from tests.e2e.server import Server, ended
from tests.e2e.strict_clients import crowded
from tests.e2e.test_first_run import FILLED, browser, printed_code
from tests.e2e.test_operations import poll_of, registered


class FromNothing(Server):
    """A server whose supervisor and workers are started without preloaded modules."""

    is_forked = False


@contextmanager
def _served(server: Server) -> Iterator[Site]:
    ann, ben = server.create_organization(), server.add("ben")
    with ended(server):
        launch(server)
        yield Site(server, ann, ben)


@pytest.fixture
def crew(database_url: str, tmp_path: Path) -> Iterator[Site]:
    """A site with two workers, on each kind of database."""
    with _served(Server(tmp_path / "data", database_url)) as town:
        yield town


@pytest.fixture
def sqlite_crew(tmp_path: Path) -> Iterator[Site]:
    """The same on SQLite only, for tests that don't depend on the database."""
    with _served(Server(tmp_path / "data")) as town:
        yield town


@pytest.fixture
def crew_from_nothing(tmp_path: Path) -> Iterator[Site]:
    """The same, started like an operator's programs, for tests of what processes inherit."""
    with _served(FromNothing(tmp_path / "data")) as town:
        yield town


def launch(server: Server, *more: str) -> None:
    """Start two workers, and return when the server is ready."""
    times = server.log_text().count("ready at") if server.log_path.exists() else 0
    server.launch("--workers", "2", *more)
    server.wait_for_log("ready at", times + 1)


def workers(server: Server) -> dict[int, int]:
    """The process ID of each worker that became ready last, by number."""
    found = re.findall(r"a worker is ready\" worker=(\d) pid=(\d+)", server.log_text())
    return {int(number): int(pid) for number, pid in found}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def measured(server: Server) -> set[str]:
    """The name of the worker that answers, as in its metrics."""
    with connected(server) as line:
        text = line.ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").body
    return set(re.findall(r'[{,]node="([^"]+)"', text.decode()))


def test_workers_are_replaced_without_errors_for_clients(crew: Site) -> None:
    server = crew.server
    assert server.process is not None
    before = workers(server)
    assert before.keys() == {0, 1}
    names: set[str] = set()
    seen: set[str] = set()

    def are_measured(known: set[str]) -> bool:
        """Whether both workers have answered by now."""
        known |= measured(server)
        return names <= known and len(known) > 1

    def is_replaced() -> bool:
        seen.update(measured(server))
        return not any(map(is_alive, before.values()))

    server.wait(lambda: are_measured(names), "both were measured")

    with crowded(server, crew.ann) as crowd:
        crowd.wait_for_more(20)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("a worker is ready", 4)
        server.wait(is_replaced, "the old workers are gone")
        # A worker that is terminated from outside is replaced, too.
        after = workers(server)
        os.kill(after[1], signal.SIGTERM)
        server.wait_for_log("a worker is ready", 5)
        crowd.wait_for_more(20)
    assert crowd.failures == []
    assert not set(after.values()) & set(before.values())
    # The same names each time, so that metrics aren't new series.
    assert "another node has this name" not in server.log_text()
    assert seen <= names | {f"{name}-next" for name in names}
    left: set[str] = set()
    server.wait(lambda: are_measured(left), "both names are back")
    assert server.stop() == 0
    assert server.log_text().count("Tertulia is ready at") == 1
    assert not any(map(is_alive, workers(server).values()))
    assert not server._answers("/health")


def test_acknowledged_messages_survive_killed_workers(crew: Site) -> None:
    server = crew.server
    with crowded(server, crew.ann) as crowd:
        for times, victim in enumerate((0, 1, 0)):
            crowd.wait_for_more(15)
            os.kill(workers(server)[victim], signal.SIGKILL)
            server.wait_for_log("a worker is ready", 3 + times)
        crowd.wait_for_more(15)
    # No listener registered again or missed anything: `crowded` checks that.
    assert len(set(crowd.acknowledged.values())) == len(crowd.acknowledged)
    assert server.log_text().count("a worker exited unexpectedly") == 3
    assert server.command("check")["ok"]


def test_workers_end_when_their_supervisor_is_gone(crew_from_nothing: Site) -> None:
    server = crew_from_nothing.server
    queue_id, last = registered(server, crew_from_nothing.ben)
    pids = workers(server).values()
    environment = Path(f"/proc/{workers(server)[0]}/environ").read_text()
    (own,) = re.findall(r"TERTULIA_WORKER=([^\0]+)", environment)
    with connected(server) as waiting:
        waiting.write(poll_of(crew_from_nothing.ben, queue_id, last))
        server.kill()
        answer = waiting.read()
        assert (answer.status, json.loads(answer.body)["events"]) == (200, [])
        assert answer.headers["connection"] == "close"
    assert server.process is not None
    server.process = None
    deadline = time.monotonic() + PATIENCE
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.02)  # They aren't our children, so they can only be polled.
    assert not Path(json.loads(own)["bus"]).exists()
    with ended(Server(server.data_dir, port=server.port)) as other:
        launch(other)  # The port and the database are released.
        assert other.stop() == 0


def test_a_replacement_that_fails_to_start_changes_nothing(sqlite_crew: Site) -> None:
    server = sqlite_crew.server
    assert server.process is not None
    before = workers(server)
    settings = server.data_dir / "tertulia.toml"
    for times, (text, said) in enumerate(
        (
            ("no_such_setting = 1", "no_such_setting"),
            ('database_url = "sqlite:////elsewhere"', "isn't the one that the other workers use"),
        )
    ):
        settings.write_text(text)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("the previous ones keep serving", times + 1)
        assert said in server.log_text()
    assert workers(server) == before
    settings.write_text('log_format = "json"\n')
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_log('"logger":"tertulia.', 1)
    server.wait_for_log("a worker is ready", 4)
    assert server.stop() == 0


def test_workers_wait_together_for_an_organization(database_url: str, tmp_path: Path) -> None:
    server = Server(tmp_path / "data", database_url)
    server.data_dir.mkdir(mode=0o700)
    with ended(server):
        server.launch("--workers", "2")
        code = printed_code(server)
        with browser(server) as ann:
            made = ann.post("/setup", data={**FILLED, "code": code})
            assert (made.status_code, made.headers["location"]) == (303, "/")
        server.wait_for_log("Tertulia is ready at")
        for _ in range(8):  # Whichever worker answers.
            with browser(server) as ann:
                ann.cookies.update(dict(made.cookies))
                assert ann.get("/api/v1/users/me").json()["full_name"] == "Ann"
        assert server.stop() == 0
    assert server.log_text().count("waiting at") == server.log_text().count("ready at") == 1


def test_a_server_that_cannot_start_says_why_and_exits(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    server.create_organization()
    (server.data_dir / "secret").write_text("another one, of the same length, perhaps")
    server.launch("--workers", "2")
    assert server.process is not None
    assert server.process.wait(60) == 1
    assert "no worker can be started" in server.log_text()


def test_a_draining_server_is_not_ready_and_keeps_serving(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    ann = server.create_organization()
    (server.data_dir / "tertulia.toml").write_text("drain_seconds = 8\n")
    with ended(server):
        server.start()
        queue_id, last = registered(server, ann)
        assert server.process is not None
        with connected(server) as waiting, connected(server) as other:
            assert "connection" not in other.ask(request(b"GET", b"/server_settings")).headers
            waiting.write(poll_of(ann, queue_id, last))
            server.process.send_signal(signal.SIGTERM)
            server.wait(lambda: not server._answers("/ready"), "the server is not ready")
            answer = other.ask(request(b"GET", b"/server_settings"))
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            with connected(server) as late:
                answer = late.ask(request(b"GET", b"/server_settings"))
                assert (answer.status, answer.headers["connection"]) == (200, "close")
            answer = waiting.read()
            assert (answer.status, json.loads(answer.body)["events"]) == (200, [])
            assert answer.headers["connection"] == "close"
        assert server.process.wait(60) == 0
