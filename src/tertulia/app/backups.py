"""Creating, verifying, and storing backups."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from msgspec import Struct

from tertulia import __version__
from tertulia.app import founding
from tertulia.service.config import Config
from tertulia.service.credentials import Vault, VaultError, load_secret
from tertulia.store import backups, installation, transfer
from tertulia.store.backups import StoredBackup, anonymous_file, temporary_directory
from tertulia.store.disk_files import DiskFiles
from tertulia.store.transfer import Manifest, Progress, try_restore

_DRAFT_SECONDS: Final = 3600.0
"""A killed process left unfinished backups that weren't written to for this many seconds."""


class BackupResult(Struct, frozen=True, kw_only=True):
    """A backup that was made."""

    backup: StoredBackup
    deleted: list[str]
    """The names of backups that were deleted because newer ones replace them."""


def back_up(
    settings: Config,
    target: Path | BinaryIO,
    progress: Progress,
    *,
    with_files: bool,
    compressed: bool = True,
    encrypt_to: Sequence[Any] = (),
) -> Manifest:
    """Write the organization to a new file or an open stream. Raise VaultError if the secret
    doesn't match; otherwise as `transfer.back_up`."""
    with founding.founded_database(settings) as connection:
        secret = load_secret(settings.data_path, settings.secret or None, create=False)
        kept = installation.value(connection, installation.SECRET)
        with contextlib.closing(Vault(secret)) as vault:
            if kept is not None and not vault.fits(kept):
                raise VaultError(founding.WRONG_SECRET)
        return transfer.back_up(
            connection,
            *settings.opened_files(),
            target,
            with_files=with_files,
            compressed=compressed,
            encrypt_to=encrypt_to,
            secret=secret,
            created_at=time.time(),
            written_by=__version__,
            progress=progress,
        )


async def make(settings: Config, progress: Progress) -> BackupResult:
    """Make a backup, restore it as a test, store it (encrypted if there are recipients), and delete
    the backups that it replaces.

    Raise as `back_up`; DatabaseError if it can't be restored; FilesUnavailable or OSError if it
    can't be stored. Nothing is deleted then.
    """
    now = time.time()
    storage = settings.opened_backups()
    with temporary_directory(settings.data_path) as directory:
        # Files in a bucket are read with separate event loops, so use a thread.
        file = await asyncio.to_thread(_written, settings, directory, progress, now)
        try:
            await storage.put_from(file.name, file)
            if isinstance(storage, DiskFiles):
                await storage.delete_drafts(now - _DRAFT_SECONDS)
            results = await backups.stored_backups(storage)
            days, weeks = settings.backup_keep_days, settings.backup_keep_weeks
            over = backups.superseded_backups(results, days, weeks, now)
            for backup in over:
                await storage.delete(backup.name)
        finally:
            await storage.close()
        made = next(backup for backup in results if backup.name == file.name)
    return BackupResult(backup=made, deleted=[backup.name for backup in over])


def _written(settings: Config, directory: Path, progress: Progress, now: float) -> Path:
    """Return a verified backup in the directory, ready to be stored."""
    file = directory / backups.name_at(now)
    with_files = settings.backup_files
    if not settings.backup_recipients:
        back_up(settings, file, progress, with_files=with_files)
        try_restore(file, directory)
        return file
    to = backups.age_recipients(settings.backup_recipients)
    file = file.with_name(file.name + backups.SUFFIX)
    with anonymous_file(directory) as plain:
        back_up(settings, plain, progress, with_files=with_files)
        try_restore(file, directory, plain)
        backups.encrypt_file(plain, file, to)
    return file
