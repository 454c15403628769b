"""Fast organization databases: migrations run once, no node starts for the first changes, and
databases that take long to make are copied."""

import contextlib
import math
import tempfile
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tertulia.model.changes import Entry
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Verb
from tertulia.state.folds import fold
from tertulia.state.state import State
from tertulia.store import installation
from tertulia.store.database import Connection
from tertulia.store.schema_upgrade import migrate
from tertulia.store.sqlite import SqliteDatabase
from tertulia.store.store import SQLITE_FILE, database_at
from tertulia.store.writing import Batch, write
from tests import postgres

T = TypeVar("T")


def initialize(config: Config, verbs: Iterable[Verb[Any]], now: float, fingerprint: str) -> None:
    """Initialize the configured, empty database with a log that begins with the changes of these
    commands, run in order at `now` (UNIX seconds), for an installation whose secret has this
    fingerprint."""
    migrated(config)
    state = State()
    entries: list[Entry] = []
    for verb in verbs:
        decision = verb(CommandContext(state, now, None))
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
    """Run all migrations on the configured, empty database."""
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


def is_empty(config: Config) -> bool:
    """Whether the configured directory is empty and, if the tests own the database, the database is
    too."""
    if config.secret or (config.data_path.is_dir() and any(config.data_path.iterdir())):
        return False
    return not config.database_url or postgres.is_empty(config.database_url)


NEW_SECONDS = 10.0
"""The age in seconds up to which an organization counts as new. No test depends on such a small age
of accounts."""


class _Original(NamedTuple):
    """An organization as it was right after its creation."""

    files: dict[str, tuple[int, bytes]]
    """The data directory: mode and content by path, including an SQLite database."""
    content: str
    """The content of a PostgreSQL database."""
    said: Any
    """The result of `make`."""
    made: float
    """The time when it was created, by `time.monotonic`."""


_originals: dict[tuple[Hashable, bool], _Original] = {}


async def copied(
    config: Config, make: Callable[[Config], Awaitable[T]], *, seconds: float = math.inf
) -> T:
    """Apply `make` to the configured, empty database and directory, and return its result. It runs
    once for each kind of database. Later calls copy the result unless it's older than this many
    seconds."""
    original = _copied(config, make, seconds)
    return original.said if original is not None else _keep(config, make, await make(config))


def copied_as(name: str, config: Config, make: Callable[[], T]) -> T:
    """Like `copied`, for an organization that is always made the same way under this name. Its age
    is as if it had just been made."""
    original = _copied(config, name, NEW_SECONDS)
    return original.said if original is not None else _keep(config, name, make())


def _copied(config: Config, key: Hashable, seconds: float) -> _Original | None:
    original = _originals.get((key, bool(config.database_url)))
    if original is None or time.monotonic() > original.made + seconds:
        return None
    for name, (mode, content) in original.files.items():
        path = config.data_path / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
    if config.database_url:
        postgres.migrate_lent(config.database_url, original.content)
    return original


def _keep(config: Config, key: Hashable, said: T) -> T:
    _originals[key, bool(config.database_url)] = _Original(
        dict(_files(config.data_path)),
        postgres.content_of(config.database_url) if config.database_url else "",
        said,
        time.monotonic(),
    )
    return said


def _files(directory: Path) -> Iterator[tuple[str, tuple[int, bytes]]]:
    for path in directory.rglob("*"):
        if path.is_file():
            yield str(path.relative_to(directory)), (path.stat().st_mode, path.read_bytes())
