"""A rolling upgrade while people send messages: a node of the newer version joins one of the older,
which then leaves."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tertulia.store import installation, nodes
from tertulia.store.database import Connection
from tertulia.store.log_formats import LOG_FORMAT
from tertulia.store.migrations import MIGRATIONS, Expand
from tertulia.store.store import database_at
from tests import postgres
from tests.cli.support import run
from tests.e2e.senders import Tally, sending
from tests.e2e.server import SOURCE, STOP_SECONDS, Account, Server, ended
from tests.stored.recording import RELEASES

NOW = len(MIGRATIONS)
NEEDED = max(n for n, one in enumerate(MIGRATIONS, 1) if not isinstance(one, Expand))
"""The number of migrations that a program must know."""


@dataclass
class Node(Server):
    """A node of one of the two versions."""

    is_forked = False
    version: str = "older"

    def _command_line(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "tests.e2e.versions", self.version, *words]

    def _environment(self) -> dict[str, str]:
        path = f"{SOURCE}{os.pathsep}{SOURCE.parent}"
        own = {"PYTHONPATH": path, "TERTULIA_NODE_NAME": self.version}
        return {**super()._environment(), **own}

    def ask(self, account: Account, method: str, path: str, **values: Any) -> httpx.Response:
        texts = {name: v if isinstance(v, str) else json.dumps(v) for name, v in values.items()}
        return httpx.request(
            method,
            f"{self.url}/api/v1{path}",
            auth=(account.email, account.api_key),
            **{"params" if method == "GET" else "data": texts},  # type: ignore[arg-type]
        )


@pytest.fixture
def url(postgres_url: str) -> Iterator[str]:
    with postgres.schema(postgres_url) as url:
        yield url


def versions(node: Node) -> tuple[int, int, int]:
    """Return the number of migrations applied, the number that a program must know, and the log's
    format, each relative to the current version's."""
    with opened(node) as connection:
        made = int(installation.value(connection, installation.SCHEMA_VERSION) or 0)
        head = installation.head_position(connection)
    needed = 0 if head.schema_version == NEEDED else head.schema_version - NOW
    return made - NOW, needed, head.log_format - LOG_FORMAT


def states(node: Node) -> dict[str, str]:
    with opened(node) as connection:
        return {one.name: one.state for one in nodes.list_nodes(connection)}


def opened(node: Node) -> AbstractContextManager[Connection]:
    database = database_at(node.data_dir, node.database_url)
    return closing(database.connect(readonly=True))


def test_nodes_of_two_versions_serve_together_until_the_older_leaves(
    url: str, tmp_path: Path
) -> None:
    older = Node(tmp_path / "data", url)
    newer = Node(tmp_path / "data", url, version="newer")
    release = max(path for path in RELEASES.iterdir() if (path / "backup.zip").exists())
    backup = str(release / "backup.zip")
    assert run("restore", *older._place(), backup).exit_code == 0
    ann, ben = older.add("ann-of-now", "owner"), older.add("ben-of-now")
    everybody = [ann.user_id, ben.user_id]
    message = {"type": "private", "to": everybody}
    with ended(older), ended(newer):
        older.start()
        queue = older.ask(ben, "POST", "/register", event_types=["message"]).json()
        with sending(older, ("at the older", ann, message)) as first:
            first.wait_for_more(5)
            newer.start()
            with sending(newer, ("at the newer", ben, message)) as second:
                replace(older, newer, ann, first, second)
        assert first.errors == second.errors == []
        # Every acknowledged message is stored once, and the earlier queue has received it.
        sent = dict([*first.acknowledged, *second.acknowledged])
        assert len(sent) == len(first.acknowledged) + len(second.acknowledged)
        assert queued_messages(newer, ben, queue).items() >= sent.items()
        # The older program can't start again.
        older.launch()
        assert older.process is not None
        assert older.process.wait(STOP_SECONDS) == 1
        assert "by a newer" in older.log_text()


def replace(older: Node, newer: Node, ann: Account, first: Tally, second: Tally) -> None:
    """Stop the older node while people send messages at both."""
    second.wait_for_more(5)
    assert states(newer) == {"older": "serving", "newer": "serving"}
    assert versions(newer) == (1, 0, 0)
    folder = {"name": "Folder", "description": ""}
    held = newer.ask(ann, "POST", "/channel_folders/create", **folder)
    assert held.status_code == 400
    assert "being upgraded" in held.json()["msg"]
    # The older version still works with the changed tables.
    made = older.ask(ann, "POST", "/channels/create", name="meanwhile", subscribers=[])
    assert made.status_code == 200, made.text
    first.wait_for_more(5)
    assert run("nodes", "drain", "older", *older._place()).exit_code == 0
    older.wait(lambda: not older._answers("/ready"), "it is not ready any more")
    assert older.stop() == 0
    newer.wait(lambda: versions(newer) == (2, 2, 1), "the upgrade has ended")
    assert states(newer) == {"newer": "serving"}
    assert newer.ask(ann, "POST", "/channel_folders/create", **folder).status_code == 200
    second.wait_for_more(5)


def queued_messages(node: Node, account: Account, queue: dict[str, Any]) -> dict[int, str]:
    """The messages that a queue has for its client, by ID."""
    found: dict[int, str] = {}
    last = queue["last_event_id"]
    while True:
        events = node.ask(
            account,
            "GET",
            "/events",
            queue_id=queue["queue_id"],
            last_event_id=last,
            dont_block=True,
        ).json()["events"]
        if not events:
            return found
        last = events[-1]["id"]
        found.update(
            (e["message"]["id"], e["message"]["content"]) for e in events if "message" in e
        )
