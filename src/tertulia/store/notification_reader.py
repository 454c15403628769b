"""Reading a database connection's notifications on the event loop."""

import asyncio
from collections.abc import Callable
from typing import Final

DEFER_SECONDS: Final = 0.1
"""The number of seconds for which notifications may stay unread while nobody waits for them."""


class NotificationReader:
    """Reads one connection's notifications. Used on the event loop."""

    def __init__(self, is_awaited: Callable[[], bool]) -> None:
        """Create a reader. `is_awaited` returns whether anyone waits for notifications. Call
        `listen` when that starts."""
        self.loop = asyncio.get_running_loop()
        self._is_awaited = is_awaited
        self._descriptor: int | None = None
        self._read: Callable[[], bool] = lambda: False
        self._again: asyncio.TimerHandle | None = None
        """The timer that resumes reading; None unless reading is paused."""

    def attach(self, descriptor: int, read: Callable[[], bool]) -> None:
        """Call `read` when the descriptor is readable. It must not block, and returns False to stop
        reading."""
        self._descriptor, self._read = descriptor, read
        self.loop.add_reader(descriptor, self._readable)

    def detach(self) -> None:
        """Stop reading the descriptor."""
        if self._descriptor is None:
            return
        self._listen_later(None)
        self.loop.remove_reader(self._descriptor)
        self._descriptor = None

    def listen(self) -> None:
        """Resume reading soon, because someone waits now."""
        if self._again is not None and self._descriptor is not None:
            self._listen_later(None)
            self.loop.add_reader(self._descriptor, self._readable)

    def gathered(self) -> None:
        """Read notifications that arrived while reading was paused."""
        if self._again is not None:
            self.now()

    def now(self) -> None:
        """Read notifications that have arrived."""
        if self._descriptor is not None and not self._read():
            self.detach()

    def _readable(self) -> None:
        if not self._read():
            self.detach()
        elif self._again is None and self._descriptor is not None and not self._is_awaited():
            self.loop.remove_reader(self._descriptor)
            self._listen_later(self.loop.call_later(DEFER_SECONDS, self.listen))

    def _listen_later(self, again: asyncio.TimerHandle | None) -> None:
        if self._again is not None:
            self._again.cancel()
        self._again = again
