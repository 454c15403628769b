"""The progress of an import, or of a check before one."""

import errno
import logging
import os
from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeVar

from msgspec import Struct, field

from tertulia.imports.context import ImportContext
from tertulia.imports.records import SourceMessage
from tertulia.imports.report import ImportReport
from tertulia.imports.source import MessageBatch, Source, SourceError
from tertulia.store import installation

logger = logging.getLogger("tertulia.imports")

FACT: Final = installation.IMPORT
"""The fact of the installation with the progress of the newest import."""
IDS_FACT: Final = "import_ids"
"""The fact with the IDs that the import assigned, until it ends."""
CHECK_FACT: Final = "import_check"
"""The fact with the progress of a check that an owner started: the import's ID, the number of
messages read, and the expected number."""
RECENT_SECONDS: Final = 180.0
"""The number of seconds whose rate the estimate assumes for the rest."""
KNOWN_SECONDS: Final = 10.0
"""The number of seconds after which the rate is known well enough."""

Step = Literal["founding", "accounts", "groups", "channels", "rest", "messages", "end", "done"]
T = TypeVar("T")


class Progress(Struct, kw_only=True):
    """The progress of an import, as each commit stores it."""

    fingerprint: str
    kind: str
    origin: str
    step: Step = "founding"
    position: str = ""
    """The source's position after the last written message."""
    read_position: str = ""
    """The position up to which the read state is written."""
    unread_ids: list[tuple[int, int]] = []
    """The IDs of the messages written since then, as runs: first ID and length. An ID of 0 stands
    for skipped messages."""
    messages: int = 0
    expected: int = 0
    applied: int = 0
    """The number of membership steps applied after the first message."""
    is_new: bool = False
    """Whether the import created the organization."""
    keep_ids: bool = False
    started_at: float = 0
    ended_at: float = 0
    resumed_at: float = 0
    """When it last began to write messages (UNIX seconds), and how many had been written then."""
    resumed_messages: int = 0
    recent: list[tuple[float, int]] = []
    """The same for moments of about the last `RECENT_SECONDS`, oldest first. The estimate uses
    them, because the speed changes with what else the machine does."""
    request_id: int = 0
    """The import's ID if an owner started it in the browser, or 0."""
    is_canceled: bool = False
    """Whether it was canceled for good."""
    is_paused: bool = False
    """Whether it was canceled, but can be continued."""
    erased: int = 0
    """The number of erased accounts in the organization when the import began. If more are erased
    now, the report has no samples, because erasing an account removes them
    (`domain/accounts/erasing.py`)."""
    report: ImportReport = field(default_factory=ImportReport)

    def resume(self, now: float) -> None:
        """Note that writing messages begins."""
        self.resumed_at, self.resumed_messages = now, self.messages
        self.recent = []  # It begins with the first messages, because processes start before.

    def wrote(self, messages: int, now: float) -> None:
        """Count written messages."""
        self.messages += messages
        if not self.recent or now - self.recent[-1][0] >= RECENT_SECONDS / 12:
            self.recent.append((now, self.messages))
        while len(self.recent) > 2 and now - self.recent[1][0] >= RECENT_SECONDS:
            self.recent.pop(0)

    def rate(self, now: float) -> float | None:
        """Return the messages written per second since `resumed_at`; None if that isn't known
        yet."""
        return self._rate(self.resumed_at, self.resumed_messages, now)

    def recent_rate(self, now: float) -> float | None:
        """Return the messages written per second in about the last `RECENT_SECONDS`; None if that
        isn't known yet."""
        if not self.recent:
            return self.rate(now)
        since, before = self.recent[0]
        return self._rate(since, before, now) if now - since >= KNOWN_SECONDS else None

    def _rate(self, since: float, before: int, now: float) -> float | None:
        done, seconds = self.messages - before, now - since
        return done / seconds if done > 0 and seconds > 0 else None

    def seconds_left(self, now: float) -> float | None:
        """Return an estimate of the seconds until all messages are written; None if that isn't
        known yet."""
        rate = self.recent_rate(now)
        if self.step != "messages" or rate is None:
            return None
        return max(0, self.expected - self.messages) / rate


Tell = Callable[[Progress], None]
"""Called after each commit."""


class ImportRefused(Exception):
    """The import can't begin. `str(error)` says why."""


class ImportCanceled(Exception):
    """An owner canceled the import."""


def read_from(read: Callable[[], T]) -> T:
    """Call `read`, and return its result. Errors that the source didn't foresee, for example from
    crafted exports, become SourceError. A full disk raises OSError, because the export is fine."""
    import apsw  # Imported here because a server on PostgreSQL doesn't need it.

    try:
        return read()
    except (SourceError, OSError):
        raise
    except apsw.FullError as error:  # A temporary SQLite file of the source.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
    except Exception as error:
        logger.warning("could not read the export", exc_info=True)
        raise SourceError(
            f"The export can't be read: {type(error).__name__}: {str(error)[:200]}. It may be"
            " damaged, or of a version that isn't supported."
        ) from error


def read_batches(source: Source, after: str, report: ImportReport) -> Iterator[MessageBatch]:
    """Yield the source's batches after the position. Raises SourceError."""
    batches = read_from(lambda: iter(source.messages(after, report)))
    while (batch := read_from(lambda: next(batches, None))) is not None:
        yield batch


class RetentionCheck:
    """Reports messages that are older than the organization's retention period allows, which a
    server deletes within hours."""

    def __init__(self, context: ImportContext) -> None:
        source = context.source
        self._now = context.now
        days = source.settings.get("message_retention_days", -1)
        self._default = days if isinstance(days, int) else -1
        self._of_channel = {
            channel.key: days
            for channel in source.channels
            if (days := channel.retention_days or 0) == -1 or days > 0
        }

    def check(self, message: SourceMessage, report: ImportReport) -> None:
        days = self._default
        if message.channel is not None:
            days = self._of_channel.get(message.channel, days)
        if days > 0 and message.sent_at < self._now - days * 86400:
            report.change(
                "messages",
                "They are older than the retention period, so the server deletes them within"
                " hours. To keep them, change the period in the export's organization first.",
                message.key,
            )
