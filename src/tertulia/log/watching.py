"""Looking at the log's end now and then, whatever other nodes say or do not say of it."""

import asyncio
import logging
import time
from collections.abc import Callable

from tertulia.log.bookmark import Bookmark
from tertulia.log.freshness import LOOK_SECONDS, Freshness, described
from tertulia.store.database import DatabaseReplaced
from tertulia.store.history import NewerDatabase, Position
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.log")


class Watch:
    """Sees whether a node's state is true, and says when it is not known any more."""

    def __init__(
        self,
        store: Store,
        freshness: Freshness,
        bookmark: Bookmark | None,
        position: Callable[[], Position],
        grown: Callable[[], None],
    ) -> None:
        """`position` is where the node is; `grown` is called when the log is elsewhere."""
        self.on_stale: list[Callable[[], None]] = []
        self._store = store
        self._freshness = freshness
        self._bookmark = bookmark
        self._position = position
        self._grown = grown
        self._looked_at = time.monotonic()
        self._look: asyncio.Task[None] | None = None
        self._is_stale = False

    def beat(self) -> None:
        """Begin to look where it is time, and one is not at it. To be called every second."""
        now = time.monotonic()
        is_free = self._look is None or self._look.done()
        if is_free and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._look = asyncio.create_task(self.look(), name="log-look")
        was_stale, self._is_stale = self._is_stale, self._freshness.is_stale
        if self._is_stale and not was_stale:
            logger.error(
                "the node cannot see whether it is up to date, and answers nothing: %s",
                self._freshness.look_trouble or "it heard nothing",
            )
            for callback in self.on_stale:
                callback()
        elif was_stale and not self._is_stale:
            logger.warning("the node is up to date again")

    async def look(self) -> None:
        """See whether the log goes on from where this node is."""
        began, known = time.monotonic(), self._position()
        try:
            head = await self._store.look()
        except NewerDatabase:
            self._grown()  # The writer meets it too.
            return
        except DatabaseReplaced as error:
            self._freshness.doubted(str(error))
            return
        except Exception as error:  # It is looked again soon; how long it fails counts.
            self._freshness.look_trouble = described(error)
            return
        if head.position == known:
            self._freshness.verified(began)
        elif head.position != self._position():
            self._grown()
        if self._bookmark is not None:
            await asyncio.to_thread(self._bookmark.write, self._position())

    async def close(self) -> None:
        """Look no more, and write down where the node is."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])
        if self._bookmark is not None:
            self._bookmark.write(self._position())
