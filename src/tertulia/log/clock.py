"""What becomes due by itself, and is done when its time has come.

What is due is told by the state alone, and the verb that does it looks at the state once more: so
it is done once, by whichever node comes first, and what was due while no server ran is done when
one runs again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tertulia.log.writer import Log
from tertulia.model.changes import Entry
from tertulia.model.errors import Refused, Unavailable
from tertulia.state.moment import Verb
from tertulia.state.organization import State

logger = logging.getLogger("tertulia.log")

LONGEST_SLEEP = 60.0
"""Seconds: after so long it looks again, whatever the state said (the machine's clock may jump)."""
RETRY_SECONDS = 5.0
REST_SECONDS = 0.05
"""Between two looks: what many commits brought is looked at once."""


@dataclass(frozen=True)
class Due:
    """One kind of work that has its time."""

    next: Callable[[State, float], float | None]
    """When the next piece of it is due, in UNIX seconds, as of now; None where there is none. It is
    asked soon after every commit, and must cost next to nothing."""
    verb: Verb[Any]
    """Does what is due by then, as the server itself, and leaves the rest. It may leave a part
    for the next turn, which follows at once."""
    arguments: tuple[Any, ...] = ()
    prepare: Callable[[], Awaitable[Sequence[Any]]] | None = None
    """Reads and renders what the verb needs besides, when something is due: its further arguments.
    The verb decides later, and must see for itself whether what was looked at is still so. Empty
    where nothing is due after all."""


class Clock:
    """Does what is due."""

    def __init__(self, log: Log, work: Sequence[Due]) -> None:
        self._log = log
        self._work = work
        self._grown = asyncio.Event()

    def _follow(self, entries: Sequence[Entry]) -> None:
        self._grown.set()

    async def run(self) -> None:
        """Do what is due, whenever it is, until cancelled."""
        self._log.follow(self._follow)
        self._log.on_reload(self._grown.set)
        while True:
            self._grown.clear()
            try:
                await self.tick()
                pause = self._pause()
            except Exception:  # The server goes on, and it is tried again.
                logger.exception("what was due could not be done")
                await asyncio.sleep(RETRY_SECONDS)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._grown.wait()
                    await asyncio.sleep(REST_SECONDS)

    async def tick(self) -> None:
        """Do what is due now. It is on disk then, whoever did it."""
        for work in self._work:
            seq = -1
            while self._is_due(work) and self._log.state.seq != seq:
                seq = self._log.state.seq
                prepared: Sequence[Any] = ()
                if work.prepare is not None and not (prepared := await work.prepare()):
                    break
                try:
                    await self._log.submit(None, work.verb, *work.arguments, *prepared)
                except (Refused, Unavailable):
                    logger.exception("%s failed", work.verb)
                    break
        await self._log.settled()

    def _is_due(self, work: Due) -> bool:
        if self._log.state.is_closed:
            return False
        now = self._log.clock()
        due = work.next(self._log.state, now)
        return due is not None and due <= now

    def _pause(self) -> float:
        if self._log.state.is_closed:
            return LONGEST_SLEEP
        now = self._log.clock()
        times = [work.next(self._log.state, now) for work in self._work]
        soonest = min((time for time in times if time is not None), default=now + LONGEST_SLEEP)
        # What is still due could not be done just now.
        return min(soonest - now, LONGEST_SLEEP) if soonest > now else RETRY_SECONDS
