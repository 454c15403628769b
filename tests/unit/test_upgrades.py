"""Nodes of two versions running together: additions apply immediately, removals wait for the last
old node."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from msgspec import Struct
from msgspec.structs import fields

from tertulia.jobs.upkeep import upgrades
from tertulia.log import commits
from tertulia.model.changes import (
    AnyChange,
    ChannelCreated,
    MessageSent,
    SettingsChanged,
    SubscriptionChanged,
)
from tertulia.model.channels import Channel
from tertulia.model.errors import NotBeforeUpgrade
from tertulia.model.messages import Message
from tertulia.service.config import Config
from tertulia.store import installation, log_formats, migrations, nodes
from tertulia.store.database import Connection, Database, DatabaseError
from tertulia.store.dialect import Dialect
from tertulia.store.installation import NewerDatabase
from tertulia.store.log_formats import FIRST_FORMAT, LOG_FORMAT, RECORDS, needed_format
from tertulia.store.migrations import MIGRATIONS, Contract, Expand
from tertulia.store.nodes import NodeEntry, NodeFigures
from tertulia.store.schema_upgrade import migrate, settle
from tertulia.store.store import database_at
from tests.support import Organization, open_organization, until
from tests.unit.test_log import create

NOW = len(MIGRATIONS)
NEEDED = max(n for n, one in enumerate(MIGRATIONS, 1) if not isinstance(one, Expand))
"""The version that a program must know at first."""


def _more(_: Dialect) -> tuple[str, ...]:
    return ("CREATE TABLE more (id BIGINT PRIMARY KEY)",)


def _most(_: Dialect) -> tuple[str, ...]:
    return ("CREATE TABLE most (id BIGINT PRIMARY KEY)",)


def _less(_: Dialect) -> tuple[str, ...]:
    return ("DROP TABLE presence",)


@dataclass
class Place:
    """A database, and programs of several versions that use it."""

    database: Database
    connection: Connection
    monkeypatch: pytest.MonkeyPatch

    def knowing(self, *more: Any, log_format: int = LOG_FORMAT) -> "Place":
        """From now on, the program knows this many more migrations and this format."""
        self.monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, *more))
        self.monkeypatch.setattr(log_formats, "LOG_FORMAT", log_format)
        return self

    def start(self) -> "Place":
        migrate(self.database, lambda _: None, beside_servers=True)
        return self

    def settle(self) -> "Place":
        settle(self.database, lambda _: None)
        return self

    def list_node(self, name: str, schema_version: int, log_format: int = LOG_FORMAT) -> None:
        entry = NodeEntry(
            run=name,
            host="h",
            pid=1,
            version="x",
            schema_version=schema_version,
            log_format=log_format,
        )
        nodes.register(self.connection, name, entry, NodeFigures(), lambda _: False)

    @property
    def versions(self) -> tuple[int, int, int]:
        """The number of additional migrations made, the additional number that a program must know,
        and the log's format."""
        made = installation.value(self.connection, installation.SCHEMA_VERSION)
        head = installation.head_position(self.connection)
        needed = 0 if head.schema_version == NEEDED else head.schema_version - NOW
        return int(made or 0) - NOW, needed, head.log_format - LOG_FORMAT


