"""Backups that only who has a key can read: files of the age format (age-encryption.org/v1).

A recipient is the public half of a key (`age1…`, or a public key of SSH); the server needs no more
than that. The other half, the identity, opens the file, here or by any other program for age.
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
"""Ends the names of such files."""
_BEGINS: Final = b"age-encryption.org/v1\n"
_SSH: Final = ("ssh-ed25519 ", "ssh-rsa ")
_SSH_IDENTITY: Final = "-----BEGIN"


def age_recipients(text: str) -> list[Any]:
    """The recipients of a list that commas or lines divide. ValueError names the one that is
    none."""
    import pyrage  # Loaded on use: most have none.

    found = []
    for one in (part.strip() for part in text.replace(",", "\n").splitlines()):
        if not one:
            continue
        kind = pyrage.ssh if one.startswith(_SSH) else pyrage.x25519
        try:
            found.append(kind.Recipient.from_str(one))
        except pyrage.RecipientError:
            shown = "a secret key" if one.upper().startswith("AGE-SECRET-KEY-") else f"'{one}'"
            raise ValueError(
                f"{shown} isn't an age recipient. A recipient begins with age1 or is an SSH"
                " public key"
            ) from None
    return found


def new_identity() -> tuple[str, str]:
    """A new key: its identity and its recipient."""
    import pyrage

    identity = pyrage.x25519.Identity.generate()
    return str(identity), str(identity.to_public())


def is_encrypted(file: Path) -> bool:
    """Whether a file says that it is of this format. DatabaseError where it cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(len(_BEGINS)) == _BEGINS
    except OSError as error:
        raise DatabaseError(f"Couldn't read {file}: {error.strerror}.") from None


@contextlib.contextmanager
def encrypted_backup(target: BinaryIO, to: Sequence[Any]) -> Iterator[BinaryIO]:
    """What is written to this goes to the target, encrypted; all of it is there when the context
    has ended well. OSError where the target takes no more, BrokenPipeError where nobody reads
    it."""
    came, goes = os.pipe()
    failed: list[Exception] = []

    def encrypt() -> None:
        try:
            with os.fdopen(came, "rb") as source:
                _encrypt(source, target, to)
        except Exception as error:  # The writer sees it.
            failed.append(error)

    thread = threading.Thread(target=encrypt, name="encryption")
    thread.start()
    broken: BrokenPipeError | None = None
    try:
        with os.fdopen(goes, "wb") as file:
            yield file
    except BrokenPipeError as error:  # Why, the thread knows when it has ended.
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
    """Encrypt the whole of what is open into a new file, which its owner alone can read. OSError
    where there is no room."""
    plain.seek(0)
    with open(target, "xb", opener=file_modes.opener) as file:
        _encrypt(plain, file, to)
        file.flush()
        os.fsync(file.fileno())


class _Target:
    """Remembers that something could not be written: the library forgets it of the last bytes."""

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
        # Whatever has `read`, and `write` and `flush`, is taken.
        pyrage.encrypt_io(cast(BufferedIOBase, source), cast(BufferedIOBase, target), to)
    except pyrage.EncryptError:
        if target.error is None:
            raise
    if target.error is not None:
        raise target.error


def decrypt_file(file: Path, plain: BinaryIO, identities: Path) -> None:
    """Decrypt a file into what is open, by the identities in another. DatabaseError where none of
    them opens it, or it is damaged."""
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
    """What is in a file of `tertulia backups new-key`, of age-keygen, or of ssh-keygen."""
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
        found = [
            pyrage.x25519.Identity.from_str(line)
            for line in lines
            if line and not line.startswith("#")
        ]
    except (UnicodeDecodeError, pyrage.IdentityError):
        found = []
    if not found:
        raise DatabaseError(
            f"{file} doesn't contain an age identity: a line that begins with"
            " AGE-SECRET-KEY-1, or an SSH private key without a passphrase."
        )
    return found


OLD_SECONDS: Final = 50 * 3600.0
"""A last backup that is older is trouble: one was missed, and not only late."""
_LAST: Final = "backups.last"
"""The key of when the last was made, among the facts about the installation."""
_NAME: Final = re.compile(r"tertulia-(\d{8}T\d{6}Z)\.zip(?:\.age)?")
_TIME: Final = "%Y%m%dT%H%M%SZ"
AHEAD_SECONDS: Final = 600.0
"""By so much another node's clock may be ahead of this one's."""


class StoredBackup(Struct, frozen=True, kw_only=True):
    """A backup at the place for them, which could be restored when it was made."""

    name: str
    at: float
    """When it was made, in UNIX seconds."""
    size: int
    """Bytes."""


def name_at(now: float) -> str:
    """The name of a backup of that time. One that is encrypted has `encrypted_backups.SUFFIX`
    after it."""
    return f"tertulia-{datetime.fromtimestamp(now, UTC).strftime(_TIME)}.zip"


