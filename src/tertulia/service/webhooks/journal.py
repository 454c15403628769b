"""What came of webhooks lately, for the owners of bots.

Lines are gathered in memory and written together, so that a webhook costs no transaction besides
that of its message. A node that is killed loses those of the last moment, and nothing else.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Final

from tertulia.model.webhooks import Delivered
from tertulia.store import webhooks
from tertulia.store.database import Connection
from tertulia.store.store import Store
from tertulia.store.webhooks import KEPT

MAX_BOTS: Final = 1000
"""Bots of which lines wait to be written; those of the one that waits longest are dropped."""

Lines = Sequence[tuple[int, Sequence[Delivered]]]


class Journal:
    """One node's."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, deque[Delivered]] = OrderedDict()
        self.wanted: Callable[[], None] = lambda: None
        """Called when there is something to be written."""

    def note(self, bot_id: int, line: Delivered) -> None:
        """Add a line to the bot's journal."""
        self._waiting.setdefault(bot_id, deque(maxlen=KEPT)).append(line)
        while len(self._waiting) > MAX_BOTS:
            self._waiting.popitem(last=False)
        self.wanted()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._waiting

    async def write(self, store: Store) -> None:
        """Write what waits. Where that fails, it still waits."""
        lines: Lines = [(bot_id, tuple(found)) for bot_id, found in self._waiting.items()]
        if not lines:
            return

        def write(connection: Connection) -> None:
            for bot_id, found in lines:
                webhooks.write_journal(connection, bot_id, found)

        await store.write(write)
        for bot_id, written in lines:
            left = self._waiting.get(bot_id)
            while left and left[0] in written:
                left.popleft()
            if not left:
                self._waiting.pop(bot_id, None)

    async def of(self, store: Store, bot_id: int) -> list[Delivered]:
        """The bot's journal, the newest line first."""
        await self.write(store)
        return await store.read(webhooks.journal, bot_id)
