"""Jobs that act at a given time: scheduled messages, reminders, ends of sessions, and others."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

from tertulia.domain.messages import scheduled
from tertulia.jobs.supervisor import FailedItems, Job, is_outage
from tertulia.log.log import Log
from tertulia.model.changes import Entry
from tertulia.model.channels import topic_key
from tertulia.model.edits import TopicMove
from tertulia.model.errors import Conflict, Refused
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.service.messages.deleting import expire_messages
from tertulia.service.messages.editing import finish_move
from tertulia.service.messages.scheduled import (
    deliver_reminder,
    send_scheduled,
)
from tertulia.service.node import Node
from tertulia.state.decision import Verb
from tertulia.state.state import State

logger = logging.getLogger("tertulia.jobs")

R = TypeVar("R")

LONGEST_SLEEP: Final = 60.0
"""The longest sleep in seconds, because the machine's clock may jump."""
RETRY_SECONDS: Final = 5.0
"""The pause in seconds after a verb that changed nothing although something was due."""
SOON_SECONDS: Final = 0.02
"""The pause in seconds after a commit, to check once for many commits."""
BATCH_SIZE: Final = 200
"""The most items per round."""
ATTEMPTS: Final = 5
"""The number of attempts after which an item is given up."""


def due_job(
    log: Log,
    name: str,
    due: Callable[[State, float], float | None],
    verb: Verb[Any],
    *arguments: Any,
) -> Job:
    """Return a job that submits a verb, as the server, whenever something is due.

    `due` returns when, in UNIX seconds, or None. It's called soon after every commit, so it must be
    cheap. The verb handles what is due; it may leave a part for the next round, which follows
    immediately.
    """

    async def once() -> float:
        for _ in range(BATCH_SIZE):
            pause = _pause(log, due)
            if pause > 0:
                return pause
            seq = log.state.seq
            await log.submit(None, verb, *arguments)
            if log.state.seq == seq:
                return RETRY_SECONDS
        return 0.0

    return _following(log, Job(name, once), due)


@dataclass(frozen=True)
class DueItems(Generic[R]):
    """Records that are due at a time."""

    in_order: Callable[[State], Iterable[R]]
    """Returns all records in chronological order."""
    time: Callable[[R], float]
    """Returns when a record is due, in UNIX seconds."""
    key: Callable[[R], int]
    do: Callable[[R], Awaitable[None]]
    """Processes a record: reads and renders the necessary data, and submits the verb, which must
    check that the record is unchanged."""
    give_up: Callable[[R, str], Awaitable[None]]
    """Handles a record that can't be processed, for this reason."""


def due_items_job(log: Log, name: str, items: DueItems[R]) -> Job:
    """Return a job that processes each record when it's due. Failing records are set aside and
    finally given up, without delaying others."""
    set_aside = FailedItems()

    def first() -> R | None:
        waiting = items.in_order(log.state)
        return next((item for item in waiting if not set_aside.is_resting(items.key(item))), None)

    def due(_state: State, _now: float) -> float | None:
        item = first()
        return None if item is None else items.time(item)

    async def attempt(item: R) -> None:
        key = items.key(item)
        try:
            await items.do(item)
        except Exception as error:
            if is_outage(error):
                raise
            if isinstance(error, Refused) and not isinstance(error, Conflict):
                await items.give_up(item, str(error))
                set_aside.done(key)
                return
            logger.exception("could not process %s %d", name, key)
            if set_aside.failed(key, error) < ATTEMPTS:
                return
            await items.give_up(item, "The server couldn't prepare it.")
        set_aside.done(key)

    async def once() -> float:
        if not log.state.is_closed:
            set_aside.keep_only(map(items.key, items.in_order(log.state)))
        for _ in range(BATCH_SIZE):
            pause = _pause(log, due)
            if pause > 0:
                again = set_aside.next_attempt()
                return pause if again is None else min(pause, again)
            item = first()
            if item is None:
                break
            seq = log.state.seq
            await attempt(item)
            if log.state.seq == seq and not set_aside.is_resting(items.key(item)):
                return RETRY_SECONDS
        return 0.0

    return _following(log, Job(name, once, set_aside=set_aside), due)


def _pause(log: Log, due: Callable[[State, float], float | None]) -> float:
    """Return the seconds until something is due; 0 or less if it is."""
    if log.state.is_closed:
        return LONGEST_SLEEP
    now = log.clock()
    soonest = due(log.state, now)
    return LONGEST_SLEEP if soonest is None else min(soonest - now, LONGEST_SLEEP)


