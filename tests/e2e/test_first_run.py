"""The first run of a server process: from an empty directory to a conversation, including power
failures."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.server import PASSWORD, Server, ended

FILLED = {
    "organization": "Café Central",
    "full_name": "Ann",
    "email": "ann@example.com",
    "password": PASSWORD,
}


def printed_code(server: Server) -> str:
    """The code in the address that the newest process printed."""
    server.wait_for_log("/setup?code=")
    code: str = re.findall(r"/setup\?code=(\S+)", server.log_text())[-1]
    return code


def browser(server: Server) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers={"User-Agent": "Mozilla/5.0"})


def test_an_empty_directory_becomes_a_working_organization(
    database_url: str, tmp_path: Path
) -> None:
    server = Server(tmp_path / "data", database_url)
    server.data_dir.mkdir(mode=0o700)
    with ended(server):
        server.start("/setup")
        code = printed_code(server)
        # After a power failure while someone reads the page, the page still works.
        server.kill()
        server.start("/setup")
        assert printed_code(server) == code
        with browser(server) as ann:
            assert ann.get("/", follow_redirects=True).url.path == "/setup"
            wrong = ann.post("/setup", data={**FILLED, "code": "wrong"})
            assert wrong.status_code == 400
            made = ann.post("/setup", data={**FILLED, "code": code})
            assert (made.status_code, made.headers["location"]) == (303, "/")
            # Acknowledged changes are on disk, and sessions remain.
            server.kill()
            server.start()
            own = ann.get("/api/v1/users/me").json()
            assert (own["full_name"], own["is_owner"]) == ("Ann", True)
            token = {"X-CSRF-Token": ann.cookies["tertulia_csrf"]}
            message = {"type": "stream", "to": "general", "topic": "hello", "content": "Hi,"}
            sent = ann.post("/api/v1/messages", data=message, headers=token)
            assert sent.status_code == 200, sent.text
            assert ann.get("/setup").headers["location"] == "/"
        assert server.stop() == 0
        assert server.command("check")["ok"]


def test_of_concurrent_setups_one_wins(database_url: str, tmp_path: Path) -> None:
    server = Server(tmp_path / "data", database_url)
    server.data_dir.mkdir(mode=0o700)
    with ended(server), ThreadPoolExecutor(4) as threads:
        server.start("/setup")
        code = printed_code(server)

        def race(number: int) -> tuple[str, bool]:
            with browser(server) as http:
                sent = {**FILLED, "email": f"p{number}@example.com", "code": code}
                response = http.post("/setup", data=sent)
                own = http.get("/api/v1/users/me")
                return response.headers["location"], own.status_code == 200

        results = sorted(threads.map(race, range(4)))
        assert results == [("/", True), *[("/login", False)] * 3]
        assert server.stop() == 0


@pytest.mark.parametrize("begun", [False, True])
def test_a_power_failure_during_setup_leaves_all_or_nothing(
    database_url: str, tmp_path: Path, begun: bool
) -> None:
    server = Server(tmp_path / "data", database_url)
    server.data_dir.mkdir(mode=0o700)
    with ended(server), ThreadPoolExecutor(1) as threads, browser(server) as http:
        server.start("/setup")
        sent = {**FILLED, "code": printed_code(server)}
        answer = threads.submit(http.post, "/setup", data=sent)
        if begun:
            server.wait((server.data_dir / "secret").exists, "it is being made")
        server.kill()
        answer.exception()
        server.start("/health")
        if httpx.get(f"{server.url}/ready").status_code != 200:
            assert http.post("/setup", data=sent).status_code == 303
        right = {"username": FILLED["email"], "password": PASSWORD}
        signed_in = http.post("/api/v1/sessions", data=right)
        assert signed_in.status_code == 200, signed_in.text
        assert server.stop() == 0
