"""Records for the audit log of what changes nothing, such as failed sign-ins.

Anyone can cause these, so they are paid for from a budget. What exceeds it is counted, and recorded
as one record when its period ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tertulia.log.log import Log
from tertulia.model.audit_log import AuditRecord, Origin
from tertulia.store.notes import Audited

PERIOD_SECONDS: Final = 600
ALIKE: Final = 3
"""Records per period of one kind, account, and network. More are counted."""
BURST: Final = 300
"""Records of a node that can be written immediately."""
PER_SECOND: Final = 0.1
"""Records of a node in the long run."""
_Source = tuple[str, int | None, str]
"""A kind, an account, and a network."""


@dataclass
class _Count:
    begun_at: float
    written: int = 0
    more: int = 0


class AuditRecorder:
    """Writes a node's records within a moment."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._counts: dict[_Source, _Count] = {}
        self._budget = float(BURST)
        self._budget_at = log.clock()

    def record(
        self,
        kind: str,
        origin: Origin,
        *,
        network: str = "",
        actor_id: int | None = None,
        user_id: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Record something. `network` is the client's; records of the same kind, account, and
        network count together."""
        now = self._log.clock()
        self.write_counts(now)
        source: _Source = (kind, user_id, network)
        count = self._counts.get(source)
        if count is not None and count.written >= ALIKE:
            count.more += 1
            return
        if not self._pays(now):
            self._counts.setdefault((kind, None, ""), _Count(now)).more += 1
            return
        self._counts.setdefault(source, _Count(now)).written += 1
        self._write(
            AuditRecord(
                kind=kind,
                at=now,
                actor_id=actor_id,
                user_id=user_id,
                origin=origin,
                details=dict(details or {}),
            )
        )

    def _pays(self, now: float) -> bool:
        earned = max(0.0, now - self._budget_at) * PER_SECOND
        self._budget, self._budget_at = min(BURST, self._budget + earned), now
        if self._budget < 1:
            return False
        self._budget -= 1
        return True

    def write_counts(self, now: float | None = None) -> None:
        """Record what was counted in periods that have ended, or with None in all."""
        at = self._log.clock()
        over = [
            source
            for source, count in self._counts.items()
            if now is None or not 0 <= now - count.begun_at < PERIOD_SECONDS
        ]
        for source in over:
            count = self._counts.pop(source)
            if not count.more:
                continue
            kind, user_id, network = source
            if network and not self._pays(at):
                self._counts.setdefault((kind, None, ""), _Count(at)).more += count.more
                continue
            details = {"count": count.more, "since": int(count.begun_at)}
            origin = Origin(way="page", address=network)
            self._write(
                AuditRecord(kind=kind, at=at, user_id=user_id, origin=origin, details=details)
            )

    def _write(self, record: AuditRecord) -> None:
        self._log.note(Audited(record))
