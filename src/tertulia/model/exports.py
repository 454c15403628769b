"""Data exports: files with a person's data, or with the organization's."""

from enum import Enum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class ExportKind(Enum):
    """The kinds of data exports, by their content."""

    PERSON = "person"
    """The data of the person who requested it."""
    PUBLIC = "public"
    """Data that every member can read."""
    CONSENT = "full_with_consent"
    """Also private data of people who agreed to it."""
    FULL = "full_without_consent"
    """Everything."""


class DataExport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A data export: pending until it's finished, failed, or deleted."""

    id: int
    user_id: int
    """The person who requested it."""
    kind: ExportKind
    requested_at: UnixSeconds
    finished_at: int = 0
    """UNIX seconds; 0 if it isn't finished. Likewise for the next two."""
    failed_at: int = 0
    deleted_at: int = 0
    reason: str = ""
    """The reason why it failed."""
    path: str = ""
    """The file's path (`store/files.py`); empty unless it's finished and not deleted."""
    size: int = 0
    """Bytes."""

    @property
    def is_pending(self) -> bool:
        return not (self.finished_at or self.failed_at or self.deleted_at)


class DataExportSet(Change, frozen=True, tag="data_export_set"):
    """A data export was requested, finished, failed, or deleted."""

    export: DataExport


class DataExportsRemoved(Change, frozen=True, tag="data_exports_removed"):
    """Records of old data exports were removed."""

    export_ids: tuple[int, ...]
