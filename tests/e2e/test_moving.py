"""Moving from a running server with the commands: existing clients go on working here."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zulip

from tertulia.app.founding import is_founded
from tertulia.service.config import Config
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok
from tests.e2e.server import PASSWORD, START_SECONDS, Account, Server, ended
from tests.programs import Program


@pytest.fixture
def new(tmp_path: Path, database_url: str) -> Server:
    server = Server(tmp_path / "new", database_url)
    server.data_dir.mkdir(mode=0o700)
    return server


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Site]:
    server = Server(tmp_path / "data")
    ann, ben = server.create_organization(), server.add("ben")
    with ended(server):
        server.start()
        yield Site(server, ann, ben)


@contextmanager
def following(new: Server, old: Site, output: Path) -> Iterator[Program]:
    """`tertulia import zulip-live`, with a zuliprc."""
    zuliprc = output.with_name("zuliprc")
    zuliprc.write_text(
        f"[api]\nemail={old.ann.email}\nkey={old.ann.api_key}\nsite={old.server.url}\n"
    )
    words = ["import", "zulip-live", *new._place(), old.server.url, "--key-file", str(zuliprc)]
    with output.open("ab") as file:
        program = Program(words, new._environment(), file.fileno())
    try:
        yield program
    finally:
        if program.poll() is None:
            program.send_signal(9)
            program.wait(30)


def send(account: Account, server: Server, content: str) -> int:
    with client_of(account, server) as client:
        message = {"type": "stream", "to": "general", "topic": "move", "content": content}
        message_id: int = ok(client.send_message(message))["id"]
        return message_id


def newest(account: Account, server: Server) -> tuple[int, str]:
    with client_of(account, server) as client:
        page = {"anchor": "newest", "num_before": 1, "num_after": 0, "apply_markdown": False}
        messages = ok(client.get_messages(page))["messages"]
        return (messages[-1]["id"], messages[-1]["content"]) if messages else (0, "")


def test_a_client_keeps_its_key_its_messages_and_its_password(
    old: Site, new: Server, tmp_path: Path
) -> None:
    with client_of(old.ben, old.server) as client:
        ok(client.add_subscriptions([{"name": "general"}]))
    first = send(old.ben, old.server, "written before")
    output = tmp_path / "output"
    (new.data_dir / "tertulia.toml").write_text(f'moving_from_url = "{old.server.url}"\n')
    with ended(new):
        with following(new, old, output) as program:
            config = Config(data_dir=str(new.data_dir), database_url=new.database_url)
            until = time.monotonic() + START_SECONDS
            while not is_founded(config):
                assert program.poll() is None, output.read_text()
                assert time.monotonic() < until
                time.sleep(0.1)
            new.start()
            new.wait(lambda: _knows(new, old.ben, first), "the message is there")
            assert newest(old.ben, new) == (first, "written before")
            second = send(old.ben, old.server, "written while it moves")
            new.wait(
                lambda: newest(old.ben, new) == (second, "written while it moves"), "it arrives"
            )
            with client_of(old.ben, new, retry=False) as client:
                message = {"type": "stream", "to": "general", "topic": "move", "content": "early"}
                refused = client.send_message(message)
                assert refused["result"] == "error"
                assert "still moving" in refused["msg"]
            # Killed, and started again.
            program.send_signal(9)
            program.wait(30)
        third = send(old.ben, old.server, "written in the meantime")
        with following(new, old, output) as program:
            new.wait(lambda: newest(old.ben, new)[0] == third, "it arrives")
            with output.open("ab") as file:
                words = ["import", "finish", *new._place()]
                finishing = Program(words, new._environment(), file.fileno())
            assert finishing.wait(60) == 0, output.read_text()
            assert program.wait(60) == 0, output.read_text()
        assert "People can use this server" in output.read_text()
        last = send(old.ben, new, "written here")
        assert last > third
        client = zulip.Client(
            email=old.ann.email, api_key=old.ann.api_key, site=new.url, retry_on_errors=False
        )
        assert ok(client.get_profile())["user_id"] == old.ann.user_id
        answer = client.call_endpoint(
            "fetch_api_key", request={"username": old.ben.email, "password": PASSWORD}
        )
        assert ok(answer)["api_key"] == old.ben.api_key


def _knows(new: Server, account: Account, message_id: int) -> bool:
    if not new._answers("/api/v1/users/me", account):
        return False
    return newest(account, new)[0] == message_id
