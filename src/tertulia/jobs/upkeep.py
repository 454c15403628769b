"""Jobs for upkeep: event queues, upgrades, usage counts, pruning the log, and deleted texts."""

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Final

from tertulia.delivery.delivery import Delivery
from tertulia.delivery.registry import SWEEP_SECONDS
from tertulia.delivery.waiting_polls import HEARTBEAT_ROUND_SECONDS
from tertulia.jobs.supervisor import Job
from tertulia.log.log import Log
from tertulia.model.changes import Entry, UserChanged
from tertulia.model.invitations import InvitationStatus
from tertulia.service import usage as counting
from tertulia.service.audit_log import AuditRecorder
from tertulia.service.usage import CountedElsewhere
from tertulia.store import audit_log as audit_records
from tertulia.store import (
    installation,
    log_entries,
    nodes,
    notifications,
    outbox,
    personal_data,
    pruning,
    queries,
    usage,
)
from tertulia.store.database import Connection
from tertulia.store.notes import FactSet
from tertulia.store.pruning import PendingErasure
from tertulia.store.store import Store


def heartbeats(delivery: Delivery) -> Job:
    """Return the job that sends heartbeats to waiting polls."""

    async def once() -> float:
        delivery.send_heartbeats()
        return HEARTBEAT_ROUND_SECONDS

    return Job("heartbeats", once)


def event_ids(delivery: Delivery) -> Job:
    """Return the job that reserves IDs for transient events."""

    async def once() -> float:
        await delivery.renew_ids()
        return HEARTBEAT_ROUND_SECONDS

    return Job("event IDs", once)


def idle_queues(delivery: Delivery) -> Job:
    """Return the job that deletes idle event queues, and stores when the others were polled and
    users were present."""

    async def once() -> float:
        await delivery.sweep()
        return SWEEP_SECONDS

    return Job("idle queues", once)


PREFIX: Final = "job."
"""The prefix of jobs' keys."""


def troubles(connection: Connection) -> dict[str, str]:
    """Return the jobs that were failing at their last report, with the reason."""
    facts = installation.values(connection, PREFIX)
    return {key.removeprefix(PREFIX): value for key, value in facts.items() if value}


def reporter(log: Log, known: Iterable[str]) -> Callable[[Job], None]:
    """Return a function that stores when a job starts and stops failing. `known` are the jobs that
    were failing when the node started."""
    reported = set(known)

    def report(job: Job) -> None:
        if job.trouble is not None:
            reported.add(job.name)
        elif job.name in reported:
            reported.remove(job.name)
        else:
            return
        log.note(FactSet(PREFIX + job.name, job.trouble or ""))

    return report


logger = logging.getLogger("tertulia.jobs")

UPGRADES_PERIOD_SECONDS: Final = 15.0


def upgrades(log: Log) -> Job:
    """Return the job that completes upgrades once older nodes are gone."""

    async def once() -> float:
        await log.store.tend_list(nodes.forget_old)
        await log.store.settle(logger.info)
        return UPGRADES_PERIOD_SECONDS

    return Job("upgrades", once)


USAGE_PERIOD_SECONDS: Final = 300.0
USAGE_FIRST_SECONDS: Final = 20.0
"""The delay after startup in seconds, because other work is more urgent."""
USAGE_ROUND_SECONDS: Final = 6 * 3600.0
"""The timeout of a round in seconds. The first count of a large organization takes long;
interrupted rounds keep their counts."""


def usage_counts(log: Log) -> Job:
    """Return the job that counts usage every five minutes, on one node."""

    async def once() -> float:
        last = await log.store.read(usage.progress)
        left = last.at + USAGE_PERIOD_SECONDS - log.clock()
        if 0 < left <= USAGE_PERIOD_SECONDS:
            return left
        with contextlib.suppress(CountedElsewhere):
            await counting.count(log.store, lambda: log.state, log.clock())
        return USAGE_PERIOD_SECONDS

    return Job("usage", once, round_seconds=USAGE_ROUND_SECONDS, first_seconds=USAGE_FIRST_SECONDS)


