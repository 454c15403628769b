"""Queued calls of bots' services, and a log of past ones.

Each bot has a queue of its own: its calls start in order, a few at a time, and don't wait for those
of other bots. The caller leases a queue: `due_at` moves ahead, so it becomes due again if the
caller dies. A call is made twice only if a node dies between making it and recording that. Calls
are only read by bot, so a thousand calls waiting for a dead service cost nothing.
"""

import secrets
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.model.webhooks import ServiceCall, WebhookLogEntry
from tertulia.store.codec import encode
from tertulia.store.database import Connection

MAX_PARALLEL: Final = 4
"""Simultaneous calls of one bot, or one after a failure."""
MAX_WAITING: Final = 20_000
"""Queued calls of one bot. The oldest are dropped beyond that."""
_decoder: Final = msgspec.json.Decoder(ServiceCall)


class QueuedCall(Struct, frozen=True, kw_only=True):
    """A queued call. Times are in UNIX seconds."""

    id: str
    asked_at: float
    attempts: int
    """Including the current one."""
    call: ServiceCall


class LeasedCalls(Struct, frozen=True, kw_only=True):
    """Calls of one bot to be made now."""

    bot_id: int
    failures: int
    """Consecutive failures of the service."""
    lease: str
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


def due_bots(connection: Connection) -> list[tuple[int, float]]:
    """Return the bots with queued calls and when they are due, earliest first."""
    rows = connection.query("SELECT bot_id, due_at FROM webhook_lanes ORDER BY due_at, bot_id")
    return [(int(bot_id), float(due_at)) for bot_id, due_at in rows]


def lease_calls(
    connection: Connection, now: float, lease_seconds: float, bot_ids: Sequence[int]
) -> list[LeasedCalls]:
    """Lease the first calls of those bots that are due."""
    result: list[LeasedCalls] = []
    for bot_id in bot_ids:
        rows = connection.query(
            "SELECT failures FROM webhook_lanes WHERE bot_id = ? AND due_at <= ?", (bot_id, now)
        )
        result += [_taken(connection, bot_id, int(n), now + lease_seconds) for (n,) in rows]
    return [lane for lane in result if lane.calls]


def _taken(connection: Connection, bot_id: int, failures: int, until: float) -> LeasedCalls:
    dropped = _drop_excess(connection, bot_id)
    rows = connection.query(
        "SELECT id, asked_at, attempts, doc FROM webhook_deliveries WHERE bot_id = ?"
        " ORDER BY message_id, id LIMIT ?",
        (bot_id, 1 if failures else MAX_PARALLEL),
    )
    lease = secrets.token_hex(8)
    if not rows:
        connection.run("DELETE FROM webhook_lanes WHERE bot_id = ?", (bot_id,))
        return LeasedCalls(bot_id=bot_id, failures=failures, lease=lease, calls=())
    connection.run(
        "UPDATE webhook_lanes SET due_at = ?, lease = ? WHERE bot_id = ?", (until, lease, bot_id)
    )
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
    return LeasedCalls(bot_id=bot_id, failures=failures, lease=lease, calls=calls, dropped=dropped)


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
    """Delete calls that were made or given up. If the service failed, `until` is when to retry and
    `trouble` is why. Without the lease, the queue itself isn't changed."""
    connection.run_many("DELETE FROM webhook_deliveries WHERE id = ?", [(text,) for text in done])
    mine = (lane.bot_id, lane.lease)
    if until is not None:
        connection.run(
            "UPDATE webhook_lanes SET due_at = ?, failures = failures + 1, lease = '', trouble = ?,"
            " failing_since = CASE WHEN failures = 0 THEN ? ELSE failing_since END"
            " WHERE bot_id = ? AND lease = ?",
            (until, trouble[:300], now, *mine),
        )
        return
    connection.run(
        "UPDATE webhook_lanes SET due_at = ?, failures = 0, lease = '', trouble = ''"
        " WHERE bot_id = ? AND lease = ?",
        (now, *mine),
    )
    left = connection.query(
        "SELECT 1 FROM webhook_deliveries WHERE bot_id = ? LIMIT 1", (lane.bot_id,)
    )
    if not left:
        connection.run("DELETE FROM webhook_lanes WHERE bot_id = ?", (lane.bot_id,))


def count_calls(connection: Connection, bot_id: int) -> int:
    ((number,),) = connection.query(
        "SELECT COUNT(*) FROM webhook_deliveries WHERE bot_id = ?", (bot_id,)
    )
    return int(number)


MAX_JOURNAL: Final = 50
"""Log entries kept per bot."""
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
