"""The interface of an import's source."""

from collections.abc import Iterator
from typing import BinaryIO, Final, Protocol

from msgspec import Struct

from tertulia.imports.records import Key, SourceMessage, SourceOrganization
from tertulia.imports.report import ImportReport

BATCH: Final = 100
"""The most messages of a batch. A commit writes one or more batches."""
BATCH_BYTES: Final = 1024 * 1024
"""The approximate size of a batch, in bytes, unless it has a larger message."""


class SourceError(Exception):
    """The export can't be used. `str(error)` says why, and what to do."""


class FileUnavailable(FileNotFoundError):
    """A file of the export isn't available. `str(error)` is a sentence that says why."""


class Survey(Struct, frozen=True, kw_only=True):
    """The facts about an export that are known before anything is imported."""

    fingerprint: str
    """Identifies the export, so that an interrupted import of it can be resumed."""
    name: str
    """The organization's name."""
    origin: str
    """The kind and version of the other server, such as `Zulip 10.1`."""
    messages: int
    """The number of messages, or an estimate."""
    files: int = 0
    file_bytes: int = 0


class MessageBatch(Struct, frozen=True):
    """Consecutive messages, and the source's position after them."""

    messages: tuple[SourceMessage, ...]
    position: str
    """Opaque; empty for the beginning."""


class Source(Protocol):
    """An export, or a running server. It yields everything in the same order each time."""

    kind: str
    """`zulip`, `slack`, …"""
    keeps_ids: bool
    """Whether integer keys become IDs in a new organization."""

    def survey(self) -> Survey:
        """Read the source once, in bounded memory. Raises SourceError."""

    def organization(self, report: ImportReport) -> SourceOrganization:
        """Return everything except messages. Reports what can't be imported. Raises SourceError."""

    def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
        """Yield batches after the position, with at most `BATCH` messages and about `BATCH_BYTES`
        each. Raises SourceError."""

    def open(self, place: str) -> BinaryIO:
        """Open a file. Raises FileNotFoundError, or FileUnavailable with a reason."""

    def close(self) -> None:
        """Release the source's resources."""


def require_unique(keys: list[Key], what: str) -> None:
    """Raise SourceError if two records have the same key."""
    if len(set(keys)) != len(keys):
        raise SourceError(f"The export has two {what} with the same ID. It is damaged.")
