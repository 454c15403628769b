"""Files in backups (`files/<path>`), and checking that none is missing. For commands, since it runs
a separate event loop."""

import asyncio
import contextlib
import os
import secrets
import shutil
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from tertulia.model.attachments import Attachment
from tertulia.model.errors import FilesUnavailable
from tertulia.model.numbers import counted
from tertulia.store import file_modes, queries
from tertulia.store.database import Connection, DatabaseError
from tertulia.store.disk_files import DiskFiles, sync_directory
from tertulia.store.files import INCOMING, Files, StoredFile
from tertulia.store.uploads import UploadStore

PREFIX = "files/"
_PIECE = 1024 * 1024
_ZIP_BEGINS = 315_532_800
"""1980, the earliest time in a ZIP archive."""

Progress = Callable[[str, int, int], None]
"""See `tertulia.store.transfer`."""


def add_files(
    connection: Connection,
    archive: zipfile.ZipFile,
    files: Files,
    disk: DiskFiles,
    progress: Progress,
) -> int:
    """Add every file to the archive and return their number.

    The uploads are those of the open transaction. One that a server deletes in the meantime is
    missing. Raise FilesUnavailable.
    """
    return asyncio.run(_added(_attachments(connection), archive, files, disk, progress))


async def _added(
    attachments: list[Attachment],
    archive: zipfile.ZipFile,
    files: Files,
    disk: DiskFiles,
    progress: Progress,
) -> int:
    try:
        stored_files = await all_files(attachments, files, disk)
        done = 0
        progress("files", 0, len(stored_files))
        for number, (path, stored) in enumerate(stored_files.items(), 1):
            # Most uploads are already compressed.
            written = time.gmtime(max(stored.modified, _ZIP_BEGINS))
            information = zipfile.ZipInfo(PREFIX + path, written[:6])
            information.external_attr = file_modes.FILE << 16
            content = await _begun(stored, files, path)
            if content is not None:
                first, rest = content
                size = len(first)
                with archive.open(information, "w", force_zip64=True) as target:
                    target.write(first)
                    async for chunk in rest:
                        size += len(chunk)
                        target.write(chunk)
                if size != stored.size:
                    raise FilesUnavailable(
                        f"Received only {size:,} of {counted(stored.size, 'byte')} of {path} from"
                        f" {stored.files.description}."
                    )
                done += 1
            progress("files", number, len(stored_files))
        return done
    finally:
        await files.close()


async def all_files(
    attachments: list[Attachment], files: Files, disk: DiskFiles
) -> dict[str, StoredFile]:
    """Return all files to keep by their final path, including uploads that haven't been moved
    there yet."""
    stored_files = {stored_file.path: stored_file async for stored_file in files.kept()}
    uploads = UploadStore(files, disk)
    for attachment in attachments:
        path = uploads.final_path(attachment.path)
        if path not in stored_files:
            stored = await _arrived(attachment, files, disk, path)
            if stored is not None:
                stored_files[path] = stored
    return stored_files


async def _arrived(
    attachment: Attachment, files: Files, disk: DiskFiles, path: str
) -> StoredFile | None:
    """Return an attachment's file that wasn't at its final path. Checked in this order because it
    may be moved in between."""
    return await disk.found(f"{INCOMING}/{attachment.key}") or await files.found(path)


async def _begun(
    stored: StoredFile, files: Files, path: str
) -> tuple[bytes, AsyncIterator[bytes]] | None:
    """Return a file's first bytes and the rest, or None if it was deleted."""
    # A file that had just arrived may have been moved to its final path since.
    for where, at in ((stored.files, stored.path), (files, path)):
        chunks = where.chunks(at)
        try:
            return await anext(chunks, b""), chunks
        except FileNotFoundError:
            continue
    return None


def _attachments(connection: Connection) -> list[Attachment]:
    return queries.records_of(connection, "attachments")


@contextlib.contextmanager
def restored(
    archive: zipfile.ZipFile, files: Files, disk: DiskFiles, count: int, progress: Progress
) -> Iterator[None]:
    """Restore the archive's files, or none of them if the context fails. Raise DatabaseError if
    there are files already or the archive is damaged, and FilesUnavailable."""
    if files is disk:
        with _restored_on_disk(archive, disk.root, count, progress):
            yield
        return
    written: list[str] = []
    try:
        asyncio.run(_restored_elsewhere(archive, files, disk, count, progress, written))
        yield
    except BaseException:
        asyncio.run(_deleted(files, written))
        raise


