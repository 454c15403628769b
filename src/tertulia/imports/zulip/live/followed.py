"""How far following a running Zulip is, as it is stored."""

from typing import Final

from msgspec import Struct, field

from tertulia.imports.report import ImportReport
from tertulia.store import installation

IMPORT_FACT: Final = installation.IMPORT
"""The fact with the import of an export, which following continues."""
FACT: Final = installation.LIVE_IMPORT
FINISH_FACT: Final = "import_live_finish"
"""Whether the move is to be finished."""


class Followed(Struct, kw_only=True):
    """How far following is, as it is stored."""

    url: str
    step: str = "comparing"
    """`comparing`, `following`, or `done`."""
    position: int = 0
    """The messages up to this one have been compared."""
    history_until: int = 0
    """Messages up to this one were sent before the move, and count as read. 0 if an export brought
    them."""
    queue_id: str = ""
    last_event_id: int = -1
    started_at: float = 0
    seen_at: float = 0
    ended_at: float = 0
    events: int = 0
    report: ImportReport = field(default_factory=ImportReport)
    differences: list[str] = []
    """What following doesn't bring along."""


class FollowedImport(Struct):
    """The part of an import's progress that following needs."""

    step: str = ""
    origin: str = ""
    keep_ids: bool = False
    started_at: float = 0.0