PRUNING_PERIOD_SECONDS: Final = 3600.0
DAY: Final = 86400
BATCH_SIZE: Final = 5000
"""The number of entries per transaction, so that others can write in between."""
ENTRIES_READ: Final = 100_000
"""The number of entries that are searched per read."""
PRUNING_ROUND_SECONDS: Final = 6 * 3600.0
"""The timeout of a round in seconds. Creating a checkpoint takes long in a large organization, and
starts over if interrupted."""
COPIES_DAYS: Final = 30
"""The number of days for which copies from before migrations are kept."""
DELETED_SECONDS: Final = 6 * 3600.0
"""The interval, in seconds, of removing deleted words from SQLite's search index, which is
rewritten, and from the write-ahead log."""
BUSY_SECONDS: Final = 60.0
"""The pause in seconds if readers kept the write-ahead log from being emptied."""
PROPAGATION_SECONDS: Final = 60.0
"""Entries are kept for this many seconds after an erasure or the first start since, so that every
node has read them, and polling clients have received them or a heartbeat. Queues of other clients
end."""
PRUNING_FIRST_SECONDS: Final = 5.0
"""The delay after startup in seconds, because finding erasures reads the whole log."""


def log_pruning(log: Log, retention_days: int) -> Job:
    """Return the job that prunes the log every hour."""

    async def once() -> float:
        now = log.clock()
        await pruned_once(log.store, now - retention_days * DAY)
        await log.store.maintain(log.store.database.delete_copies, now - COPIES_DAYS * DAY)
        return PRUNING_PERIOD_SECONDS

    return Job("log pruning", once, round_seconds=PRUNING_ROUND_SECONDS)


AUDIT_PERIOD_SECONDS: Final = 60.0


def audit_log(log: Log, recorder: AuditRecorder, retention_days: int) -> Job:
    """Return the job that writes counted records to the audit log, and prunes it every hour."""
    pruned_at = -math.inf

    async def once() -> float:
        nonlocal pruned_at
        now = log.clock()
        recorder.write_counts(now)
        if not 0 <= now - pruned_at < PRUNING_PERIOD_SECONDS:
            prune = partial(audit_records.prune, before=now - retention_days * DAY)
            await _in_parts(partial(log.store.write, prune))
            pruned_at = now
        return AUDIT_PERIOD_SECONDS

    async def close() -> None:
        recorder.write_counts()

    return Job("audit log", once, close=close)


def deleted_words(store: Store) -> Job:
    """Return the job that removes words of deleted and edited messages from the database's
    files."""

    async def once() -> float:
        return DELETED_SECONDS if await words_forgotten_once(store) else BUSY_SECONDS

    return Job(
        "deleted words",
        once,
        round_seconds=PRUNING_ROUND_SECONDS,
        first_seconds=PRUNING_FIRST_SECONDS,
    )


async def words_forgotten_once(store: Store) -> bool:
    """Rewrite the search index if it has words of deleted messages, and empty the write-ahead log.
    Return False if readers prevented the latter."""
    from_start = True

    async def step() -> bool:
        nonlocal from_start
        is_first, from_start = from_start, False
        return await store.maintain(store.database.forget_deleted_words, from_start=is_first)

    await _in_parts(step)
    return await store.maintain(store.database.empty_write_ahead_log)


def erasures(log: Log, poll_seconds: float) -> Job:
    """Return the job that removes deleted accounts' data from the log, once all nodes and clients
    have seen the deletion. Polls take at most `poll_seconds`."""
    delay = max(PROPAGATION_SECONDS, poll_seconds)
    waiting = [(log.clock(), log.durable)]
    """Pending erasures in order: the time when this node heard about one (UNIX seconds), and its
    entry. The first stands for those of previous runs."""
    kept: tuple[float, int] | None = None
    """The first pending erasure as stored, so that restarts don't restart the wait."""
    is_begun = False

    async def keep_first() -> None:
        nonlocal kept
        first = waiting[0] if waiting else None
        if first != kept:
            await log.store.write(lambda connection: pruning.put_wait(connection, first))
            kept = first

    async def once() -> float:
        nonlocal kept, is_begun
        if not is_begun:
            kept = await log.store.read(pruning.wait)
            if kept is not None:
                waiting.insert(0, kept)
            elif not any(erasure.seq <= waiting[0][1] for erasure in await _erasures(log.store)):
                del waiting[0]
            is_begun = True
        now = log.clock()
        # The clock may have been set back.
        waiting[:] = [(min(heard_at, now), seq) for heard_at, seq in waiting]
        due = [seq for heard_at, seq in waiting if heard_at + delay <= now]
        if due:
            await erased_once(log.store, max(due))
            del waiting[: len(due)]
        await keep_first()
        return waiting[0][0] + delay - log.clock() if waiting else PRUNING_PERIOD_SECONDS

    job = Job(
        "erasures", once, round_seconds=PRUNING_ROUND_SECONDS, first_seconds=PRUNING_FIRST_SECONDS
    )

    def follow(entries: Sequence[Entry]) -> None:
        for entry in entries:
            if isinstance(entry.change, UserChanged) and entry.change.values.get("is_deleted"):
                waiting.append((log.clock(), entry.seq))
                job.want()

    def look_again() -> None:
        waiting.append((log.clock(), log.durable))
        job.want()

    log.subscribers.followers.append(follow)
    log.subscribers.on_history.append(look_again)  # This node may have missed entries.
    return job


