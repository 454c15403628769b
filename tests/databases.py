"""An organization's database, made without what takes long about it: the migrations run once, and
no node is started for the first changes."""

import contextlib
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tertulia.model.changes import Entry
from tertulia.service.config import Config
from tertulia.state.fold import fold
from tertulia.state.moment import Moment, Verb
from tertulia.state.organization import State
from tertulia.store import installation
from tertulia.store.migrations import migrate
from tertulia.store.sqlite import SqliteDatabase
from tertulia.store.store import SQLITE_FILE, database_at
from tertulia.store.writing import Batch, write
from tests import postgres


def begin(config: Config, verbs: Iterable[Verb[Any]], now: float, fingerprint: str) -> None:
    """Make the configured, empty database one whose log begins with what the verbs decide one
    after another at that time (UNIX seconds), of an installation whose secret has that
    fingerprint."""
    _migrate(config)
    state = State()
    entries: list[Entry] = []
    for verb in verbs:
        decision = verb(Moment(state, now, None))
        assert not decision.mails
        for change in decision.changes:
            entry = Entry(state.seq + 1, now, None, change)
            fold(state, entry)
            entries.append(entry)
    database = database_at(config.data_path, config.database_url)
    with contextlib.closing(database.connect(readonly=False)) as connection:
        for statement in connection.dialect.begin_write:
            connection.run(statement)
        write(connection, Batch(entries, state.take_dirty()))
        installation.put(connection, installation.SECRET, fingerprint)
        connection.run("COMMIT")


def _migrate(config: Config) -> None:
    if config.database_url:
        postgres.migrate_lent(config.database_url)
        return
    path = config.data_path / SQLITE_FILE
    if not path.exists():
        config.data_path.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_migrated_file())


@cache
def _migrated_file() -> bytes:
    with tempfile.TemporaryDirectory(prefix="tertulia-") as directory:
        path = Path(directory) / SQLITE_FILE
        migrate(SqliteDatabase(path), lambda _: None)
        return path.read_bytes()
