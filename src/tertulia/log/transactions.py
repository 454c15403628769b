"""The writer's transactions, and what is done when the database is lost in one."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from tertulia.log.errors import described
from tertulia.log.freshness import Freshness
from tertulia.log.measures import Measures
from tertulia.store.database import CommitUnknown, ConnectionLost, DatabaseUnavailable
from tertulia.store.installation import Head, HistoryChanged, HistoryPruned, NewerDatabase, Position
from tertulia.store.log_entries import LogTail
from tertulia.store.notes import Probe
from tertulia.store.store import Store
from tertulia.store.writing import Batch

logger = logging.getLogger("tertulia.log")

RETRY_SECONDS: Final = 0.5
"""Between two attempts while the database is away."""


class NotBegun(Exception):
    """The database lets nothing be written. Nothing was decided, and the state is as true as
    before."""


class OutcomeNotKnown(Exception):
    """Whether it was committed cannot be known."""


class Transactions:
    """One node's transactions on the log. Used by its writer alone, one at a time."""

    def __init__(self, store: Store, freshness: Freshness, measures: Measures) -> None:
        self._store = store
        self._freshness = freshness
        self._measures = measures
        self.is_closing = False
        """Whether nothing is waited for any more."""

    async def begin(self, position: Callable[[], Position]) -> LogTail:
        """Keep other writers out, and return what they wrote since the position, which may go on
        while they are waited for. If the connection was lost, this is tried once more on a new one.
        Raises NotBegun if that fails too, or if the database can't be reached or doesn't answer in
        time; HistoryChanged, HistoryPruned and NewerDatabase. `abandon` must follow whatever fails
        between this and `commit`."""
        try:
            return await self._begin_or_retry(position)
        except (NewerDatabase, HistoryChanged, HistoryPruned):
            raise
        except Exception as error:
            self._measures.failed += 1
            await self.abandon()
            raise NotBegun from error

    async def _begin_or_retry(self, position: Callable[[], Position]) -> LogTail:
        try:
            return await self._store.begin(position(), position)
        except (NewerDatabase, HistoryChanged, HistoryPruned):
            raise
        except Exception as error:
            if isinstance(error, DatabaseUnavailable) and not isinstance(error, ConnectionLost):
                raise  # Another try would take as long again.
            logger.warning("the database was lost, and is asked again: %s", described(error))
            self._measures.retried += 1
            await self.abandon()
        return await self._store.begin(position(), position)

    async def commit(self, batch: Batch, before: Head) -> None:
        """Write the batch, begun at that head. It is on disk when this returns, and certainly not
        when this raises anything but OutcomeNotKnown. Where the connection is lost in between, the
        batch is looked up as soon as the database answers, however long that takes."""
        try:
            await self._store.commit(batch, before.position)
        except Exception as error:
            self._freshness.write_trouble = described(error)
            self._measures.failed += 1
            if isinstance(error, DatabaseUnavailable) and not isinstance(error, CommitUnknown):
                raise
            if not await self._was_committed(batch, before, error):
                raise
            logger.warning("the database was lost, but has what was being written")
        self._freshness.written()

    async def _was_committed(self, batch: Batch, before: Head, error: Exception) -> bool:
        while True:
            try:
                await self._store.rollback()
                made = await self._store.was_committed(batch, before)
                break
            except Exception as again:  # The database may come back: until then, wait.
                logger.warning("it is not known yet what was committed: %s", described(again))
                if self.is_closing:
                    raise OutcomeNotKnown from error
                await asyncio.sleep(RETRY_SECONDS)
        if made is None:
            raise OutcomeNotKnown from error
        return made

    async def prove(self, position: Callable[[], Position]) -> LogTail:
        """Commit an empty batch, where the last commit failed: so that no command decides in vain,
        after which the whole state would have to be loaded again. As `begin`, and NotBegun if the
        commit fails."""
        growth = await self.begin(position)
        try:
            await self._store.commit(Batch([], {}, (Probe(),)))
        except Exception as error:
            await self.abandon()
            raise NotBegun from error
        logger.warning("the database can be written again")
        self._freshness.written()
        return growth

    async def abandon(self) -> None:
        """End the transaction without a trace."""
        try:
            await self._store.rollback()
        except Exception:  # The connection is gone in any case.
            logger.exception("a transaction could not be ended")

    def failed(self, error: BaseException) -> None:
        """Note that nothing can be written at present."""
        if not self._freshness.write_trouble:
            logger.error("nothing can be written: %s", described(error))
        self._freshness.write_trouble = described(error)
