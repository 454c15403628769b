"""Moving from a running server with the commands: existing clients go on working here."""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
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
            program.wait(60)


def run(new: Server, output: Path, group: str, command: str, *arguments: str) -> None:
    """Run a command on the new server's data. It must succeed."""
    with output.open("ab") as file:
        words = [group, command, *new._place(), *arguments]
        program = Program(words, new._environment(), file.fileno())
    assert program.wait(60) == 0, output.read_text()


def send(account: Account, server: Server, content: str, to: list[int] | None = None) -> int:
    """Send a message to the topic, or to these people."""
    with client_of(account, server) as client:
        message: dict[str, Any] = {"type": "private", "to": to, "content": content}
        if to is None:
            message |= {"type": "stream", "to": "general", "topic": "move"}
        message_id: int = ok(client.send_message(message))["id"]
        return message_id


def newest(account: Account, server: Server) -> tuple[int, str]:
    with client_of(account, server) as client:
        page = {"anchor": "newest", "num_before": 1, "num_after": 0, "apply_markdown": False}
        messages = ok(client.get_messages(page))["messages"]
        return (messages[-1]["id"], messages[-1]["content"]) if messages else (0, "")


def seen(account: Account, server: Server, link: str, path: str, linked: int) -> dict[str, Any]:
    """Return the state that the account's client shows: unread messages, the target of a link, and
    the linked file."""
    with client_of(account, server, retry=False) as client:
        wanted = {"fetch_event_types": ["message", "update_message_flags"]}
        unread = ok(client.call_endpoint("register", request=wanted))["unread_msgs"]
        message = ok(client.call_endpoint(f"messages/{linked}", method="GET"))["message"]
        assert link in message["content"]
        channel_id, topic, near = link.removeprefix("/#narrow/channel/").split("/")[::2]
        narrow = [
            {"operator": "channel", "operand": int(channel_id.split("-")[0])},
            {"operator": "topic", "operand": topic},
        ]
        page = {"anchor": int(near), "num_before": 1, "num_after": 1, "narrow": narrow}
        messages = ok(client.get_messages(page))["messages"]
        found = ok(client.call_endpoint(path.lstrip("/"), method="GET"))["url"]
    download = requests.get(server.url + found, timeout=60)
    assert download.status_code == 200
    return {
        "unread": unread,
        "message": (message["content"], message["flags"]),
        "at the link": [(one["id"], one["content"], one["subject"]) for one in messages],
        "file": download.content,
    }


def test_links_files_and_unread_messages_are_the_same_after_an_export_and_the_rest_live(
    old: Site, new: Server, tmp_path: Path
) -> None:
    ann, ben = old.ann, old.ben
    first = send(ben, old.server, "the first")
    with client_of(ben, old.server) as client:
        channel_id = ok(client.get_stream_id("general"))["stream_id"]
        file = io.BytesIO(b"what was agreed")
        file.name = "agreed.txt"
        path = ok(client.upload_file(file))["url"]
    link = f"/#narrow/channel/{channel_id}-general/topic/move/near/{first}"
    linked = send(ben, old.server, f"[here]({link}), and [the file]({path})")
    mention = send(ann, old.server, "@**Ben** and this")
    read = send(ann, old.server, "read before the move")
    between = send(ann, old.server, "between us", [ben.user_id])
    with client_of(ben, old.server) as client:
        flags = {"messages": [read], "op": "add", "flag": "read"}
        ok(client.update_message_flags(flags))
    export = tmp_path / "export.tar.gz"
    old.server.command("export", str(export))
    (new.data_dir / "tertulia.toml").write_text(f'moving_from_url = "{old.server.url}"\n')
    output = tmp_path / "output"
    run(new, output, "import", "zulip", "--live", str(export))
    # After the export.
    late = send(ann, old.server, "written while it moves")
    with client_of(ann, old.server) as client:  # Apps mark what their person sends.
        ok(client.update_message_flags({"messages": [late], "op": "add", "flag": "read"}))
    before = {one: seen(one, old.server, link, path, linked) for one in (ann, ben)}
    unread = before[ben]["unread"]
    assert [one["unread_message_ids"] for one in unread["streams"]] == [
        [first, linked, mention, late]
    ]
    assert between in [max(one["unread_message_ids"]) for one in unread["pms"]]
    assert unread["mentions"] == [mention]
    with ended(new):
        new.start()
        with following(new, old, output) as program:
            new.wait(lambda: newest(ann, new)[0] == late, "it arrives")
            run(new, output, "import", "finish")
            assert program.wait(60) == 0, output.read_text()
        for account, expected in before.items():
            assert seen(account, new, link, path, linked) == expected
        with client_of(ben, new, retry=False) as client:
            ok(client.mark_all_as_read())
        assert seen(ben, new, link, path, linked)["unread"]["count"] == 0


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
            program.wait(60)
        third = send(old.ben, old.server, "written in the meantime")
        with following(new, old, output) as program:
            new.wait(lambda: newest(old.ben, new)[0] == third, "it arrives")
            run(new, output, "import", "finish")
            assert program.wait(60) == 0, output.read_text()
        assert "People can use this server" in output.read_text()
        # The server hears of the end of the move from the database, a moment later.
        new.wait(lambda: not _is_moving(new, old.ben), "messages can be sent")
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


def _is_moving(new: Server, account: Account) -> bool:
    """Return whether the server refuses messages because the organization is still moving."""
    with client_of(account, new, retry=False) as client:
        message = {"type": "stream", "to": "general", "topic": "move", "content": "ready?"}
        return "still moving" in client.send_message(message)["msg"]


def _knows(new: Server, account: Account, message_id: int) -> bool:
    if not new._answers("/api/v1/users/me", account):
        return False
    return newest(account, new)[0] == message_id
