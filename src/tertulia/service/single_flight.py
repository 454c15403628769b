"""Work that several ask for at the same time, and that is done once for all of them."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from tertulia.model.errors import Unavailable


class SingleFlight:
    """Who asks first has the work done, for all who ask for the same meanwhile. It goes on when
    somebody who waits for it goes away."""

    def __init__(self, refusal: str) -> None:
        """`refusal` is the sentence for those who ask for too much."""
        self._refusal = refusal
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    async def do(
        self, key: Hashable, work: Callable[[], Coroutine[Any, Any, None]], most: int
    ) -> None:
        """Do the work, or wait until that is done which was begun under this key. Raises what it
        raises; Unavailable where `most` others are being done."""
        task = self._tasks.get(key)
        if task is None:
            if len(self._tasks) >= most:
                raise Unavailable(self._refusal)
            task = asyncio.create_task(work())
            self._tasks[key] = task
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        await asyncio.shield(task)
