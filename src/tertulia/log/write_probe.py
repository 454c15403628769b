"""Whether something can be written just now: the writer tries it, where it has not written of
late."""

import asyncio
import time
from typing import Final

from tertulia.log.freshness import Freshness
from tertulia.log.inbox import Inbox

PROOF_SECONDS: Final = 10.0
"""What was written so lately proves that it can be."""
PROOF_WAIT_SECONDS: Final = 2.0
"""How long a caller waits for the writer to try."""


class WriteProbe:
    """One attempt for all who ask at the same time."""

    def __init__(self, inbox: Inbox, freshness: Freshness) -> None:
        self._inbox = inbox
        self._freshness = freshness
        self._done: asyncio.Future[None] | None = None

    async def is_answered(self) -> bool:
        """Whether `Freshness` says how it is: at once where something was written of late, else
        when the writer has tried. False where it did not within `PROOF_WAIT_SECONDS`."""
        if time.monotonic() - self._freshness.written_at <= PROOF_SECONDS:
            return True
        if self._done is None:
            self._done = asyncio.get_running_loop().create_future()
        self._inbox.add_probe()
        done, _ = await asyncio.wait([self._done], timeout=PROOF_WAIT_SECONDS)
        return bool(done)

    def finish(self) -> None:
        """The writer has tried."""
        if self._done is not None:
            self._done.set_result(None)
            self._done = None
