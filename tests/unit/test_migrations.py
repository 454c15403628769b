"""The schema: new, older, newer, and interrupted."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tertulia.model.changes import Entry, MessageSent
from tertulia.model.messages import Message
from tertulia.model.narrow import LARGEST, Matches, MessageSearch, Scope, Term
from tertulia.model.tokenizer import phrases_of
from tertulia.service.config import Config
from tertulia.store import log_entries, message_search, migrations, queries, search_index
from tertulia.store.codec import encode_change
from tertulia.store.database import Connection, Database, DatabaseError
from tertulia.store.dialect import Dialect
from tertulia.store.migrations import MIGRATIONS
from tertulia.store.schema_upgrade import migrate, version_of
from tertulia.store.store import database_at
from tertulia.store.writing import Batch, write


@pytest.fixture
def database(config: Config) -> Database:
    config.data_path.mkdir(parents=True, exist_ok=True)
    return database_at(config.data_path, config.database_url)


class Told(list[str]):
    def __call__(self, text: str) -> None:
        self.append(text)


def version(database: Database) -> int:
    connection = database.connect(readonly=False)
    try:
        return version_of(connection)
    finally:
        connection.close()


def send_as_first_version(connection: Connection, messages: Sequence[Message]) -> None:
    """Insert messages and their entries as the first version did."""
    for message in messages:
        connection.run(
            "INSERT INTO messages (id, sender_id, sent_at, channel_id, topic, topic_key, content,"
            " rendered, client, has_link, has_image, has_attachment, is_me, mentions_all)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, '', '', 0, 0, 0, 0, 0)",
            (
                *(message.id, message.sender_id, message.sent_at, message.channel_id),
                *(message.topic, message.topic.casefold(), message.content),
            ),
        )
        connection.run(
            "INSERT INTO log (seq, at, actor_id, change) VALUES (?, ?, ?, ?)",
            (message.id, 5.0, 7, encode_change(MessageSent(message=message))),
        )
        connection.run("UPDATE head SET seq = ?", (message.id,))


def found(connection: Connection, word: str) -> list[int]:
    scope = Scope(user_id=7, channel_ids=frozenset({3}))
    search = MessageSearch(scope, (Term(Matches(phrases_of(word))),), LARGEST, 10, 0)
    return [message.id for message in message_search.find(connection, search).messages]


def first_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "MIGRATIONS", MIGRATIONS[:1])


def test_an_empty_database_gets_every_migration_without_a_log_line(database: Database) -> None:
    told = Told()
    migrate(database, told)
    assert version(database) == len(MIGRATIONS)
    assert told == []
    migrate(database, told)
    assert told == []


def test_an_older_database_keeps_its_rows_and_becomes_searchable(
    database: Database, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    with monkeypatch.context() as patch:
        first_only(patch)
        migrate(database, told)
    connection = database.connect(readonly=False)
    sent = [
        Message(id=number, sender_id=7, sent_at=5, channel_id=3, topic=topic, content=text)
        for number, (topic, text) in enumerate(
            [("Food", "Potatoes and rice"), ("drinks", "Tea"), ("food", "More rice")], 1
        )
    ]
    send_as_first_version(connection, sent)
    migrate(database, told)
    assert version(database) == len(MIGRATIONS)
    assert log_entries.head(connection) == 3
    messages = queries.messages(connection, [1, 2, 3])
    assert [one.topic for one in messages] == ["Food", "drinks", "food"]
    assert messages[0].content == "Potatoes and rice"
    assert found(connection, "potat") == [1]
    assert found(connection, "food") == [1, 3]
    assert found(connection, "food rice drinks") == []
    assert found(connection, "tea drinks") == [2]
    assert found(connection, "beans") == []
    connection.close()
    copies = list(Path(config.data_dir).glob("*.before-migration-from-1"))
    assert len(copies) == (0 if config.database_url else 1)
    for copy in copies:
        assert str(copy) in told[0]
        old = database_at(config.data_path, f"sqlite:///{copy}")
        assert version(old) == 1
        connection = old.connect(readonly=True)
        assert connection.query("SELECT COUNT(*) FROM messages") == [(3,)]
        connection.close()
    assert told[-1].endswith(f"from schema version 1 to {len(MIGRATIONS)}")


def test_existing_messages_are_found_after_the_search_index_is_divided_by_place(
    database: Database, config: Config
) -> None:
    if not config.database_url:
        pytest.skip("SQLite's search index isn't divided")
    before = migrations.MIGRATIONS.index(migrations.search_by_place)
    migrate(database, Told(), until=before)
    connection = database.connect(readonly=False)
    messages = [
        Message(id=1, sender_id=7, sent_at=5, channel_id=3, topic="food", content="rice"),
        Message(id=2, sender_id=7, sent_at=5, direct_id=4, content="rice"),
    ]
    entries = [Entry(one.id, 1.0, 7, MessageSent(message=one)) for one in messages]
    write(connection, Batch(entries, {}))
    connection.run("ALTER TABLE message_search DROP COLUMN place")  # As older versions made it.
    told = Told()
    migrate(database, told)
    assert told[0] == "Dividing the search index of 2 messages by channel"
    assert connection.query("SELECT message_id, place FROM message_search") == [(1, 3), (2, -4)]
    assert found(connection, "rice") == [1]
    connection.close()


def test_no_commit_merges_a_whole_large_search_index(tmp_path: Path) -> None:
    """On SQLite."""
    database = database_at(tmp_path, "")
    migrate(database, Told())
    connection: Any = database.connect(readonly=False)
    texts = iter((mid, f"word{mid} and word{mid * 7}", 1, None) for mid in range(1, 10**6))

    def written(count: int) -> int:
        """The number of index rows written while this many messages are added."""
        before = connection.driver.total_changes()
        connection.run("BEGIN")
        search_index.add(connection, islice(texts, count))
        connection.run("COMMIT")
        return int(connection.driver.total_changes() - before)

    set_option = "INSERT INTO message_search (message_search, rank) VALUES ('automerge', ?)"
    connection.run(set_option, (0,))
    large = [written(1200) for _ in range(14)]
    connection.run(set_option, (8,))
    steps = [written(1) for _ in range(130)]
    assert max(steps) < min(large) / 4, steps
    connection.close()


def test_messages_indexed_together_are_merged_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite. Otherwise the next commits would do it."""
    monkeypatch.setattr(search_index, "_BATCH", 50)
    database = database_at(tmp_path, "")
    migrate(database, Told())
    connection = database.connect(readonly=False)
    messages = [Message(id=one, sender_id=1, sent_at=1, content=f"w{one}") for one in range(1, 351)]
    write(
        connection,
        Batch([Entry(one.id, 1.0, 1, MessageSent(message=one)) for one in messages], {}),
    )
    search_index.remove(connection, [one.id for one in messages])
    search_index.add_all(connection, Told())
    segments = connection.query("SELECT COUNT(DISTINCT segid) FROM message_search_idx")
    assert segments[0][0] < 4
    assert connection.query(database.dialect.search_missing) == [(0,)]
    connection.close()


