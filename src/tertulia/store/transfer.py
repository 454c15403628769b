"""Backups of the whole database, which either kind of database can restore.

A backup is a ZIP archive with `manifest.json`, one `tables/<name>.jsonl` per table (a JSON array
per row, in the manifest's order of columns, with binary values in Base64), the uploaded files
(`tertulia.store.file_transfer`), and the installation's secret. Event queues are left out, because
the restored log is a new history and every client registers again.
"""

import base64
import contextlib
import os
import secrets
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct

from tertulia.model.numbers import counted
from tertulia.store import backups, consistency, installation, search_index
from tertulia.store.database import Connection, Database, DatabaseError
from tertulia.store.disk_files import DiskFiles
from tertulia.store.file_transfer import add_files, restored
from tertulia.store.files import Files
from tertulia.store.installation import require_known
from tertulia.store.migrations import (
    MIGRATIONS,
    SEARCHED_BY_OUR_WORDS,
    WITH_HISTORY,
    WITH_TOPIC_IDS,
)
from tertulia.store.schema_upgrade import migrate

FORMAT = 1
MANIFEST = "manifest.json"
_SECRET = "secret"  # noqa: S105 (a file's name)
_LEFT_OUT = frozenset({"queues", "nodes", "webhook_journal"})
_BATCH = 1000

Progress = Callable[[str, int, int], None]
"""Called with a table's name, its rows so far, and their total."""


class TableManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table in a backup."""

    name: str
    columns: list[str]
    binary: list[str]
    rows: int


class Manifest(Struct, frozen=True, kw_only=True):
    """A backup's description."""

    format: int
    schema_version: int
    created_at: int
    """UNIX seconds."""
    written_by: str
    tables: list[TableManifest]
    files: int = 0
    files_left_at: str = ""
    """The location of files that the backup doesn't contain, or ""."""


