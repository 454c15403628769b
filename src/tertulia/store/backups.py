"""Backups: encryption in the age format (age-encryption.org/v1), retention, and temporary
directories.

A recipient is a public key (`age1…` or an SSH key). The server needs only that. The identity, its
private key, decrypts the file, here or with any other age program.
"""

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from msgspec import Struct

from tertulia.store import file_modes, installation
from tertulia.store.database import Connection, DatabaseError
from tertulia.store.files import Files

SUFFIX: Final = ".age"
"""The suffix of encrypted files."""
_BEGINS: Final = b"age-encryption.org/v1\n"
_SSH: Final = ("ssh-ed25519 ", "ssh-rsa ")
_SSH_IDENTITY: Final = "-----BEGIN"


def age_recipients(text: str) -> list[Any]:
    """Parse recipients separated by commas or lines. Raise ValueError that names an invalid one."""
    import pyrage  # Imported on use, because most servers have no recipients.

    recipients = []
    for name in (part.strip() for part in text.replace(",", "\n").splitlines()):
        if not name:
            continue
        kind = pyrage.ssh if name.startswith(_SSH) else pyrage.x25519
        try:
            recipients.append(kind.Recipient.from_str(name))
        except pyrage.RecipientError:
            shown = "a secret key" if name.upper().startswith("AGE-SECRET-KEY-") else f"'{name}'"
            raise ValueError(
                f"{shown} isn't an age recipient. A recipient begins with age1 or is an SSH"
                " public key"
            ) from None
    return recipients


def new_identity() -> tuple[str, str]:
    """Return a new identity and its recipient."""
    import pyrage

    identity = pyrage.x25519.Identity.generate()
    return str(identity), str(identity.to_public())


def is_encrypted(file: Path) -> bool:
    """Return whether the file is in the age format. Raise DatabaseError if it can't be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(len(_BEGINS)) == _BEGINS
    except OSError as error:
        raise DatabaseError(f"Couldn't read {file}: {error.strerror}.") from None


@contextlib.contextmanager
def encrypted_backup(target: BinaryIO, to: Sequence[Any]) -> Iterator[BinaryIO]:
    """Encrypt the data written to the yielded file into the target, completely when the context
    ends. Raise OSError if the target is full, and BrokenPipeError if nobody reads it."""
    came, goes = os.pipe()
    failed: list[Exception] = []

    def encrypt() -> None:
        try:
            with os.fdopen(came, "rb") as source:
                _encrypt(source, target, to)
        except Exception as error:  # The writer gets the error.
            failed.append(error)

    thread = threading.Thread(target=encrypt, name="encryption")
    thread.start()
    broken: BrokenPipeError | None = None
    try:
        with os.fdopen(goes, "wb") as file:
            yield file
    except BrokenPipeError as error:  # The thread knows the reason when it has ended.
        broken = error
    finally:
        thread.join()
    if failed:
        if isinstance(failed[0], BrokenPipeError):
            raise failed[0]
        raise OSError(f"The backup couldn't be written: {failed[0]}.") from None
    if broken is not None:
        raise broken


def encrypt_file(plain: BinaryIO, target: Path, to: Sequence[Any]) -> None:
    """Encrypt the open file into a new one that only its owner can read. Raise OSError."""
    plain.seek(0)
    with open(target, "xb", opener=file_modes.opener) as file:
        _encrypt(plain, file, to)
        file.flush()
        os.fsync(file.fileno())


class _Target:
    """Remembers failed writes, because the library ignores those of the last bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: Exception | None = None

    def write(self, content: bytes) -> int:
        try:
            return self._file.write(content)
        except Exception as error:
            self.error = self.error or error
            raise

    def flush(self) -> None:
        try:
            self._file.flush()
        except Exception as error:
            self.error = self.error or error
            raise


def _encrypt(source: BinaryIO, file: BinaryIO, to: Sequence[Any]) -> None:
    import pyrage

    target = _Target(file)
    try:
        # Any object with `read`, or with `write` and `flush`, is accepted.
        pyrage.encrypt_io(cast(BufferedIOBase, source), cast(BufferedIOBase, target), to)
    except pyrage.EncryptError:
        if target.error is None:
            raise
    if target.error is not None:
        raise target.error


