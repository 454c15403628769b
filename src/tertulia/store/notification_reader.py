"""Reading a database connection's notifications on the event loop."""

import asyncio
from collections.abc import Callable
from typing import Final

DEFER_SECONDS: Final = 0.1
"""How long what comes may lie unread where nobody waits for it."""


class NotificationReader:
    """Reads one connection on the event loop. Used on the loop alone."""

    def __init__(self, is_awaited: Callable[[], bool]) -> None:
        """`is_awaited` says whether somebody waits for what may come. Who begins to wait says so
        (`listen`)."""
        self.loop = asyncio.get_running_loop()
        self._is_awaited = is_awaited
        self._descriptor: int | None = None
        self._read: Callable[[], bool] = lambda: False
        self._again: asyncio.TimerHandle | None = None
        """Set while nothing is read: then it is again."""

    def attach(self, descriptor: int, read: Callable[[], bool]) -> None:
        """Call `read` when there may be something at the descriptor. It does not block, and returns
        whether the connection is still to be read; from False on nothing is."""
        self._descriptor, self._read = descriptor, read
        self.loop.add_reader(descriptor, self._readable)

    def detach(self) -> None:
        """The descriptor is not this one's any more."""
        if self._descriptor is None:
            return
        self._listen_later(None)
        self.loop.remove_reader(self._descriptor)
        self._descriptor = None

    def listen(self) -> None:
        """Somebody begins to wait: read what has come, and what comes, soon."""
        if self._again is not None and self._descriptor is not None:
            self._listen_later(None)
            self.loop.add_reader(self._descriptor, self._readable)

    def gathered(self) -> None:
        """Read what has come while nobody waited."""
        if self._again is not None:
            self.now()

    def now(self) -> None:
        """Read what has come at once."""
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
