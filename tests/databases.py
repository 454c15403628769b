"""An organization's database, made without what takes long about it: the migrations run once, no
node is started for the first changes, and what takes long in spite of that is copied."""

import contextlib
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tertulia.model.changes import Entry
from tertulia.service.config import Config
from tertulia.state.fold import fold
from tertulia.state.moment import Moment, Verb
from tertulia.state.organization import State
from tertulia.store import installation
from tertulia.store.database import Connection
from tertulia.store.migrations import migrate
from tertulia.store.sqlite import SqliteDatabase
from tertulia.store.store import SQLITE_FILE, database_at
from tertulia.store.writing import Batch, write
from tests import postgres


def begin(config: Config, verbs: Iterable[Verb[Any]], now: float, fingerprint: str) -> None:
    """Make the configured, empty database one whose log begins with what the verbs decide one
    after another at that time (UNIX seconds), of an installation whose secret has that
    fingerprint."""
    migrated(config)
    state = State()
    entries: list[Entry] = []
    for verb in verbs:
        decision = verb(Moment(state, now, None))
        assert not decision.mails
        for change in decision.changes:
            entry = Entry(state.seq + 1, now, None, change)
            fold(state, entry)
            entries.append(entry)
    with _writing(config) as connection:
        for statement in connection.dialect.begin_write:
            connection.run(statement)
        write(connection, Batch(entries, state.take_dirty()))
        installation.put(connection, installation.SECRET, fingerprint)
        connection.run("COMMIT")


def _writing(config: Config) -> contextlib.AbstractContextManager[Connection]:
    if config.database_url:
        return postgres.writing(config.database_url)
    database = database_at(config.data_path, config.database_url)
    return contextlib.closing(database.connect(readonly=False))


def migrated(config: Config) -> None:
    """Bring the configured, empty database to where the migrations lead."""
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


class _Original(NamedTuple):
    """What an organization was right after it was made."""

    files: dict[str, tuple[int, bytes]]
    """Of the data directory: mode and content by path. The database on SQLite is one of them."""
    rows: postgres.Rows | None


_originals: dict[tuple[str, str, bool], _Original] = {}


async def copied(config: Config, make: Callable[[Config], Awaitable[object]]) -> None:
    """Make the configured, empty database and directory what `make` makes of them. It is done once
    on each kind of database, and then copied."""
    key = make.__module__, make.__qualname__, bool(config.database_url)
    original = _originals.get(key)
    if original is None:
        await make(config)
        _originals[key] = _Original(
            dict(_files(config.data_path)),
            postgres.rows_of(config.database_url) if config.database_url else None,
        )
        return
    for name, (mode, content) in original.files.items():
        path = config.data_path / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
    if original.rows is not None:
        migrated(config)
        postgres.fill(config.database_url, original.rows)


def _files(directory: Path) -> Iterator[tuple[str, tuple[int, bytes]]]:
    for path in directory.rglob("*"):
        if path.is_file():
            yield str(path.relative_to(directory)), (path.stat().st_mode, path.read_bytes())