def decrypt_file(file: Path, plain: BinaryIO, identities: Path) -> None:
    """Decrypt a file into an open one. Raise DatabaseError if none of the identities fits or it is
    damaged."""
    import pyrage

    known = _identities(identities)
    try:
        with file.open("rb") as source:
            pyrage.decrypt_io(source, cast(BufferedIOBase, plain), known)
        plain.flush()
    except pyrage.DecryptError as error:
        raise DatabaseError(f"{identities} can't decrypt {file}: {error}.") from None
    except OSError as error:
        raise DatabaseError(
            f"{file} couldn't be decrypted. Either it's damaged or the disk is full: {error}."
        ) from None


def _identities(file: Path) -> list[Any]:
    """Read identities from `tertulia backups new-key`, age-keygen, or ssh-keygen."""
    import pyrage

    try:
        content = file.read_bytes()
    except OSError as error:
        raise DatabaseError(f"Couldn't read {file}: {error.strerror}.") from None
    try:
        text = content.decode()
        if text.startswith(_SSH_IDENTITY):
            return [pyrage.ssh.Identity.from_buffer(content)]
        lines = (line.strip() for line in text.splitlines())
        identities = [
            pyrage.x25519.Identity.from_str(line)
            for line in lines
            if line and not line.startswith("#")
        ]
    except (UnicodeDecodeError, pyrage.IdentityError):
        identities = []
    if not identities:
        raise DatabaseError(
            f"{file} doesn't contain an age identity: a line that begins with"
            " AGE-SECRET-KEY-1, or an SSH private key without a passphrase."
        )
    return identities


OLD_SECONDS: Final = 50 * 3600.0
"""If the last backup is older than this many seconds, one was missed, not just late."""
_LAST: Final = "backups.last"
_LAST_SIZE: Final = "backups.last_size"
"""The fact with the time of the last backup."""
_NAME: Final = re.compile(r"tertulia-(\d{8}T\d{6}Z)\.zip(?:\.age)?")
_TIME: Final = "%Y%m%dT%H%M%SZ"
AHEAD_SECONDS: Final = 600.0
"""The number of seconds by which another node's clock can be ahead."""


class StoredBackup(Struct, frozen=True, kw_only=True):
    """A backup in the backup storage that was tested when it was made."""

    name: str
    at: float
    """UNIX seconds."""
    size: int


def name_at(now: float) -> str:
    """Return the name of a backup of that time, without `SUFFIX`."""
    return f"tertulia-{datetime.fromtimestamp(now, UTC).strftime(_TIME)}.zip"


async def stored_backups(storage: Files) -> list[StoredBackup]:
    """Return the backups, oldest first. Other files are ignored."""
    backups = []
    async for stored_file in storage.below(""):
        at = _made_at(stored_file.path)
        if at is not None:
            backups.append(StoredBackup(name=stored_file.path, at=at, size=stored_file.size))
    return sorted(backups, key=lambda backup: backup.at)


def last_backup(connection: Connection) -> tuple[float, int] | None:
    """Return when the last known backup was made, in UNIX seconds, and its size in bytes."""
    at = installation.value(connection, _LAST)
    if at is None:
        return None
    return float(at), int(installation.value(connection, _LAST_SIZE) or 0)


def set_last_backup(connection: Connection, last: tuple[float, int] | None) -> None:
    if last is None:
        installation.forget(connection, _LAST)
        installation.forget(connection, _LAST_SIZE)
    else:
        installation.put(connection, _LAST, repr(last[0]))
        installation.put(connection, _LAST_SIZE, str(last[1]))


def is_old(at: float | None, now: float) -> bool:
    """Return whether the last backup is too old or missing."""
    return at is None or now - at > OLD_SECONDS


def _made_at(name: str) -> float | None:
    match = _NAME.fullmatch(name)
    try:
        return datetime.strptime(match[1], _TIME).replace(tzinfo=UTC).timestamp() if match else None
    except ValueError:  # No such day, or hour.
        return None


