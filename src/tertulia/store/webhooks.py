"""Calls of bots' services that wait. Each bot has a lane: its calls are begun in order, a few at
a time, and those of another do not wait for them.

Whoever calls takes a lane on a lease: its `due_at` moves on, and should the caller die, it is due
again by itself. So two nodes never make the same call, unless the first one was lost after it had
called and before it said so. The rows are not looked at but by lane: a thousand calls that wait for
a service which is away cost nothing.
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
"""Calls of one bot that are made at the same time; one where the last ones failed."""
MAX_WAITING: Final = 20_000
"""Calls of one bot that wait. Beyond, the oldest are dropped when the lane is next taken."""
_decoder: Final = msgspec.json.Decoder(ServiceCall)


class QueuedCall(Struct, frozen=True, kw_only=True):
    """A call that waits. Times are in UNIX seconds."""

    id: str
    asked_at: float
    attempts: int
    """How many there were, with the present one."""
    call: ServiceCall


class LeasedCalls(Struct, frozen=True, kw_only=True):
    """Calls of one bot, to be made now."""

    bot_id: int
    failures: int
    """How often the service failed in a row."""
    lease: str
    calls: tuple[QueuedCall, ...]
    dropped: int = 0
    """How many there were too many."""


def add_call(connection: Connection, call: ServiceCall, at: float, call_id: str) -> None:
    """Add a call, to be made at once, inside the transaction that is open. One that is there
    already stays as it is."""
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
    """The bots of which calls wait, each with when its lane is due, the first ones first."""
    rows = connection.query("SELECT bot_id, due_at FROM webhook_lanes ORDER BY due_at, bot_id")
    return [(int(bot_id), float(due_at)) for bot_id, due_at in rows]


def lease_calls(
    connection: Connection, now: float, lease_seconds: float, bot_ids: Sequence[int]
) -> list[LeasedCalls]:
    """Those of the bots' lanes that are due, with their first calls. They are the caller's for the
    lease."""
    found: list[LeasedCalls] = []
    for bot_id in bot_ids:
        rows = connection.query(
            "SELECT failures FROM webhook_lanes WHERE bot_id = ? AND due_at <= ?", (bot_id, now)
        )
        found += [_taken(connection, bot_id, int(n), now + lease_seconds) for (n,) in rows]
    return [lane for lane in found if lane.calls]


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
    """These calls were made, or are given up. `until` is when to try the others again, where the
    service failed, and `trouble` why it did; None where it did not. Where the lease has passed to
    another, the rest of the lane is theirs."""
    connection.run_many("DELETE FROM webhook_deliveries WHERE id = ?", [(one,) for one in done])
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
    """How many calls of the bot wait."""
    ((number,),) = connection.query(
        "SELECT COUNT(*) FROM webhook_deliveries WHERE bot_id = ?", (bot_id,)
    )
    return int(number)


MAX_JOURNAL: Final = 50
"""Lines of one bot's journal."""
_decoder_of_webhooks: Final = msgspec.json.Decoder(WebhookLogEntry)


def write_journal(connection: Connection, bot_id: int, lines: Iterable[WebhookLogEntry]) -> None:
    """Add the lines, in order; the oldest give way."""
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
    """The bot's journal, the newest line first."""
    rows = connection.query(
        "SELECT doc FROM webhook_journal WHERE bot_id = ? ORDER BY id DESC", (bot_id,)
    )
    return [_decoder_of_webhooks.decode(str(doc)) for (doc,) in rows]