async def _restored_elsewhere(
    archive: zipfile.ZipFile,
    files: Files,
    disk: DiskFiles,
    count: int,
    progress: Progress,
    written: list[str],
) -> None:
    try:
        async for stored_file in files.below(""):
            if not stored_file.size and await files.found(stored_file.path) is None:
                continue  # `path/`, which consoles make for a directory.
            raise DatabaseError(
                f"{files.description} already contains files, such as {stored_file.path}. Restore"
                " into another prefix or bucket (files_url). Nothing was changed."
            )
        for path, draft in _unpacked(archive, disk.root, count, progress):
            written.append(path)
            await files.put_from(path, draft)
    finally:
        await files.close()


async def _deleted(files: Files, written: list[str]) -> None:
    try:
        for path in written:
            await files.delete(path)
    except FilesUnavailable:
        raise DatabaseError(
            f"The restored files couldn't be deleted again from {files.description}. Delete"
            " its contents before you restore again."
        ) from None
    finally:
        await files.close()


@contextlib.contextmanager
def _restored_on_disk(
    archive: zipfile.ZipFile, root: Path, count: int, progress: Progress
) -> Iterator[None]:
    if root.exists() and any(root.iterdir()):
        raise DatabaseError(
            f"{root} already contains files. Restore into another --data-dir. Nothing was changed."
        )
    draft = root.with_name(f"{root.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        target = DiskFiles(draft)
        for path, unpacked in _unpacked(archive, draft, count, progress):
            local = target.local_path(path)
            file_modes.directory(local.parent)
            unpacked.replace(local)
        yield
        if root.exists():
            root.rmdir()
        if draft.exists():
            draft.replace(root)
            sync_directory(root.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _unpacked(
    archive: zipfile.ZipFile, root: Path, count: int, progress: Progress
) -> Iterator[tuple[str, Path]]:
    """Yield each file's path and an unpacked copy below `root`, which is deleted afterwards unless
    it was moved. Raise DatabaseError if the archive is damaged."""
    names = [name for name in archive.namelist() if name.startswith(PREFIX)]
    if len(names) != count:
        raise DatabaseError(
            f"The backup is damaged: it should contain {counted(count, 'file')}, but contains"
            f" {len(names)}."
        )
    progress("files", 0, count)
    file_modes.directory(root)
    for number, name in enumerate(names, 1):
        draft = root / f".restored-{secrets.token_hex(8)}"
        try:
            path = name.removeprefix(PREFIX)
            DiskFiles(root).local_path(path)
            with archive.open(name) as source, open(draft, "xb", opener=file_modes.opener) as file:
                shutil.copyfileobj(source, file, _PIECE)
                file.flush()
                os.fsync(file.fileno())
            yield path, draft
        except (zipfile.BadZipFile, ValueError, EOFError) as error:
            raise DatabaseError(f"The backup is damaged at {name}: {error}.") from None
        finally:
            draft.unlink(missing_ok=True)
        progress("files", number, count)


def missing_files(connection: Connection, files: Files, disk: DiskFiles) -> tuple[int, list[str]]:
    """Return the number of uploads, and the paths of those that are missing or have the wrong size.
    Raise FilesUnavailable."""
    attachments = _attachments(connection)
    return len(attachments), asyncio.run(_lost(attachments, files, disk))


async def _lost(attachments: list[Attachment], files: Files, disk: DiskFiles) -> list[str]:
    uploads = UploadStore(files, disk)
    missing = {uploads.final_path(attachment.path): attachment for attachment in attachments}
    try:
        # Listing them costs one request per thousand.
        for realm in sorted({path.split("/")[1] for path in missing}):
            async for stored in files.below(f"uploads/{realm}"):
                expected = missing.get(stored.path)
                if expected is not None and expected.size == stored.size:
                    del missing[stored.path]
        result: list[str] = []
        for path, attachment in missing.items():
            arrived = await _arrived(attachment, files, disk, path)
            if arrived is None or arrived.size != attachment.size:
                result.append(attachment.path)
        return result
    finally:
        await files.close()
