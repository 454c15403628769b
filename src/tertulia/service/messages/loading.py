"""Loading what readers have done with messages into the state (`state.unread`), so that those who
ask for messages again are answered without the database."""

import asyncio
import contextlib
from typing import Final

from tertulia.log.log import Log
from tertulia.model.errors import Unavailable
from tertulia.state.organization import State
from tertulia.state.unread import Reader
from tertulia.store import queries

AT_ONCE: Final = 4
"""Readers that are loaded at the same time; others have their turn when they ask again."""


class ReaderLoads:
    """Those that are under way at one node."""

    def __init__(self) -> None:
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def want(self, log: Log, user_id: int) -> None:
        """Have the reader loaded. Nobody waits for it: it is the log's turn that decides when."""
        if user_id in self._tasks or len(self._tasks) >= AT_ONCE:
            return
        task = asyncio.create_task(_load(log, user_id), name="load-reader")
        self._tasks[user_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(user_id, None))

    async def close(self) -> None:
        """End them."""
        left = list(self._tasks.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _load(log: Log, user_id: int) -> None:
    def install(state: State, found: queries.Marked) -> None:
        if user_id not in state.unread.readers:
            state.unread.add_reader(user_id, Reader(*found))

    with contextlib.suppress(Unavailable):
        await log.snapshot(None, lambda c: queries.reader(c, user_id), install)