def back_up(
    connection: Connection,
    files: Files,
    disk: DiskFiles,
    target: Path | BinaryIO,
    *,
    with_files: bool,
    compressed: bool = True,
    encrypt_to: Sequence[Any] = (),
    secret: str,
    created_at: float,
    written_by: str,
    progress: Progress,
) -> Manifest:
    """Write everything, as of one snapshot, to a new file or an open one; others may use the
    database. An open target doesn't have to be a file: a backup is valid only once its end is
    written. If `encrypt_to` has recipients, only they can open it.

    Only its owner can read the file, because it has API keys. Raise DatabaseError if the file
    exists, and FilesUnavailable.
    """
    packing = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with new_file(target) if isinstance(target, Path) else contextlib.nullcontext(target) as opened:
        with (
            (
                contextlib.nullcontext(opened)
                if not encrypt_to
                else backups.encrypted_backup(opened, encrypt_to)
            ) as file,
            zipfile.ZipFile(file, "w", packing) as archive,
        ):
            with _transaction(connection, [connection.dialect.begin_read]):
                manifest = Manifest(
                    format=FORMAT,
                    schema_version=int(
                        installation.value(connection, installation.SCHEMA_VERSION) or 0
                    ),
                    created_at=int(created_at),
                    written_by=written_by,
                    tables=[_dump(connection, archive, t, progress) for t in _tables(connection)],
                    files=add_files(connection, archive, files, disk, progress)
                    if with_files
                    else 0,
                    files_left_at="" if with_files else files.description,
                )
            archive.writestr(_SECRET, secret)
            archive.writestr(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
        opened.flush()
    return manifest


@contextlib.contextmanager
def new_file(target: Path) -> Iterator[BinaryIO]:
    """Open a new file, which appears under its name once it is complete. Raise DatabaseError if it
    exists."""
    if target.exists():
        raise DatabaseError(f"{target} already exists. Choose another file name.")
    # A random name, because others may be able to write to the directory.
    partial = target.with_name(f"{target.name}.{secrets.token_hex(8)}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:  # Name the directory, not the temporary file.
        wrong = target if target.parent.is_dir() else target.parent
        raise OSError(error.errno, error.strerror, str(wrong)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _tables(connection: Connection) -> list[TableManifest]:
    manifests: list[TableManifest] = []
    for (name,) in connection.query(connection.dialect.tables):
        if name in _LEFT_OUT:
            continue
        columns = connection.query(connection.dialect.columns, (name,))
        ((rows,),) = connection.query(f"SELECT COUNT(*) FROM {name}")
        manifests.append(
            TableManifest(
                name=name,
                columns=[column for column, _ in columns],
                binary=[column for column, is_binary in columns if is_binary],
                rows=rows,
            )
        )
    return manifests


def _dump(
    connection: Connection, archive: zipfile.ZipFile, table: TableManifest, progress: Progress
) -> TableManifest:
    binary = _positions(table)
    encoder = msgspec.json.Encoder()
    progress(table.name, 0, table.rows)
    with archive.open(_file_of(table), "w", force_zip64=True) as file:
        sql = f"SELECT {', '.join(table.columns)} FROM {table.name}"
        for number, row in enumerate(connection.scan(sql), 1):
            values: list[Any] = list(row)
            for position in binary:
                values[position] = base64.b64encode(values[position]).decode()
            file.write(encoder.encode(values) + b"\n")
            if number % _BATCH == 0:
                progress(table.name, number, table.rows)
    progress(table.name, table.rows, table.rows)
    return table


def _positions(table: TableManifest) -> list[int]:
    return [table.columns.index(column) for column in table.binary]


def _file_of(table: TableManifest) -> str:
    return f"tables/{table.name}.jsonl"


class Backup:
    """An open backup. Raises DatabaseError if it is invalid or from a newer version."""

    def __init__(self, path: Path, decrypted: BinaryIO | None = None) -> None:
        """Open the backup. `decrypted` is the content of an encrypted file."""
        if decrypted is None and backups.is_encrypted(path):
            raise DatabaseError(
                f"{path} is encrypted. Pass the file with the key that decrypts it:"
                " --identity FILE."
            )
        try:
            self.archive = zipfile.ZipFile(path if decrypted is None else decrypted)
            self.manifest = msgspec.json.decode(self.archive.read(MANIFEST), type=Manifest)
            self.secret = self.archive.read(_SECRET).decode()
        except OSError as error:
            raise DatabaseError(f"Couldn't read {path}: {error.strerror}.") from None
        except (zipfile.BadZipFile, KeyError, ValueError) as error:
            raise DatabaseError(f"{path} isn't a Tertulia backup: {error}.") from None
        if self.manifest.format > FORMAT or self.manifest.schema_version > len(MIGRATIONS):
            raise DatabaseError(
                f"{path} has schema version {self.manifest.schema_version}, but this version"
                f" of Tertulia supports versions up to {len(MIGRATIONS)}. The backup was"
                f" written by a newer version, {self.manifest.written_by}. Install that"
                " version. Nothing was changed."
            )

    def rows(self, table: TableManifest) -> Iterator[list[Any]]:
        """Yield a table's rows. Raise DatabaseError if the file is damaged."""
        binary = _positions(table)
        decoder = msgspec.json.Decoder(list[Any])
        try:
            with self.archive.open(_file_of(table)) as file:
                for line in file:
                    values = decoder.decode(line)
                    for position in binary:
                        values[position] = base64.b64decode(values[position], validate=True)
                    yield values
        except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
            raise DatabaseError(f"The backup is damaged at {table.name}: {error}.") from None

    def close(self) -> None:
        self.archive.close()


def restore(
    database: Database,
    files: Files,
    disk: DiskFiles,
    backup: Backup,
    report: Callable[[str], None],
    progress: Progress,
) -> None:
    """Fill an empty database and file storage from a backup in one transaction, and migrate it.
    Raise DatabaseError, without effect, if they aren't empty or the backup is damaged. Files that
    the backup left out stay unchanged."""
    manifest = backup.manifest
    migrate(database, report, until=manifest.schema_version)
    with contextlib.closing(database.connect(readonly=True)) as connection:
        _require_empty(connection, manifest)
    with (
        contextlib.nullcontext()
        if manifest.files_left_at
        else restored(backup.archive, files, disk, manifest.files, progress),
        contextlib.closing(database.connect(readonly=False)) as connection,
        _transaction(connection, connection.dialect.begin_write),
    ):
        _require_empty(connection, manifest)
        present = {table.name: table for table in _tables(connection)}
        if set(present) != {table.name for table in manifest.tables}:
            raise DatabaseError(
                "The backup contains different tables than its version should have."
            )
        for table in manifest.tables:
            if set(table.columns) != set(present[table.name].columns):
                raise DatabaseError(f"The backup's table {table.name} has different columns.")
            _fill(connection, backup, table, progress)
        if manifest.schema_version >= WITH_HISTORY:
            require_known(installation.head_position(connection))
            installation.renew_history(connection)
        if manifest.schema_version >= SEARCHED_BY_OUR_WORDS:
            search_index.add_all(connection, report)
        if manifest.schema_version >= WITH_TOPIC_IDS:
            search_index.add_all_topics(connection, report)
    migrate(database, report)


def _require_empty(connection: Connection, manifest: Manifest) -> None:
    if installation.is_founded(connection):
        raise DatabaseError(
            "The database already contains an organization. Restore into an empty one:"
            " another --data-dir, or an empty PostgreSQL database. Nothing was changed."
        )
    version = int(installation.value(connection, installation.SCHEMA_VERSION) or 0)
    if version != manifest.schema_version:
        raise DatabaseError(
            f"The database has schema version {version}, but the backup has version"
            f" {manifest.schema_version}. Restore into a database that has never been used."
        )


def _fill(connection: Connection, backup: Backup, table: TableManifest, progress: Progress) -> None:
    """Replace a new database's rows of a table."""
    holes = ", ".join("?" for _ in table.columns)
    insert = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({holes})"
    connection.run(f"DELETE FROM {table.name}")
    progress(table.name, 0, table.rows)
    done = 0
    for batch in _batches(backup.rows(table)):
        if any(len(row) != len(table.columns) for row in batch):
            raise DatabaseError(f"The backup is damaged at {table.name}: a row is incomplete.")
        connection.run_many(insert, batch)
        done += len(batch)
        progress(table.name, done, table.rows)
    if done != table.rows:
        raise DatabaseError(
            f"The backup is damaged: {table.name} should have {counted(table.rows, 'row')},"
            f" but has {done}."
        )


def _batches(rows: Iterator[list[Any]]) -> Iterator[list[list[Any]]]:
    batch: list[list[Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


@contextlib.contextmanager
def _transaction(connection: Connection, begin: Sequence[str]) -> Iterator[None]:
    for statement in begin:
        connection.run(statement)
    try:
        yield
    except BaseException:
        connection.run("ROLLBACK")
        raise
    connection.run("COMMIT")


_NOT_TRIED: Final = "a trial"


def try_restore(file: Path, directory: Path, decrypted: BinaryIO | None = None) -> Manifest:
    """Restore the tables into a temporary SQLite database and read every file. `decrypted` is
    the content of an encrypted file. Return the manifest. Raise DatabaseError if the backup is
    damaged."""
    from tertulia.store.sqlite import (
        TrialDatabase as NamelessDatabase,  # Imported on use, as by `database_at`.
    )

    with contextlib.closing(Backup(file, decrypted)) as backup:
        manifest = backup.manifest
        if manifest.files and (damaged := _damaged(backup.archive)) is not None:
            raise DatabaseError(f"The backup is damaged at {damaged}.")
        # The files were checked, and would take as much space again.
        backup.manifest = msgspec.structs.replace(manifest, files_left_at=_NOT_TRIED)
        with (
            tempfile.TemporaryDirectory(dir=directory) as empty,
            contextlib.closing(NamelessDatabase(Path(empty) / "trial.db")) as database,
        ):
            none = DiskFiles(Path(empty) / "files")
            restore(database, none, none, backup, _nobody, _nothing)
            with contextlib.closing(database.connect(readonly=True)) as connection:
                if wrong := consistency.dangling(connection):
                    reference, count = wrong[0]
                    raise DatabaseError(
                        f"The backup is damaged: {reference.table}.{reference.column} has"
                        f" {counted(count, 'reference')} to missing rows."
                    )
    return manifest


def _damaged(archive: zipfile.ZipFile) -> str | None:
    try:
        return archive.testzip()
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        return str(error)


def _nobody(_: str) -> None:
    """Ignore reports of migrations."""


def _nothing(_: str, __: int, ___: int) -> None:
    """Ignore progress."""
