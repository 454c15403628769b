"""The single writer: one task that commits groups, follows other nodes and takes snapshots."""

import asyncio
import logging
import time

from tertulia.log.commits import Commits, FoldFailed
from tertulia.log.errors import described, not_done_error
from tertulia.log.freshness import Freshness, WriteProbe
from tertulia.log.recovery import Recovery
from tertulia.log.replica import Replica
from tertulia.log.requests import Group, Inbox
from tertulia.log.snapshots import Snapshots
from tertulia.log.transactions import OutcomeNotKnown, Transactions
from tertulia.model.errors import OutcomeUnknown
from tertulia.store.database import DatabaseError
from tertulia.store.installation import NewerDatabase

logger = logging.getLogger("tertulia.log")


class Writer:
    """The task. Nothing but what it calls changes the state."""

    def __init__(
        self,
        inbox: Inbox,
        replica: Replica,
        transactions: Transactions,
        commits: Commits,
        snapshots: Snapshots,
        recovery: Recovery,
        probe: WriteProbe,
        freshness: Freshness,
    ) -> None:
        self._inbox = inbox
        self._replica = replica
        self._transactions = transactions
        self._commits = commits
        self._snapshots = snapshots
        self._recovery = recovery
        self._probe = probe
        self._freshness = freshness
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to work. The replica must be open."""
        self._task = asyncio.create_task(self._work(), name="log-writer")

    async def close(self) -> None:
        """Finish what waits, then stop."""
        self._closing = self._transactions.is_closing = True
        self._inbox.wake()
        if self._task is not None:
            await self._task

    async def _work(self) -> None:
        while True:
            with self._replica.hearing() as is_all:
                if not is_all:
                    self._inbox.add_growth()
                await self._inbox.wait()
            while self._inbox:
                self._freshness.busy_since = time.monotonic()
                await self._round()
                self._inbox.finish()
            self._freshness.busy_since = None
            if self._closing:
                return

    async def _round(self) -> None:
        """Take what waits and carry it out, and recover where that failed."""
        group = self._inbox.take()
        try:
            await self._carry_out(group)
        except FoldFailed as error:
            # Nothing was written: the others have their turn once more.
            logger.exception("a command of %s made no sense", error.command.verb)
            if not error.command.answer.done():
                error.command.answer.set_exception(error.__cause__ or error)
            self._inbox.keep_notes(group)
            if await self._recovery.recover(not_done_error()):
                self._inbox.give_back(group)
        except NewerDatabase as error:
            await self._recovery.give_up(error)
        except Exception as error:  # Whatever failed, nothing of the group is true.
            if isinstance(error, DatabaseError):  # It is no mistake of ours.
                logger.error("the log could not be written: %s", described(error))
            else:
                logger.exception("the log could not be written")
            self._inbox.keep_notes(group)
            is_unknown = isinstance(error, OutcomeNotKnown)
            answer = OutcomeUnknown() if is_unknown else not_done_error()
            await self._recovery.recover(answer, group.requests)
        finally:
            if group.has_probe:
                self._probe.finish()

    async def _carry_out(self, group: Group) -> None:
        if group.needs_commit:
            await self._commits.commit(group)
        elif self._inbox.has_grown:
            self._inbox.has_grown = False
            await self._replica.catch_up()
        for snapshot in group.snapshots:
            await self._snapshots.take(snapshot)
            await asyncio.sleep(0)  # Each may take the event loop for tens of milliseconds.