def backups_made(backups: Iterable[StoredBackup], now: float) -> list[StoredBackup]:
    """Return the backups without those from the future, which a wrong clock caused."""
    return [backup for backup in backups if backup.at <= now + AHEAD_SECONDS]


def superseded_backups(
    backups: Iterable[StoredBackup], days: int, weeks: int, now: float
) -> list[StoredBackup]:
    """Return the backups that can be deleted. Kept are the newest one, the newest of each of the
    last `days` days that have one, and of each of the last `weeks` weeks that have one (UTC).
    Backups from the future are left alone."""
    newest_first = sorted(backups_made(backups, now), key=lambda backup: backup.at, reverse=True)
    kept = set(newest_first[:1])
    for most, period in ((days, _day_of), (weeks, _week_of)):
        newest: dict[str, StoredBackup] = {}
        for backup in newest_first:
            newest.setdefault(period(backup), backup)
        kept |= set(list(newest.values())[:most])
    return [backup for backup in newest_first if backup not in kept]


def _day_of(backup: StoredBackup) -> str:
    return datetime.fromtimestamp(backup.at, UTC).strftime("%Y-%m-%d")


def _week_of(backup: StoredBackup) -> str:
    return datetime.fromtimestamp(backup.at, UTC).strftime("%G-%V")


def last_due(now: float, hour: int) -> float:
    """Return when the last daily backup was due, in UNIX seconds; `hour` is in UTC."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=hour, minute=0, second=0, microsecond=0)
    due = today.timestamp()
    return due if due <= now else (today - timedelta(days=1)).timestamp()


PREFIX: Final = "backup-"
"""The prefix of temporary directories."""
_NEW: Final = f".{PREFIX}"
"""The prefix of temporary directories until they are locked. Until then, they are empty."""
_HELD: Final = "held"
"""The name of the locked file in a temporary directory."""
_OURS: Final = re.compile(r"tertulia-\w+\.zip(\.age)?|trial|backup\.zip")
"""Files in directories of older versions, which didn't lock them."""
_UNHELD_SECONDS: Final = 86400
"""Unlocked directories are stale after this many seconds."""


@contextlib.contextmanager
def temporary_directory(data_path: Path) -> Iterator[Path]:
    """Yield an empty directory that only its owner can access. Deletes stale ones first."""
    file_modes.directory(data_path)
    delete_stale_directories(data_path)
    # It's locked before it could look stale.
    new = Path(tempfile.mkdtemp(prefix=_NEW, dir=data_path))
    with open(new / _HELD, "wb", opener=file_modes.opener) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        directory = new.rename(new.with_name(new.name.removeprefix(".")))
        try:
            yield directory
        finally:
            shutil.rmtree(directory)


def anonymous_file(directory: Path) -> BinaryIO:
    """Return an empty file without a name, which disappears when closed."""
    return cast(BinaryIO, tempfile.TemporaryFile(dir=directory))


def temporary_directories(data_path: Path) -> list[Path]:
    try:
        names = os.listdir(data_path)
    except PermissionError:
        return []
    return [data_path / name for name in names if name.startswith((PREFIX, _NEW))]


def delete_stale_directories(data_path: Path) -> None:
    """Delete the directories of processes that ended. Inaccessible ones are ignored."""
    for left in temporary_directories(data_path):
        # It's inaccessible, or is being deleted.
        with contextlib.suppress(OSError):
            if left.is_dir() and _is_left(left):
                shutil.rmtree(left, ignore_errors=True)


def _is_left(directory: Path) -> bool:
    if directory.name.startswith("."):
        return _age(directory) > _UNHELD_SECONDS
    try:
        held = os.open(directory / _HELD, os.O_RDWR)
    except FileNotFoundError:
        is_ours = all(_OURS.fullmatch(path.name) for path in directory.iterdir())
        return is_ours and _age(directory) > _UNHELD_SECONDS
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(held)
    return True


def _age(directory: Path) -> float:
    return time.time() - directory.stat().st_mtime
