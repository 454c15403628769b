"""Imports of uploaded exports of other chat servers, which owners request in the browser."""

from enum import Enum
from typing import Final

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds

PLACEHOLDER_HOST: Final = "imported.invalid"
"""The host of the addresses of people whose address is unknown. It can't receive email."""


class ImportKind(Enum):
    """The chat server that an export comes from."""

    ZULIP = "zulip"
    SLACK = "slack"
    MATTERMOST = "mattermost"
    ROCKETCHAT = "rocketchat"


class ImportState(Enum):
    """The progress of an import."""

    CHECKING = "checking"
    """A dry run counts what would be imported."""
    CHECKED = "checked"
    """The dry run is finished, and an owner can start the import."""
    IMPORTING = "importing"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELED = "canceled"


class ImportRemark(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A number of records of one kind that were skipped or changed for the same reason."""

    kind: str
    """The plural noun: `people`, `messages`, …"""
    reason: str
    """A sentence."""
    count: int
    samples: tuple[str, ...] = ()


class ImportSummary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of an import or a dry run."""

    origin: str
    """The kind and version of the other server, such as `Zulip 10.1`."""
    imported: dict[str, int] = {}
    """The numbers of imported records, by plural noun."""
    skipped: tuple[ImportRemark, ...] = ()
    changed: tuple[ImportRemark, ...] = ()


class DataImport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An import of an uploaded export."""

    id: int
    started_by: int
    """The ID of the owner who uploaded the export or started the import."""
    kind: ImportKind
    state: ImportState
    path: str
    """The uploaded file's path (`store/files.py`); empty once it's deleted."""
    name: str
    """The file's name on the owner's device."""
    size: int
    """Bytes."""
    requested_at: UnixSeconds
    team: str = ""
    """The only Mattermost team to import; empty for all."""
    token_sealed: str = ""
    """A token for downloading Slack's files, encrypted by the vault; empty for none."""
    new_accounts: bool = False
    """Whether everyone gets a new account, instead of being matched by address."""
    started_at: int = 0
    """UNIX seconds; 0 if it isn't started. Likewise for the next one."""
    ended_at: int = 0
    reason: str = ""
    """The reason why it failed."""
    plan: ImportSummary | None = None
    """The result of the dry run."""
    summary: ImportSummary | None = None
    """The result of the import, once it's finished."""

    @property
    def is_running(self) -> bool:
        return self.state in {ImportState.CHECKING, ImportState.IMPORTING}


class DataImportSet(Change, frozen=True, tag="data_import_set"):
    """An import was requested, started, finished, or canceled, or it failed."""

    data_import: DataImport


class DataImportsRemoved(Change, frozen=True, tag="data_imports_removed"):
    """Records of imports were removed."""

    import_ids: tuple[int, ...]
