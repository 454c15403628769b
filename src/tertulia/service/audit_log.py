"""Audit log records of actions that change nothing, such as failed sign-ins. Anyone can cause
these, so each kind has a budget. Records beyond it are counted, and written as one record when the
period ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tertulia.log.log import Log
from tertulia.model.audit_log import AuditKind, AuditRecord, Origin
from tertulia.store.notes import Audited


class RecordLimit(NamedTuple):
    """Limits on the number of records of a kind."""

    alike: int = 3
    """Records per period for one account and network. Further ones are counted."""
    period: int = 600
    """Seconds."""
    burst: int = 300
    """Records that a node can write immediately."""
    per_second: float = 0.1
    """Records that a node can write per second in the long run."""


_LIMIT: Final = RecordLimit()
_LIMITS: Final[Mapping[AuditKind, RecordLimit]] = {
    # A program with an old key may try it for as long as it runs.
    "key_refused": RecordLimit(alike=1, period=6 * 3600, burst=100, per_second=0.01),
}
"""Limits of kinds that don't use the defaults. Each kind has a separate budget, so that a flood of
one kind hides no other kind."""
_Source = tuple[AuditKind, int | None, str]
"""A kind, an account, and a network."""


def limit_of(kind: AuditKind) -> RecordLimit:
    return _LIMITS.get(kind, _LIMIT)


@dataclass
class _Count:
    begun_at: float
    written: int = 0
    more: int = 0


@dataclass
class _Budget:
    left: float
    at: float


class AuditRecorder:
    """Collects a node's records and writes them within seconds."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._counts: dict[_Source, _Count] = {}
        self._budgets: dict[AuditKind, _Budget] = {}

    def record(
        self,
        kind: AuditKind,
        origin: Origin,
        *,
        network: str = "",
        actor_id: int | None = None,
        user_id: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Record an action. `network` is the client's; records of the same kind, account, and
        network are counted together."""
        now = self._log.clock()
        self.write_counts(now)
        source: _Source = (kind, user_id, network)
        count = self._counts.get(source)
        if count is not None and count.written >= limit_of(kind).alike:
            count.more += 1
            return
        if not self._pays(kind, now):
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

    def _pays(self, kind: AuditKind, now: float) -> bool:
        limit = limit_of(kind)
        budget = self._budgets.setdefault(kind, _Budget(limit.burst, now))
        earned = max(0.0, now - budget.at) * limit.per_second
        budget.left, budget.at = min(limit.burst, budget.left + earned), now
        if budget.left < 1:
            return False
        budget.left -= 1
        return True

    def write_counts(self, now: float | None = None) -> None:
        """Write the counts of periods that have ended; all counts for None."""
        at = self._log.clock()
        over = [
            source
            for source, count in self._counts.items()
            if now is None or not 0 <= now - count.begun_at < limit_of(source[0]).period
        ]
        for source in over:
            count = self._counts.pop(source)
            if not count.more:
                continue
            kind, user_id, network = source
            if network and not self._pays(kind, at):
                self._counts.setdefault((kind, None, ""), _Count(at)).more += count.more
                continue
            details = {"count": count.more, "since": int(count.begun_at)}
            origin = Origin(way="page", address=network)
            self._write(
                AuditRecord(kind=kind, at=at, user_id=user_id, origin=origin, details=details)
            )

    def _write(self, record: AuditRecord) -> None:
        self._log.note(Audited(record))