def _following(log: Log, job: Job, due: Callable[[State, float], float | None]) -> Job:
    """Return the job, which is woken soon after commits that change when something is due, and
    after every commit while an item is set aside."""
    last: float | None = None
    is_awaited = False

    def grown(_: Sequence[Entry]) -> None:
        nonlocal is_awaited
        if not is_awaited:
            is_awaited = True
            asyncio.get_running_loop().call_later(SOON_SECONDS, look)

    def look() -> None:
        nonlocal last, is_awaited
        is_awaited = False
        soonest = None if log.state.is_closed else due(log.state, log.clock())
        if soonest != last or job.set_aside.next_attempt() is not None:
            last = soonest
            job.want()

    log.subscribers.followers.append(grown)
    log.subscribers.on_reload.append(job.want)
    return job


def _unless_moving(state: State, records: Iterable[R]) -> Iterable[R]:
    """Yield the records, but none while the organization is being moved here: the other server
    sends them."""
    return () if state.realm.moving_from else records


def messages_to_send(node: Node) -> Job:
    """Return the job that sends scheduled messages."""
    waiting: DueItems[ScheduledMessage] = DueItems(
        in_order=lambda state: _unless_moving(state, state.scheduled_messages.by_time),
        time=lambda message: message.deliver_at,
        key=lambda message: message.id,
        do=partial(send_scheduled, node),
        give_up=partial(node.log.submit, None, scheduled.give_up, node.renderer.render),
    )
    return due_items_job(node.log, "scheduled messages", waiting)


def messages_to_be_reminded_of(node: Node) -> Job:
    """Return the job that sends reminders."""

    async def give_up(reminder: Reminder, _reason: str) -> None:
        await node.log.submit(None, scheduled.give_up_reminder, node.renderer.render, reminder)

    waiting: DueItems[Reminder] = DueItems(
        in_order=lambda state: _unless_moving(state, state.reminders.by_time),
        time=lambda reminder: reminder.deliver_at,
        key=lambda reminder: reminder.id,
        do=partial(deliver_reminder, node),
        give_up=give_up,
    )
    return due_items_job(node.log, "reminders", waiting)


moves_logger = logging.getLogger("tertulia.topic_moves")

TOPIC_MOVES_PERIOD_SECONDS: Final = 15.0


def topic_moves(node: Node) -> Job:
    """Return the job that continues moves that made no progress between two rounds. A move that
    fails is set aside."""
    seen: dict[int, tuple[TopicMove, int]] = {}
    set_aside = FailedItems()

    async def once() -> float:
        before = dict(seen)
        seen.clear()
        set_aside.keep_only(move.id for move in node.state.topic_moves)
        for move in list(node.state.topic_moves):
            topic = node.state.topics.get((move.channel_id, topic_key(move.topic)))
            left = 0 if topic is None else topic.message_count
            was, was_left = before.get(move.id, (move, left + 1))
            if was != move or left < was_left or set_aside.is_resting(move.id):
                seen[move.id] = (move, left)
                continue
            try:
                await finish_move(node, move.id)
            except Exception as error:
                if is_outage(error):
                    raise
                moves_logger.exception("could not finish move %s of a topic", move.id)
                set_aside.failed(move.id, error)
            else:
                set_aside.done(move.id)
        return TOPIC_MOVES_PERIOD_SECONDS

    return Job("moves of topics", once, set_aside=set_aside)


retention_logger = logging.getLogger("tertulia.retention")

RETENTION_PERIOD_SECONDS: Final = 3600.0
DIRECT: Final = 0
"""Means direct messages, in place of a channel ID."""


def message_retention(log: Log) -> Job:
    """Return the job that deletes expired messages every hour."""
    set_aside = FailedItems()

    async def once() -> float:
        await expired_once(log, set_aside)
        return RETENTION_PERIOD_SECONDS

    return Job("retention", once, set_aside=set_aside)


async def expired_once(log: Log, set_aside: FailedItems | None = None) -> None:
    """Delete expired messages. Channels that fail are set aside."""
    for channel_id in [None, *(channel.id for channel in log.state.channels)]:
        key = f"channel {channel_id or DIRECT}"
        if set_aside is not None and set_aside.is_resting(key):
            continue
        try:
            await expire_messages(log, channel_id)
        except Exception as error:
            if set_aside is None or is_outage(error):
                raise
            retention_logger.exception(
                "could not delete expired messages of channel %s", channel_id
            )
            set_aside.failed(key, error)
        else:
            if set_aside is not None:
                set_aside.done(key)