async def stored_backups(place: Files) -> list[StoredBackup]:
    """Those that there are, the oldest first. Other files at the place are none of ours."""
    backups = []
    async for one in place.below(""):
        at = _made_at(one.path)
        if at is not None:
            backups.append(StoredBackup(name=one.path, at=at, size=one.size))
    return sorted(backups, key=lambda one: one.at)


def last_backup_at(connection: Connection) -> float | None:
    """When the last one at the place was made, as was last seen; None for none."""
    at = installation.value(connection, _LAST)
    return None if at is None else float(at)


def set_last_backup_at(connection: Connection, at: float | None) -> None:
    """Write that down, inside the transaction that is open."""
    if at is None:
        installation.forget(connection, _LAST)
    else:
        installation.put(connection, _LAST, repr(at))


def is_old(at: float | None, now: float) -> bool:
    """Whether the last one, made then (UNIX seconds), is too old; or missing."""
    return at is None or now - at > OLD_SECONDS


def _made_at(name: str) -> float | None:
    match = _NAME.fullmatch(name)
    try:
        return datetime.strptime(match[1], _TIME).replace(tzinfo=UTC).timestamp() if match else None
    except ValueError:  # No such day, or hour.
        return None


def backups_made(backups: Iterable[StoredBackup], now: float) -> list[StoredBackup]:
    """Those that were made by now, in the same order. What is of a time that has not come is of a
    clock that was wrong, and stands for none."""
    return [one for one in backups if one.at <= now + AHEAD_SECONDS]


def superseded_backups(
    backups: Iterable[StoredBackup], days: int, weeks: int, now: float
) -> list[StoredBackup]:
    """Those that need not be kept: all but the newest, the newest of each of the last `days` days
    that have one, and the newest of each of the last `weeks` weeks that have one. (In UTC.) What
    was not `made` by now is left alone."""
    newest_first = sorted(backups_made(backups, now), key=lambda one: one.at, reverse=True)
    kept = set(newest_first[:1])
    for most, period in ((days, _day_of), (weeks, _week_of)):
        newest: dict[str, StoredBackup] = {}
        for one in newest_first:
            newest.setdefault(period(one), one)
        kept |= set(list(newest.values())[:most])
    return [one for one in newest_first if one not in kept]


def _day_of(backup: StoredBackup) -> str:
    return datetime.fromtimestamp(backup.at, UTC).strftime("%Y-%m-%d")


def _week_of(backup: StoredBackup) -> str:
    return datetime.fromtimestamp(backup.at, UTC).strftime("%G-%V")


def last_due(now: float, hour: int) -> float:
    """When a backup was due last, where one is each day at that hour of UTC."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=hour, minute=0, second=0, microsecond=0)
    due = today.timestamp()
    return due if due <= now else (today - timedelta(days=1)).timestamp()


PREFIX: Final = "backup-"
"""Begins their names."""
_NEW: Final = f".{PREFIX}"
"""Begins them until they are locked; there is nothing in them then."""
_HELD: Final = "held"
"""The file that is locked."""
_OURS: Final = re.compile(r"tertulia-\w+\.zip(\.age)?|trial|backup\.zip")
"""What older versions have in one that they do not lock: another directory may be called so too."""
_UNHELD_SECONDS: Final = 86400
"""What is not locked yet, and what an older version never locks: after so long nobody is at it."""


@contextlib.contextmanager
def temporary_directory(data_path: Path) -> Iterator[Path]:
    """An empty directory for the time of the context, which nobody but the owner can read. Those
    whose process is gone are deleted first."""
    file_modes.directory(data_path)
    delete_stale_directories(data_path)
    # It is locked before anybody can take it for one that was left.
    new = Path(tempfile.mkdtemp(prefix=_NEW, dir=data_path))
    with open(new / _HELD, "wb", opener=file_modes.opener) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        directory = new.rename(new.with_name(new.name.removeprefix(".")))
        try:
            yield directory
        finally:
            shutil.rmtree(directory)


def anonymous_file(directory: Path) -> BinaryIO:
    """An empty file that goes when it is closed, or with the process. Nobody can open it anew."""
    return cast(BinaryIO, tempfile.TemporaryFile(dir=directory))


def temporary_directories(data_path: Path) -> list[Path]:
    """Those that there are, and what else is called so."""
    try:
        names = os.listdir(data_path)
    except PermissionError:
        return []
    return [data_path / name for name in names if name.startswith((PREFIX, _NEW))]


def delete_stale_directories(data_path: Path) -> None:
    """Delete those whose process is gone. What cannot be looked at is not ours."""
    for left in temporary_directories(data_path):
        # Somebody else's, which cannot be looked into, or one that goes just now.
        with contextlib.suppress(OSError):
            if left.is_dir() and _is_left(left):
                shutil.rmtree(left, ignore_errors=True)


def _is_left(directory: Path) -> bool:
    if directory.name.startswith("."):
        return _age(directory) > _UNHELD_SECONDS
    try:
        held = os.open(directory / _HELD, os.O_RDWR)
    except FileNotFoundError:
        is_ours = all(_OURS.fullmatch(one.name) for one in directory.iterdir())
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
