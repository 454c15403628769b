"""What follows a failure after which the state does not show what is on disk."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from tertulia.log.durability import Durability
from tertulia.log.errors import described, not_done_error
from tertulia.log.freshness import Freshness
from tertulia.log.inbox import Inbox
from tertulia.log.replica import Replica
from tertulia.log.requests import Request
from tertulia.log.subscribers import Subscribers
from tertulia.log.transactions import RETRY_SECONDS, Transactions
from tertulia.store.history import NewerDatabase
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.log")


@dataclass(frozen=True)
class Recovery:
    """Loads the state again, or gives up. Used by the writer alone."""

    store: Store
    transactions: Transactions
    inbox: Inbox
    replica: Replica
    durability: Durability
    freshness: Freshness
    subscribers: Subscribers

    async def recover(self, answer: Exception, requests: Sequence[Request] = ()) -> bool:
        """Throw the state away, answer the requests, and load the state again, however long that
        takes. Returns whether there is a true state: not where the node stops, or must."""
        self.durability.fail()
        self.inbox.refuse(answer, requests)
        while True:
            try:
                with self.inbox.blocked():
                    await self.store.rollback()
                    is_other_history = await self.replica.reload()
                break
            except NewerDatabase as newer:
                await self.give_up(newer)
                return False
            except Exception as again:  # The database may come back: until then, wait.
                logger.warning("the state could not be loaded again: %s", described(again))
                if self.transactions.is_closing:
                    self.inbox.discard(not_done_error())
                    return False
                with self.inbox.blocked():
                    await asyncio.sleep(RETRY_SECONDS)
        self.durability.restore()
        self.subscribers.reloaded(is_other_history=is_other_history)
        return True

    async def give_up(self, error: NewerDatabase) -> None:
        """This program is too old for the database: it decides nothing any more."""
        if not self.freshness.newer:
            logger.error("this program is too old for the database: %s", error)
        self.freshness.newer = str(error)
        await self.transactions.abandon()
        self.inbox.discard(not_done_error())
        self.subscribers.newer(str(error))