def test_a_newer_database_is_refused_and_not_changed(database: Database) -> None:
    migrate(database, Told())
    connection = database.connect(readonly=False)
    connection.run("UPDATE installation SET value = '99' WHERE key = 'schema_version'")
    connection.run("UPDATE head SET schema_version = 99")
    tables = rows_of_the_schema(connection)
    with pytest.raises(DatabaseError, match=r"version 99.*newer version.*Nothing was changed"):
        migrate(database, Told())
    assert rows_of_the_schema(connection) == tables
    assert version(database) == 99
    connection.close()


def test_an_interrupted_migration_leaves_the_previous_version(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(dialect: Dialect) -> Sequence[str]:
        return ("CREATE TABLE half (id BIGINT)", "CREATE TABLE half (id BIGINT)")

    migrate(database, Told())
    connection = database.connect(readonly=False)
    tables = rows_of_the_schema(connection)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, broken))
        with pytest.raises(Exception, match="half"):
            migrate(database, Told())
    assert version(database) == len(MIGRATIONS)
    assert rows_of_the_schema(connection) == tables
    connection.close()
    migrate(database, Told())


def test_if_the_last_of_several_migrations_fails_nothing_changes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def good(dialect: Dialect) -> Sequence[str]:
        return ("CREATE TABLE whole (id BIGINT)",)

    def broken(dialect: Dialect) -> Sequence[str]:
        return ("CREATE TABLE half (id BIGINT)", "CREATE TABLE half (id BIGINT)")

    migrate(database, Told())
    connection = database.connect(readonly=False)
    tables = rows_of_the_schema(connection)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, good, broken))
        with pytest.raises(Exception, match="half"):
            migrate(database, Told())
    assert version(database) == len(MIGRATIONS)
    assert rows_of_the_schema(connection) == tables
    connection.close()


def rows_of_the_schema(connection: Connection) -> set[str]:
    """The names of all tables."""
    if connection.dialect.name == "sqlite":
        rows = connection.query("SELECT name FROM sqlite_master")
    else:
        rows = connection.query(
            "SELECT relname FROM pg_class WHERE relnamespace ="
            " (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
        )
    return {name for (name,) in rows}
