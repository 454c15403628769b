"""Queues of deliveries, one for each receiver, so that a slow receiver delays no other.

A node leases a queue before it delivers: `due_at` moves ahead, so the queue becomes due again if
the node dies. A delivery is made twice only if a node dies between making it and recording that.
"""

import secrets
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tertulia.store.database import Connection


class Lease(Struct, frozen=True, kw_only=True):
    """A lease on a receiver's queue, for delivering from it."""

    receiver_id: int
    token: str
    failures: int
    """Consecutive failures of the receiver."""


class DeliveryFailure(Struct, frozen=True, kw_only=True):
    """Failing deliveries of one kind, or to one receiver."""

    of: int | None
    """The ID of a bot or a push subscription, or None for emails."""
    waiting: int
    """Pending deliveries."""
    since: float
    """UNIX seconds, or 0 if unknown."""
    reason: str
    """The reason why the last attempt failed."""


class Lanes:
    """The queues of one kind: a table with `due_at` (NULL or no row if nothing waits), `failures`,
    `failing_since`, `lease`, and `trouble`. Times are in UNIX seconds."""

    def __init__(self, table: str, receiver: str, waiting: str) -> None:
        """Use a table. `receiver` is the column with the receiver's ID, and `waiting` a query that
        counts what is queued for it."""
        self._table = table
        self._receiver = receiver
        self._waiting = waiting

    def due(self, connection: Connection, limit: int = 1_000_000) -> list[tuple[int, float]]:
        """Return up to `limit` receivers with queued deliveries, and when they are due, earliest
        first."""
        rows = connection.query(
            f"SELECT {self._receiver}, due_at FROM {self._table} WHERE due_at IS NOT NULL"
            f" ORDER BY due_at, {self._receiver} LIMIT ?",
            (limit,),
        )
        return [(int(receiver_id), float(due_at)) for receiver_id, due_at in rows]

    def lease(
        self, connection: Connection, now: float, seconds: float, receiver_ids: Iterable[int]
    ) -> list[Lease]:
        """Lease the queues of those receivers that are due."""
        leases = [
            Lease(receiver_id=receiver_id, token=secrets.token_hex(8), failures=int(failures))
            for receiver_id in receiver_ids
            for (failures,) in connection.query(
                f"SELECT failures FROM {self._table} WHERE {self._receiver} = ? AND due_at <= ?",
                (receiver_id, now),
            )
        ]
        connection.run_many(
            f"UPDATE {self._table} SET due_at = ?, lease = ? WHERE {self._receiver} = ?",
            [(now + seconds, lease.token, lease.receiver_id) for lease in leases],
        )
        return leases

    def holds(self, connection: Connection, lease: Lease) -> bool:
        """Whether no other node has leased the queue since this lease."""
        rows = connection.query(
            f"SELECT 1 FROM {self._table} WHERE {self._receiver} = ? AND lease = ?",
            (lease.receiver_id, lease.token),
        )
        return bool(rows)

    def release(
        self,
        connection: Connection,
        lease: Lease,
        due_at: float | None,
        now: float,
        trouble: str | None = None,
    ) -> None:
        """End the lease, unless it was lost. `trouble` is the reason why the receiver failed; None
        if it didn't."""
        connection.run(
            f"UPDATE {self._table} SET due_at = ?, lease = '', failures = ?, trouble = ?,"
            " failing_since = CASE WHEN failures = 0 THEN ? ELSE failing_since END"
            f" WHERE {self._receiver} = ? AND lease = ?",
            (
                due_at,
                0 if trouble is None else lease.failures + 1,
                (trouble or "")[:300],
                now,
                lease.receiver_id,
                lease.token,
            ),
        )

    def remove(self, connection: Connection, receiver_id: int) -> None:
        connection.run(f"DELETE FROM {self._table} WHERE {self._receiver} = ?", (receiver_id,))

    def failing(self, connection: Connection, limit: int) -> list[DeliveryFailure]:
        """Return up to `limit` failing receivers, those that have failed longest first."""
        rows = connection.query(
            f"SELECT {self._receiver}, failing_since, trouble, ({self._waiting}) FROM"
            f" {self._table} WHERE failures > 0 ORDER BY failing_since, {self._receiver} LIMIT ?",
            (limit,),
        )
        return [
            DeliveryFailure(
                of=int(of), waiting=int(waiting), since=float(since), reason=str(reason)
            )
            for of, since, reason, waiting in rows
        ]


SERVICES: Final = Lanes(
    "webhook_lanes",
    "bot_id",
    "SELECT COUNT(*) FROM webhook_deliveries"
    " WHERE webhook_deliveries.bot_id = webhook_lanes.bot_id",
)
"""Queued calls of bots' services."""
DEVICES: Final = Lanes(
    "push_lanes",
    "subscription_id",
    "SELECT COUNT(*) FROM pushes"
    " WHERE pushes.subscription_id = push_lanes.subscription_id AND wanted <> 'shown'",
)
"""Queued notifications to push subscriptions."""
