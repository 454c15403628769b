"""What follows a failure after which the state does not show what is on disk."""

import asyncio
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tertulia.log.commits import Durability
from tertulia.log.errors import described, not_done_error
from tertulia.log.freshness import Freshness
from tertulia.log.replica import Replica, Subscribers
from tertulia.log.requests import Inbox, Request
from tertulia.log.transactions import RETRY_SECONDS, Transactions
from tertulia.store import file_modes
from tertulia.store.installation import NewerDatabase, Position
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


FILE = "position"


class PositionFile:
    """The file. It may be some seconds behind the log, and is never ahead of it. Several nodes may
    have the same."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._written: Position | None = None

    def read(self) -> Position | None:
        """The position that was written last; None where there is none that can be read."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Position)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError):
            logger.warning("%s cannot be read, and is written anew", self._path)
            return None

    def write(self, position: Position) -> None:
        """Write the position, unless the file has it, or a later one that another node has seen. A
        failure is logged, and no reason to stop."""
        if position == self._written:
            return
        there = self.read()
        if there and there.history == position.history and there.seq > position.seq:
            return
        partial = self._path.with_name(f"{FILE}.{os.getpid()}.partial")
        try:
            file_modes.touch(partial)
            partial.write_bytes(msgspec.json.encode(position))
            partial.replace(self._path)
        except OSError as error:
            logger.warning("%s cannot be written: %s", self._path, error.strerror)
        else:
            self._written = position
