"""Work that several callers ask for at the same time is done once for all of them."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from tertulia.model.errors import Unavailable


class SingleFlight:
    """Runs work once for all callers that ask for the same key while it runs.

    The work belongs to none of them. It continues when a caller is cancelled, and it runs in a
    context of its own, so that reads count for the server and traces don't mix."""

    def __init__(self, refusal: str) -> None:
        """`refusal` is the sentence where too much is being done."""
        self._refusal = refusal
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    async def do(
        self, key: Hashable, work: Callable[[], Coroutine[Any, Any, None]], most: int
    ) -> None:
        """Do the work, or wait for that which was begun under this key. Raises what the work
        raises; Unavailable where work under `most` keys is being done."""
        task = self._tasks.get(key)
        if task is None:
            if len(self._tasks) >= most:
                raise Unavailable(self._refusal)
            task = asyncio.create_task(work(), context=contextvars.Context())
            self._tasks[key] = task
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        await asyncio.shield(task)
