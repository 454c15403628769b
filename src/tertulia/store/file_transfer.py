"""The files in a backup, beside the tables: `files/<path>`."""

import contextlib
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tertulia.model.attachments import Attachment
from tertulia.store import file_modes, queries
from tertulia.store.database import Connection, DatabaseError
from tertulia.store.files import Files
from tertulia.store.uploads import Uploads, sync_directory

PREFIX = "files/"
_PIECE = 1024 * 1024

Progress = Callable[[str, int, int], None]
"""See `tertulia.store.transfer`."""


def add_files(
    connection: Connection, archive: zipfile.ZipFile, files: Files, progress: Progress
) -> int:
    """Put every file into the archive, and return how many there are.

    The uploads are those of the transaction that is open. One that the server deletes meanwhile is
    missing, as `lost` then says of the restored organization.
    """
    places = dict(files.kept())
    uploads = Uploads(files)
    for attachment in _attachments(connection):
        # One that has just arrived may not be in its place yet.
        found = uploads.found(attachment.path)
        if found is not None:
            places.setdefault(uploads.place_of(attachment.path), found[0])
    done = 0
    progress("files", 0, len(places))
    for number, (path, place) in enumerate(places.items(), 1):
        with contextlib.suppress(FileNotFoundError), place.open("rb") as source:
            # What people upload is mostly compressed already.
            information = zipfile.ZipInfo.from_file(place, PREFIX + path, strict_timestamps=False)
            with archive.open(information, "w", force_zip64=True) as target:
                shutil.copyfileobj(source, target, _PIECE)
            done += 1
        progress("files", number, len(places))
    return done


def _attachments(connection: Connection) -> list[Attachment]:
    return queries.records_of(connection, "attachments")


@contextlib.contextmanager
def restored(
    archive: zipfile.ZipFile, root: Path, count: int, progress: Progress
) -> Iterator[None]:
    """Put the archive's files into a directory that is to be the root of `Files` when the context
    ends well, and not to be at all otherwise.

    DatabaseError where there are files already, or the archive is damaged.
    """
    if root.exists() and any(root.iterdir()):
        raise DatabaseError(
            f"There are files in {root}. Restore into another --data-dir. Nothing was changed."
        )
    draft = root.with_name(f"{root.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        _unpack(archive, Files(draft), count, progress)
        yield
        if root.exists():
            root.rmdir()
        if draft.exists():
            draft.replace(root)
            sync_directory(root.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _unpack(archive: zipfile.ZipFile, files: Files, count: int, progress: Progress) -> None:
    names = [name for name in archive.namelist() if name.startswith(PREFIX)]
    if len(names) != count:
        raise DatabaseError(
            f"The backup is damaged: it should have {count} files and has {len(names)}."
        )
    progress("files", 0, count)
    for number, name in enumerate(names, 1):
        try:
            place = files.place(name.removeprefix(PREFIX))
            file_modes.directory(place.parent)
            with (
                archive.open(name) as source,
                open(place, "xb", opener=file_modes.opener) as target,
            ):
                shutil.copyfileobj(source, target, _PIECE)
                target.flush()
                os.fsync(target.fileno())
        except (zipfile.BadZipFile, ValueError, EOFError) as error:
            raise DatabaseError(f"The backup is damaged at {name}: {error}.") from None
        progress("files", number, count)


def lost(connection: Connection, files: Files) -> tuple[int, list[str]]:
    """How many uploaded files there are, and the paths of those that are not on the disk, or not
    as long as they were."""
    uploads = Uploads(files)
    attachments = _attachments(connection)
    missing = []
    for attachment in attachments:
        found = uploads.found(attachment.path)
        if found is None or found[1].st_size != attachment.size:
            missing.append(attachment.path)
    return len(attachments), missing
