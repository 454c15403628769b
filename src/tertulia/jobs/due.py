"""Jobs for what becomes due at a time.

The state says what is due and when, and the verb that does it looks at the state once more. So it
is done once, by whichever node comes first; and what was due while no server ran is done at the
next start.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from tertulia.jobs.supervisor import FailedItems, Job, is_outage
from tertulia.log.log import Log
from tertulia.model.changes import Entry
from tertulia.model.errors import Conflict, Refused
from tertulia.state.decision import Verb
from tertulia.state.state import State

logger = logging.getLogger("tertulia.jobs")

R = TypeVar("R")

LONGEST_SLEEP: Final = 60.0
"""Seconds: after so long it looks again, whatever the state said (the machine's clock may jump)."""
RETRY_SECONDS: Final = 5.0
"""After a verb that left things as they are, though something was due."""
SOON_SECONDS: Final = 0.02
"""After a commit it looks again, and so once for all that are committed meanwhile."""
AT_ONCE: Final = 200
"""Pieces of one kind that are done in one round."""
ATTEMPTS: Final = 5
"""So often an item is tried; then it is given up."""


def due_job(
    log: Log,
    name: str,
    due: Callable[[State, float], float | None],
    verb: Verb[Any],
    *arguments: Any,
) -> Job:
    """A job that lets the verb decide, as the server itself, whenever something is due.

    `due` says when that is, in UNIX seconds, as of now; None where nothing waits. It is asked soon
    after every commit, and must cost next to nothing. The verb does what is due by then; it may
    leave a part for the next turn, which follows at once.
    """

    async def once() -> float:
        for _ in range(AT_ONCE):
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
    """Records of the state, each of which has its time."""

    in_order: Callable[[State], Iterable[R]]
    """All of them, the one that is due first at the beginning."""
    time: Callable[[R], float]
    """When it is due, in UNIX seconds."""
    key: Callable[[R], int]
    do: Callable[[R], Awaitable[None]]
    """Reads and renders what is needed, and submits the verb that does it, which must see for
    itself whether what was looked at is still so."""
    give_up: Callable[[R, str], Awaitable[None]]
    """Submits what takes its place when it cannot be done, for this reason."""


def due_items_job(log: Log, name: str, items: DueItems[R]) -> Job:
    """A job that does each of these when its time has come. One that fails is set aside, and given
    up in the end; the others do not wait for it."""
    set_aside = FailedItems()

    def first() -> R | None:
        waiting = items.in_order(log.state)
        return next((one for one in waiting if not set_aside.is_resting(items.key(one))), None)

    def due(_state: State, _now: float) -> float | None:
        one = first()
        return None if one is None else items.time(one)

    async def attempt(one: R) -> None:
        key = items.key(one)
        try:
            await items.do(one)
        except Exception as error:
            if is_outage(error):
                raise
            if isinstance(error, Refused) and not isinstance(error, Conflict):
                await items.give_up(one, str(error))
                set_aside.done(key)
                return
            logger.exception("%s: %d could not be done", name, key)
            if set_aside.failed(key, error) < ATTEMPTS:
                return
            await items.give_up(one, "The server could not prepare it.")
        set_aside.done(key)

    async def once() -> float:
        if not log.state.is_closed:
            set_aside.keep_only(map(items.key, items.in_order(log.state)))
        for _ in range(AT_ONCE):
            pause = _pause(log, due)
            if pause > 0:
                again = set_aside.next_attempt()
                return pause if again is None else min(pause, again)
            one = first()
            if one is None:
                break
            seq = log.state.seq
            await attempt(one)
            if log.state.seq == seq and not set_aside.is_resting(items.key(one)):
                return RETRY_SECONDS
        return 0.0

    return _following(log, Job(name, once, set_aside=set_aside), due)


def _pause(log: Log, due: Callable[[State, float], float | None]) -> float:
    """Seconds until something is due; not more than 0 where it is."""
    if log.state.is_closed:
        return LONGEST_SLEEP
    now = log.clock()
    soonest = due(log.state, now)
    return LONGEST_SLEEP if soonest is None else min(soonest - now, LONGEST_SLEEP)


def _following(log: Log, job: Job, due: Callable[[State, float], float | None]) -> Job:
    """The job, which looks again soon after each commit that changed when something is due, and
    after every one while something has failed."""
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

    log.follow(grown)
    log.on_reload(job.want)
    return job
