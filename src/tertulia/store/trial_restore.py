"""Restoring a backup for nobody's use, to see that it can be."""

import contextlib
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from tertulia.store import consistency, transfer
from tertulia.store.database import DatabaseError
from tertulia.store.disk_files import DiskFiles
from tertulia.store.transfer import Backup, Manifest

_NOT_TRIED: Final = "a trial"


def try_restore(file: Path, directory: Path, decrypted: BinaryIO | None = None) -> Manifest:
    """Restore the backup's tables into an SQLite database of the directory, which goes afterwards,
    and read each of its files. `decrypted` is what is in it, where it is to be encrypted. Returns
    what the backup is. DatabaseError where it is damaged."""
    from tertulia.store.sqlite import NamelessDatabase  # Loaded on use, as by `database_at`.

    with contextlib.closing(Backup(file, decrypted)) as backup:
        manifest = backup.manifest
        if manifest.files and (damaged := _damaged(backup.archive)) is not None:
            raise DatabaseError(f"The backup is damaged at {damaged}.")
        # Its files would need as much room again, and are whole.
        backup.manifest = msgspec.structs.replace(manifest, files_left_at=_NOT_TRIED)
        with (
            tempfile.TemporaryDirectory(dir=directory) as empty,
            contextlib.closing(NamelessDatabase(Path(empty) / "trial.db")) as database,
        ):
            none = DiskFiles(Path(empty) / "files")
            transfer.restore(database, none, none, backup, _nobody, _nothing)
            with contextlib.closing(database.connect(readonly=True)) as connection:
                if wrong := consistency.dangling(connection):
                    reference, count = wrong[0]
                    raise DatabaseError(
                        f"The backup is damaged: {count} references in {reference.table}."
                        f"{reference.column} point to missing rows."
                    )
    return manifest


def _damaged(archive: zipfile.ZipFile) -> str | None:
    try:
        return archive.testzip()
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        return str(error)


def _nobody(_: str) -> None:
    """Nobody is told of migrations."""


def _nothing(_: str, __: int, ___: int) -> None:
    """Nobody watches it."""
