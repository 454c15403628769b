"""`tertulia nodes`, and `tertulia check` with several nodes."""

import contextlib
import json
from typing import Any

import pytest

from tertulia.service.config import Config
from tertulia.store import nodes
from tertulia.store.database import Connection
from tertulia.store.nodes import NodeEntry, NodeFigures
from tertulia.store.store import database_at
from tests.cli.support import Place, run

SETTINGS = Config().digests_of_shared()


def listing(place: Place) -> contextlib.AbstractContextManager[Connection]:
    database = database_at(place.data_dir, place.database_url)
    return contextlib.closing(database.connect(readonly=False))


def add(
    connection: Connection, name: str, *, silent: float = 0, more: Any = None, **figures: Any
) -> None:
    """Add a node to the list."""
    known: dict[str, Any] = {"version": "1.0", "settings": SETTINGS, **(more or {})}
    entry = NodeEntry(run=name, host="h", pid=7, schema_version=20, log_format=100, **known)
    figures = {"state": "serving", **figures}
    nodes.register(connection, name, entry, NodeFigures(**figures), lambda _: False)
    connection.run("UPDATE nodes SET seen_at = seen_at - ? WHERE name = ?", (silent, name))


@pytest.fixture
def founded(place: Place) -> Place:
    place.create_organization()
    return place


def test_nodes_are_listed_drained_and_forgotten(founded: Place) -> None:
    assert founded.run("nodes").output == "No nodes are running.\n"
    with listing(founded) as connection:
        add(connection, "a/0", lag_entries=5, lag_seconds=2.5, waiting_polls=12, queues=34)
        add(connection, "a/1")
        add(connection, "b", silent=100)
    headings, a0, _, b = founded.run("nodes").stdout.splitlines()
    assert headings.split()[:4] == ["NAME", "STATE", "VERSION", "LAG"]
    assert a0.split()[:8] == ["a/0", "serving", "1.0", "5", "(2.5", "s)", "12", "34"]
    assert "b     gone since 20" in b
    answer = json.loads(founded.run("nodes", "--json").stdout)
    assert [(n["name"], n["state"]) for n in answer["nodes"]] == [
        ("a/0", "serving"),
        ("a/1", "serving"),
        ("b", "gone"),
    ]
    assert answer["schema_version"] >= answer["required_schema_version"] > 0

    def on(command: str, *words: str) -> tuple[int, str]:
        result = run("nodes", command, *founded.flags, *words)
        return result.exit_code, result.output

    assert on("drain", "a/1") == (0, "Asked to leave: a/1\n")
    assert "serving, asked to leave" in founded.run("nodes").stdout.splitlines()[2]
    # The name of a server stands for all of its processes.
    code, output = on("drain", "a", "--wait", "0.01")
    assert (code, output.splitlines()) == (
        1,
        ["Asked to leave: a/0, a/1", "Still running after 0.01 s: a/0, a/1"],
    )
    for command, name in (("drain", "b"), ("drain", "nobody"), ("forget", "a/0")):
        code, output = on(command, name)
        assert code == 1, output
        assert "`tertulia nodes` lists all nodes" in output
    assert on("forget", "b") == (0, "Removed b from the list.\n")
    with listing(founded) as connection:
        assert [node.name for node in nodes.list_nodes(connection)] == ["a/0", "a/1"]
    misplaced = run("nodes", *founded.flags, "forget", "b")
    assert (misplaced.exit_code, "Put options after `forget`" in misplaced.output) == (2, True)


OTHER = {**SETTINGS, "external_url": "another"}


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ({}, "no node is serving"),
        ({"a": {}, "b": {}}, "2 serving"),
        ({"a": {"more": {"version": "1.1"}}, "b": {}}, "with versions 1.0 and 1.1"),
        # A node whose version has another setting.
        ({"a": {"more": {"settings": {**SETTINGS, "new": "x"}}}, "b": {}}, "2 serving"),
        ({"a": {"silent": 50}}, "FAILED a has been gone for 5"),
        ({"a": {"state": "stale"}}, "FAILED a can't check"),
        (
            {"a": {"lag_entries": 9, "lag_seconds": 9.5}},
            "FAILED a has been 9 entries behind for 9.5 s",
        ),
        ({"a": {"clock_ahead": 61.0}}, "FAILED the clock of a is 61 s ahead of"),
        ({"a": {"clock_ahead": -61.0}}, "FAILED the clock of a is 61 s behind"),
        (
            {"a": {"more": {"settings": OTHER}}, "b": {}, "c": {}},
            "FAILED the setting external_url has different values on a and on b, c",
        ),
        (
            {"a": {}, "b": {"more": {"version": "1.1"}}, "c": {"more": {"version": "1.2"}}},
            "FAILED nodes with more than two versions are serving: 1.0, 1.1, 1.2",
        ),
    ],
)
def test_nodes_are_checked(founded: Place, named: dict[str, Any], found: str) -> None:
    with listing(founded) as connection:
        for name, how in named.items():
            add(connection, name, **how)
    result = founded.run("check", "--json")
    (finding,) = [c for c in json.loads(result.stdout)["checks"] if c["check"] == "nodes"]
    assert finding["ok"] is not found.startswith("FAILED")
    assert found.removeprefix("FAILED ") in finding["detail"]