async def pruned_once(store: Store, before: float) -> None:
    """Delete log entries from before that UNIX time, creating a checkpoint if needed."""
    until = await _newest_before(store, before)
    if until <= await store.read(log_entries.pruned):
        return
    await _require_checkpoint(store, until)
    await _forget(store, until)


async def erased_once(store: Store, last: float = math.inf) -> None:
    """Delete everything up to the last erasure in the log, up to that entry."""
    pending_erasures = [erasure for erasure in await _erasures(store) if erasure.seq <= last]
    if not pending_erasures:
        return
    until = pending_erasures[-1].seq
    await _require_checkpoint(store, until)
    addresses = {erasure.address for erasure in pending_erasures if erasure.address}
    user_ids = {erasure.user_id for erasure in pending_erasures}
    await store.write(lambda connection: outbox.drop(connection, addresses, user_ids))
    await store.write(lambda connection: notifications.forget_people(connection, user_ids))
    await store.write(_drop_ended_mails)
    await _erase_audit_log(store, user_ids, addresses)
    accounts = await store.read(queries.records_of, "users")
    for user_id in user_ids:
        bots = [
            account.id for account in accounts if account.bot and account.bot.owner_id == user_id
        ]
        await _in_parts(partial(store.write, partial(_erase_rows, user_id, bots)))
    await store.maintain(store.database.delete_copies)
    await _forget(store, until)
    logger.info(
        "forgot what a deleted account had left in the log", extra={"fields": {"to": until}}
    )


async def _erase_audit_log(
    store: Store, user_ids: Collection[int], addresses: Collection[str]
) -> None:
    after: int | None = 0
    while after is not None:
        after = await store.write(
            partial(audit_records.erase, user_ids=user_ids, addresses=addresses, after=after)
        )


def _drop_ended_mails(connection: Connection) -> None:
    """Delete emails to addresses that the person invited, or wanted to change to."""
    invitations = queries.records_of(connection, "invitations")
    is_open = {
        invitation.id for invitation in invitations if invitation.status is InvitationStatus.OPEN
    }
    confirmations = {value.id for value in queries.records_of(connection, "confirmations")}
    outbox.drop_ended(connection, is_open, confirmations)


def _erase_rows(user_id: int, bot_ids: Sequence[int], connection: Connection) -> bool:
    return personal_data.erase_rows(connection, user_id, bot_ids)


async def _newest_before(store: Store, before: float) -> int:
    """Return the last entry before which all entries are older than that UNIX time."""
    after, head = await store.read(_extent)
    while after < head:
        until = min(after + ENTRIES_READ, head)
        young = await store.read(pruning.first_since, before, after, until)
        if young is not None:
            return young - 1
        after = until
    return head


async def _erasures(store: Store) -> list[PendingErasure]:
    """Return the erasures in the log, in order."""
    pending_erasures: list[PendingErasure] = []
    after, head = await store.read(_extent)
    while after < head:
        until = min(after + ENTRIES_READ, head)
        pending_erasures += await store.read(pruning.erasures, after, until)
        after = until
    return pending_erasures


def _extent(connection: Connection) -> tuple[int, int]:
    return log_entries.pruned(connection), log_entries.head(connection)


async def _require_checkpoint(store: Store, until: int) -> None:
    """Create a checkpoint at that entry or later. If canceled, stop creating it."""
    is_over = threading.Event()
    try:
        await store.maintain(
            pruning.make_checkpoint, store.database, lambda: not is_over.is_set(), until=until
        )
    finally:
        is_over.set()


async def _forget(store: Store, until: int) -> None:
    await _in_parts(lambda: store.write(lambda c: pruning.prune(c, until, BATCH_SIZE)))
    await _in_parts(lambda: store.maintain(store.database.give_back_space))


async def _in_parts(step: Callable[[], Awaitable[bool]]) -> None:
    """Repeat the step until it returns False. Pause after each step for as long as it took, so that
    others can write: waiting for an SQLite file means polling."""
    while True:
        began = time.monotonic()
        if not await step():
            return
        await asyncio.sleep(time.monotonic() - began)
