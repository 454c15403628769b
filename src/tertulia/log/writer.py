"""The writer: a task that commits groups, follows other nodes, takes snapshots, and recovers from
failures."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tertulia.log.commits import RETRY_SECONDS, Commits, FoldFailed, OutcomeNotKnown, Transactions
from tertulia.log.head_watch import WriteProbe
from tertulia.log.health import Durability, Freshness, described, not_done_error
from tertulia.log.replica import LogSubscribers, Replica
from tertulia.log.requests import Group, Inbox, Request
from tertulia.log.snapshots import Snapshots
from tertulia.model.errors import OutcomeUnknown
from tertulia.store.database import DatabaseError
from tertulia.store.installation import NewerDatabase
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.log")


@dataclass(frozen=True)
class Recovery:
    """Reloads the state after a failure, or gives up. Only the writer uses it."""

    store: Store
    transactions: Transactions
    inbox: Inbox
    replica: Replica
    durability: Durability
    freshness: Freshness
    subscribers: LogSubscribers

    async def recover(self, answer: Exception, requests: Sequence[Request] = ()) -> bool:
        """Discard the state, respond to the requests with `answer`, and reload the state,
        however long that takes. Return whether the state is valid: it isn't if the node stops or
        must stop."""
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
                logger.warning("could not reload the state: %s", described(again))
                if self.transactions.is_closing:
                    self.inbox.discard(not_done_error())
                    return False
                with self.inbox.blocked():
                    await asyncio.sleep(RETRY_SECONDS)
        self.durability.restore()
        self.subscribers.reloaded(is_other_history=is_other_history)
        return True

    async def give_up(self, error: NewerDatabase) -> None:
        """Stop deciding, because this program is too old for the database."""
        if not self.freshness.newer:
            logger.error("this program is too old for the database: %s", error)
        self.freshness.newer = str(error)
        await self.transactions.abandon()
        self.inbox.discard(not_done_error())
        for callback in self.subscribers.on_newer:
            callback(str(error))


class Writer:
    """The writer's task. Only functions that it calls change the state."""

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
        """Start the task. The replica must be open."""
        self._task = asyncio.create_task(self._work(), name="log-writer")

    async def close(self) -> None:
        """Finish waiting requests, then stop."""
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
        """Process waiting requests, and recover if that fails."""
        group = self._inbox.take()
        try:
            await self._carry_out(group)
        except FoldFailed as error:
            # Nothing was written, so the other requests get another turn.
            logger.exception("the changes of %s could not be applied", error.command.verb)
            if not error.command.answer.done():
                error.command.answer.set_exception(error.__cause__ or error)
            self._inbox.keep_notes(group)
            if await self._recovery.recover(not_done_error()):
                self._inbox.give_back(group)
        except NewerDatabase as error:
            await self._recovery.give_up(error)
        except Exception as error:  # Whatever failed, nothing of the group took effect.
            if isinstance(error, DatabaseError):  # It's not a bug.
                logger.error("could not write the log: %s", described(error))
            else:
                logger.exception("could not write the log")
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
