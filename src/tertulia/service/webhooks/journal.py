"""The recent outcomes of webhooks, for owners of bots. Lines are collected in memory and written
together, so that a webhook needs no extra transaction. If a node is killed, the unwritten lines are
lost."""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from tertulia.model.webhooks import WebhookLogEntry
from tertulia.store import webhooks
from tertulia.store.database import Connection
from tertulia.store.store import Store
from tertulia.store.webhooks import MAX_JOURNAL

MAX_BOTS: Final = 1000
"""The most bots with unwritten lines. Beyond this, the lines of the bot that has waited longest are
dropped."""
INTERNAL_ERROR: Final = "An internal error occurred. The server's log has the details."
"""The reason of an outcome that a bug caused."""


class Journal:
    """The journal of one node."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, deque[WebhookLogEntry]] = OrderedDict()
        self._writing = asyncio.Lock()
        self.wanted: Callable[[], None] = lambda: None
        """Called when there are lines to write."""

    def note(self, bot_id: int, line: WebhookLogEntry) -> None:
        self._waiting.setdefault(bot_id, deque(maxlen=MAX_JOURNAL)).append(line)
        while len(self._waiting) > MAX_BOTS:
            self._waiting.popitem(last=False)
        self.wanted()

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    async def write(self, store: Store) -> None:
        """Write the collected lines; keep them if that fails."""
        async with self._writing:
            lines, self._waiting = self._waiting, OrderedDict()
            if not lines:
                return

            # A transaction may continue although nobody waits for it anymore. It writes the lines
            # only if it takes them before they're kept.
            taken = threading.Lock()

            def write(connection: Connection) -> None:
                if taken.acquire(blocking=False):
                    for bot_id, entries in lines.items():
                        webhooks.write_journal(connection, bot_id, entries)

            try:
                await store.write(write)
            except BaseException as error:
                is_canceled = isinstance(error, asyncio.CancelledError)
                if is_canceled and not taken.acquire(blocking=False):
                    raise
                for bot_id, entries in self._waiting.items():
                    lines.setdefault(bot_id, deque(maxlen=MAX_JOURNAL)).extend(entries)
                self._waiting = lines
                raise

    async def of(self, store: Store, bot_id: int) -> list[WebhookLogEntry]:
        """Return the bot's journal, newest line first."""
        await self.write(store)
        return await store.read(webhooks.journal, bot_id)
