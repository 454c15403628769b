"""Queued calls of bots' services, and a log of past ones.

Each bot has its own queue (`lanes.SERVICES`): its calls start in order, a few at a time. Calls
are only read by bot, so a thousand calls waiting for a dead service cost nothing.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.model.webhooks import ServiceCall, WebhookLogEntry
from tertulia.store.codec import encode
from tertulia.store.database import Connection
from tertulia.store.lanes import SERVICES, Lease

MAX_PARALLEL: Final = 4
"""The most simultaneous calls of one bot; one after a failure."""
MAX_WAITING: Final = 20_000
"""The most queued calls of one bot. The oldest are dropped beyond that."""
_decoder: Final = msgspec.json.Decoder(ServiceCall)


class QueuedCall(Struct, frozen=True, kw_only=True):
    """A queued call. Times are in UNIX seconds."""

    id: str
    asked_at: float
    attempts: int
    """The number of attempts, including the current one."""
    call: ServiceCall


class LeasedCalls(Struct, frozen=True, kw_only=True):
    """Leased calls of one bot."""

    lease: Lease
    calls: tuple[QueuedCall, ...]
    dropped: int = 0
    """Calls dropped from a full queue."""


def add_call(connection: Connection, call: ServiceCall, at: float, call_id: str) -> None:
    """Queue a call that is due now, unless its ID exists."""
    connection.run(
        "INSERT INTO webhook_deliveries (id, bot_id, message_id, asked_at, attempts, doc)"
        " VALUES (?, ?, ?, ?, 0, ?) ON CONFLICT (id) DO NOTHING",
        (call_id, call.bot_id, call.message_id, at, encode(call)),
    )
    connection.run(
        "INSERT INTO webhook_lanes (bot_id, due_at, failures, lease) VALUES (?, ?, 0, '')"
        " ON CONFLICT (bot_id) DO NOTHING",
        (call.bot_id, at),
    )


def lease_calls(
    connection: Connection, now: float, lease_seconds: float, bot_ids: Sequence[int]
) -> list[LeasedCalls]:
    """Lease the first calls of those bots that are due."""
    leases = SERVICES.lease(connection, now, lease_seconds, bot_ids)
    lanes = [_taken(connection, lease) for lease in leases]
    return [lane for lane in lanes if lane.calls]


def _taken(connection: Connection, lease: Lease) -> LeasedCalls:
    dropped = _drop_excess(connection, lease.receiver_id)
    rows = connection.query(
        "SELECT id, asked_at, attempts, doc FROM webhook_deliveries WHERE bot_id = ?"
        " ORDER BY message_id, id LIMIT ?",
        (lease.receiver_id, 1 if lease.failures else MAX_PARALLEL),
    )
    if not rows:
        SERVICES.remove(connection, lease.receiver_id)
    connection.run_many(
        "UPDATE webhook_deliveries SET attempts = attempts + 1 WHERE id = ?",
        [(row[0],) for row in rows],
    )
    calls = tuple(
        QueuedCall(
            id=str(call_id),
            asked_at=float(asked_at),
            attempts=int(attempts) + 1,
            call=_decoder.decode(str(doc)),
        )
        for call_id, asked_at, attempts, doc in rows
    )
    return LeasedCalls(lease=lease, calls=calls, dropped=dropped)


def _drop_excess(connection: Connection, bot_id: int) -> int:
    excess = connection.query(
        "SELECT message_id FROM webhook_deliveries WHERE bot_id = ?"
        f" ORDER BY message_id DESC LIMIT 1 OFFSET {MAX_WAITING}",
        (bot_id,),
    )
    if not excess:
        return 0
    ((last,),) = excess
    ((number,),) = connection.query(
        "SELECT COUNT(*) FROM webhook_deliveries WHERE bot_id = ? AND message_id <= ?",
        (bot_id, last),
    )
    connection.run(
        "DELETE FROM webhook_deliveries WHERE bot_id = ? AND message_id <= ?", (bot_id, last)
    )
    return int(number)


def finish_calls(
    connection: Connection,
    lane: LeasedCalls,
    done: Collection[str],
    now: float,
    until: float | None,
    trouble: str = "",
) -> None:
    """Delete calls that were made or given up. If the service failed, `until` is when to retry, and
    `trouble` is the reason. Without the lease, the queue itself isn't changed."""
    connection.run_many("DELETE FROM webhook_deliveries WHERE id = ?", [(text,) for text in done])
    if until is not None:
        SERVICES.release(connection, lane.lease, until, now, trouble)
        return
    SERVICES.release(connection, lane.lease, now, now)
    if not count_calls(connection, lane.lease.receiver_id):
        SERVICES.remove(connection, lane.lease.receiver_id)


def count_calls(connection: Connection, bot_id: int) -> int:
    ((number,),) = connection.query(
        "SELECT COUNT(*) FROM webhook_deliveries WHERE bot_id = ?", (bot_id,)
    )
    return int(number)


MAX_JOURNAL: Final = 50
"""The number of log entries kept per bot."""
_decoder_of_webhooks: Final = msgspec.json.Decoder(WebhookLogEntry)


def write_journal(connection: Connection, bot_id: int, lines: Iterable[WebhookLogEntry]) -> None:
    """Add log entries in order and delete the oldest ones."""
    connection.run_many(
        "INSERT INTO webhook_journal (bot_id, doc) VALUES (?, ?)",
        [(bot_id, encode(line)) for line in lines],
    )
    connection.run(
        "DELETE FROM webhook_journal WHERE bot_id = ? AND id <= COALESCE((SELECT id FROM"
        f" webhook_journal WHERE bot_id = ? ORDER BY id DESC LIMIT 1 OFFSET {MAX_JOURNAL}), 0)",
        (bot_id, bot_id),
    )


def journal(connection: Connection, bot_id: int) -> list[WebhookLogEntry]:
    """Return the bot's log, newest first."""
    rows = connection.query(
        "SELECT doc FROM webhook_journal WHERE bot_id = ? ORDER BY id DESC", (bot_id,)
    )
    return [_decoder_of_webhooks.decode(str(doc)) for (doc,) in rows]
