"""Whether what the state shows is on disk: it runs ahead of the disk by at most one group."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from tertulia.log.errors import not_done_error
from tertulia.log.requests import BEGIN_SECONDS
from tertulia.model.errors import Unavailable

RELOAD_WAIT_SECONDS: Final = 5.0
"""How long a request that only reads waits for a state that is loaded again."""


class Durability:
    """How the state and the disk stand to each other. The writer says it, answers wait for it."""

    def __init__(self) -> None:
        self.generation = 0
        """How many times the state had to be thrown away."""
        self._settling: asyncio.Future[None] | None = None
        """Is done when it is known whether the state is on disk; None where it is."""
        self._since = 0.0
        self._loaded = asyncio.Event()
        """Not set while the state is thrown away and not yet loaded again."""
        self._loaded.set()

    # For the writer

    def begin(self) -> None:
        """From now on the state is ahead of the disk."""
        self._settling = asyncio.get_running_loop().create_future()
        self._since = time.monotonic()

    def succeed(self) -> None:
        """What the state shows is on disk."""
        if self._settling is not None and not self._settling.done():
            self._settling.set_result(None)
        self._settling = None

    def fail(self) -> None:
        """What the state shows will not be on disk: it is thrown away. Until `restore`, whoever
        waits for it is refused at once."""
        self.generation += 1
        self._loaded.clear()
        if self._settling is None:
            self.begin()
        self._refuse()

    def restore(self) -> None:
        """The state is loaded again."""
        self._settling = None
        self._loaded.set()

    def expire(self) -> None:
        """Refuse those who wait for longer than `BEGIN_SECONDS`."""
        if self._settling is not None and time.monotonic() - self._since > BEGIN_SECONDS:
            self._refuse()

    def _refuse(self) -> None:
        settling = self._settling
        if settling is not None and not settling.done():
            settling.set_exception(not_done_error())
            settling.exception()  # It is no mistake if nobody waits for it.

    # For answers

    async def settled(self, since: int | None = None) -> None:
        """See `Log.settled`."""
        if self._settling is not None:
            await asyncio.shield(self._settling)
        if since is not None and since != self.generation:
            raise Unavailable("The server had to reload its data. Try again.")

    def when_settled(self, report: Callable[[Exception | None], None]) -> None:
        """See `Log.when_settled`."""
        if self._settling is None:
            report(None)
            return
        self._settling.add_done_callback(
            lambda settled: report(not_done_error() if settled.exception() else None)
        )

    async def was_reloaded(self, since: int) -> bool:
        """See `Log.was_reloaded`."""
        if self.generation == since:
            return False
        try:
            async with asyncio.timeout(RELOAD_WAIT_SECONDS):
                await self._loaded.wait()
        except TimeoutError:
            return False
        return True
