"""Files that arrive in pieces, over several requests, and outlive the process in between.

The pieces so far are a file among those that arrive (`tertulia.store.uploads`); beside it lies
what is known of it, `<user>-<key>.json`, until it expires.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.store import file_modes
from tertulia.store.uploads import KEY, ArrivedFile, IncomingFile, Uploads, sync_directory

_ENDING: Final = ".json"


class Partial(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a file that arrives in pieces."""

    user_id: int
    key: str
    length: int
    """Bytes that it will have."""
    metadata: str
    """As the uploader wrote it."""
    name: str
    media_type: str
    expires: int
    """UNIX seconds."""
    doubtful: int | None = None
    """What lies behind so many bytes has not been held against its checksum."""
    path: str | None = None
    """That of the attachment, once it is whole and is one."""


_decoder = msgspec.json.Decoder(Partial)


class InUse(Exception):
    """Another process is writing the file."""


class Pieces:
    """The bytes of one file so far, open for more; no other process has them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @property
    def size(self) -> int:
        """Bytes so far."""
        return os.fstat(self._descriptor).st_size

    def append(self, piece: bytes) -> None:
        """Write the whole piece. OSError where there is no room; a part of it may be there then."""
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def cut(self, size: int) -> None:
        """Forget what lies behind so many bytes."""
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        """See to it that everything is on disk."""
        os.fsync(self._descriptor)


class Partials:
    """The files that arrive in pieces. Its methods block: call them in a thread."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads

    def begin(self, partial: Partial) -> None:
        """A new file, of which nothing has arrived yet; its key is `new_key`."""
        file_modes.directory(self._uploads.incoming)
        place = self._uploads.incoming / partial.key
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        self.save(partial)

    def save(self, partial: Partial) -> None:
        """Write down what is known of it. It is on disk afterwards."""
        place = self._uploads.incoming / f"{partial.user_id}-{partial.key}{_ENDING}"
        draft = place.with_suffix(f".{secrets.token_hex(4)}")
        try:
            with open(draft, "wb", opener=file_modes.opener) as file:
                file.write(msgspec.json.encode(partial))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(place)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        sync_directory(place.parent)

    def load(self, user_id: int, key: str) -> Partial | None:
        """What is known of the user's file with that key; None where there is none."""
        if not KEY.fullmatch(key):
            return None
        try:
            text = (self._uploads.incoming / f"{user_id}-{key}{_ENDING}").read_bytes()
        except FileNotFoundError:
            return None
        return _decoder.decode(text)

    @contextlib.contextmanager
    def opened(self, partial: Partial) -> Iterator[Pieces]:
        """Its bytes so far. InUse where another process has them; FileNotFoundError where it is
        whole already."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
        descriptor = os.open(self._uploads.incoming / partial.key, flags)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InUse from None
            pieces = Pieces(descriptor)
            if partial.doubtful is not None:
                pieces.cut(partial.doubtful)
            yield pieces
        finally:
            os.close(descriptor)

    def whole(self, partial: Partial) -> ArrivedFile:
        """It as a file that has arrived."""
        place = self._uploads.incoming / partial.key
        return ArrivedFile(
            partial.name, partial.media_type, partial.length, IncomingFile(partial.key, place)
        )

    def delete(self, partial: Partial) -> None:
        """Delete the pieces, if it is not whole and in its place, and what is known of it."""
        self._uploads.forget(partial.key)
        name = f"{partial.user_id}-{partial.key}{_ENDING}"
        (self._uploads.incoming / name).unlink(missing_ok=True)

    def unfinished(self, user_id: int) -> int:
        """How many of the user's files are not whole yet."""
        found = 0
        for partial in self.all():
            found += partial.user_id == user_id and partial.path is None
        return found

    def all(self) -> Iterator[Partial]:
        """Everything that arrives in pieces."""
        for entry in self._uploads.entries():
            user_id, _, key = entry.name.removesuffix(_ENDING).partition("-")
            if entry.suffix == _ENDING and user_id.isdigit():
                partial = self.load(int(user_id), key)
                if partial is not None:
                    yield partial


def new_key() -> str:
    """A key that nobody can guess."""
    return secrets.token_hex(16)
