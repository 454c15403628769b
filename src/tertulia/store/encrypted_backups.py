"""Backups that only who has a key can read: files of the age format (age-encryption.org/v1).

A recipient is the public half of a key (`age1…`, or a public key of SSH); the server needs no more
than that. The other half, the identity, opens the file, here or by any other program for age.
"""

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from tertulia.store import file_modes
from tertulia.store.database import DatabaseError

SUFFIX: Final = ".age"
"""Ends the names of such files."""
_BEGINS: Final = b"age-encryption.org/v1\n"
_SSH: Final = ("ssh-ed25519 ", "ssh-rsa ")
_SSH_IDENTITY: Final = "-----BEGIN"


def recipients(text: str) -> list[Any]:
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
def encrypted(target: BinaryIO, to: Sequence[Any]) -> Iterator[BinaryIO]:
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