@pytest.fixture
def place(config: Config, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    config.data_path.mkdir(parents=True, exist_ok=True)
    database = database_at(config.data_path, config.database_url)
    migrate(database, lambda _: None)
    connection = database.connect(readonly=False)
    yield Place(database, connection, monkeypatch)
    connection.close()


def test_a_removal_waits_for_the_last_node_of_the_older_version(place: Place) -> None:
    if not place.database.is_shared:  # Only one version serves from it at a time.
        place.list_node("left over", NOW)
        assert place.knowing(Expand(_more), Contract(_less)).start().versions == (2, 2, 0)
        return
    place.list_node("old", NOW)
    place.knowing(Expand(_more), Contract(_less), log_format=LOG_FORMAT + 1)
    assert place.start().versions == (1, 0, 0)
    place.list_node("new", NOW + 2, LOG_FORMAT + 1)
    assert place.settle().versions == (1, 0, 0)
    # The older version can still start.
    assert place.knowing().start().versions == (1, 0, 0)
    nodes.unregister(place.connection, "old")
    place.knowing(Expand(_more), Contract(_less), log_format=LOG_FORMAT + 1)
    assert place.settle().versions == (2, 2, 1)
    assert place.settle().versions == (2, 2, 1)
    # Now it can't.
    place.knowing()
    with pytest.raises(NewerDatabase, match="newer version"):
        place.start()


def test_without_older_nodes_a_start_runs_all_migrations(place: Place) -> None:
    place.list_node("old", NOW)
    place.connection.run(f"UPDATE nodes SET seen_at = seen_at - {nodes.ALIVE_SECONDS}")
    place.knowing(Expand(_more), Contract(_less), log_format=LOG_FORMAT + 1)
    assert place.start().versions == (2, 2, 1)


def test_a_required_migration_does_not_wait(place: Place) -> None:
    """Two releases in one step: the older nodes stop."""
    place.list_node("old", NOW)
    place.knowing(Expand(_more), Contract(_less), Expand(_most), log_format=LOG_FORMAT + 1)
    assert place.start().versions[:2] == (3, 2)


def test_a_command_migrates_nothing_under_a_server(place: Place) -> None:
    place.list_node("old", NOW)
    place.monkeypatch.setattr(type(place.database), "servers", lambda _: ["process 1 on h"])
    place.knowing(Expand(_more))
    with pytest.raises(DatabaseError, match=r"process 1 on h.*Nothing was changed"):
        migrate(place.database, lambda _: None)
    # Optional migrations don't keep it from working.
    place.knowing(Contract(_less), log_format=LOG_FORMAT + 1)
    migrate(place.database, lambda _: None)
    assert place.versions == (0, 0, 0)


def test_the_log_format_is_one_that_all_living_nodes_can_read(place: Place) -> None:
    place.list_node("a", NOW, LOG_FORMAT + 1)
    place.list_node("b", NOW, LOG_FORMAT + 2)
    place.knowing(log_format=LOG_FORMAT + 3)
    expected = 1 if place.database.is_shared else 3
    assert place.start().versions == (0, 0, expected)
    nodes.unregister(place.connection, "a")
    assert place.settle().versions == (0, 0, 2 if place.database.is_shared else 3)


# What may be written while older nodes run


@contextmanager
def newer_program(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[None]:
    """The program knows one more format, in which these are new."""
    with monkeypatch.context() as patch:
        for module in (log_formats, commits):
            patch.setattr(module, "LOG_FORMAT", LOG_FORMAT + 1)
        since = dict.fromkeys(names, LOG_FORMAT + 1)
        patch.setattr(commits, "needed_format", lambda changes: needed_format(changes, since))
        yield


async def test_changes_unreadable_for_older_nodes_are_not_written_while_they_live(
    org: Organization, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, store = org.node.log, org.node.store
    settle = store.settle

    async def not_now(_: object) -> None:
        """Stands for the node's own job."""

    await until(lambda: any(j.name == "upgrades" and j.succeeded_at for j in org.node.jobs()))
    monkeypatch.setattr(store, "settle", not_now)
    with newer_program(monkeypatch, "ChannelCreated"):
        before = log.state.seq
        with pytest.raises(NotBeforeUpgrade, match="being upgraded"):
            await log.submit(None, create, "one")
        reply = await org["ann"].post("/channels/create", name="two", subscribers=[])
        assert "Nothing was changed" in reply.refused()["msg"]
        assert (log.state.seq, log.durable) == (before, before)
        await org["ann"].write([org["ben"].user_id], "all else goes on")
        await settle(print)
        if store.is_shared:
            # The living node of the older version is this one, by what it announced at its start.
            with pytest.raises(NotBeforeUpgrade):
                await log.submit(None, create, "one")
            said = [f'"log_format":{LOG_FORMAT}', f'"log_format":{LOG_FORMAT + 1}']
            await store.tend_list(
                lambda c: c.run("UPDATE nodes SET entry = REPLACE(entry, ?, ?)", said)
            )
            await settle(print)
        await log.submit(None, create, "one")
        assert log.state.channel_named("one") is not None
    with pytest.raises(NewerDatabase, match="format"):
        async with open_organization(config):
            raise AssertionError


async def test_people_write_and_edit_while_older_nodes_serve(
    org: Organization, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    decide: Any = commits.decide

    async def with_older_nodes(*arguments: Any) -> Any:
        return await decide(*arguments[:-1], FIRST_FORMAT)

    monkeypatch.setattr(commits, "decide", with_older_nodes)
    attempt = {"queue_id": "q", "local_id": "1"}
    sent = await org["ann"].send(lounge, "t", "hi", **attempt)
    assert await org["ann"].send(lounge, "t", "hi", **attempt) == sent
    (await org["ann"].patch(f"/messages/{sent}", content="hello")).ok
    # Older nodes can't read the rename of a whole topic.
    refusal = (await org["ann"].patch(f"/messages/{sent}", topic="u")).refused()
    assert "upgraded" in refusal["msg"]
    (await org["ann"].delete(f"/messages/{sent}")).ok


async def test_nodes_finish_an_upgrade_by_themselves(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = 0

    async def settle(_: object) -> None:
        nonlocal settled
        settled += 1

    monkeypatch.setattr(org.node.store, "settle", settle)
    add = "INSERT INTO nodes SELECT 'old', 'old', 0, 0, entry, figures, '' FROM nodes"
    await org.node.store.tend_list(lambda c: c.run(add))
    assert await upgrades(org.node.log).once() > 0
    assert settled >= 1
    assert "old" not in [node.name for node in await org.node.store.read(nodes.list_nodes)]


class Part(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A struct that is stored inside others."""

    old: int = 0
    new: int = 0


class Whole(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change with such structs."""

    parts: tuple[Part, ...] = ()
    by_name: dict[str, Part] = {}
    new: dict[str, int] = {}


@pytest.mark.parametrize(
    ("change", "needs"),
    [
        (Whole(), 0),
        (Whole(parts=(Part(old=1),)), 0),
        (Whole(parts=(Part(), Part(new=1))), 2),
        (Whole(by_name={"x": Part(new=1)}), 2),
        (Whole(new={"x": 1}), 3),
        (MessageSent(message=Message(id=1, sender_id=1, sent_at=1, content="x")), 1),
        (ChannelCreated(channel=Channel(id=1, name="x", created_at=1)), 0),
        (SettingsChanged(user_id=1, values={"enter_sends": True}, was={}), 4),
        (SubscriptionChanged(channel_id=1, user_id=1, property="color", value="#fff"), 5),
    ],
)
def test_the_format_that_a_change_needs(change: Any, needs: int) -> None:
    since = {
        "MessageSent": FIRST_FORMAT + 1,
        "Part.new": FIRST_FORMAT + 2,
        "Whole.new": FIRST_FORMAT + 3,
        "PersonalSettings.enter_sends": FIRST_FORMAT + 4,
        "Subscription.color": FIRST_FORMAT + 5,
    }
    assert needed_format([Whole(), change], since) - FIRST_FORMAT == needs  # type: ignore[list-item]
    assert needed_format([]) == FIRST_FORMAT


def test_changes_of_fields_say_whose_fields_they_are() -> None:
    """Otherwise an older node would get a field that it can't read."""

    def names_fields(change: type[Struct]) -> bool:
        return any(f.name == "property" or f.type == dict[str, Any] for f in fields(change))

    assert RECORDS.keys() == {change for change in get_args(AnyChange) if names_fields(change)}
