"""The progress of following a running Zulip, as it's stored."""

from typing import Final

from msgspec import Struct, field

from tertulia.imports.report import ImportReport
from tertulia.store import installation

IMPORT_FACT: Final = installation.IMPORT
"""The fact with the import of an export, which following continues."""
FACT: Final = installation.LIVE_IMPORT
FINISH_FACT: Final = "import_live_finish"
"""Whether to finish the move."""


class Followed(Struct, kw_only=True):
    """The progress of following, as it's stored."""

    url: str
    step: str = "comparing"
    """`comparing`, `following`, or `done`."""
    position: int = 0
    """The messages up to this one have been compared."""
    history_until: int = 0
    """Messages up to this one were sent before the move, and count as read. 0 if an export was
    imported first."""
    queue_id: str = ""
    last_event_id: int = -1
    started_at: float = 0
    seen_at: float = 0
    ended_at: float = 0
    events: int = 0
    report: ImportReport = field(default_factory=ImportReport)
    differences: list[str] = []
    """The differences that following can't copy."""


class FollowedImport(Struct):
    """The part of an import's progress that following needs."""

    step: str = ""
    origin: str = ""
    keep_ids: bool = False
    started_at: float = 0.0
