"""Watching the log's head, to know whether this node is up to date and can write."""

import asyncio
import logging
import os
import time
from pathlib import Path
from typing import Final

import msgspec

from tertulia.log.health import LOOK_SECONDS, Freshness, described
from tertulia.log.replica import LogSubscribers, Replica
from tertulia.log.requests import Inbox
from tertulia.store import file_modes
from tertulia.store.database import DatabaseReplaced
from tertulia.store.installation import NewerDatabase, Position
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.log")

FILE: Final = "position"


class PositionFile:
    """The file with the node's last position. It can be some seconds behind the log, but is never
    ahead of it. Several nodes can share it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._written: Position | None = None

    def read(self) -> Position | None:
        """Return the position; None if the file is missing or unreadable."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Position)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError):
            logger.warning("could not read %s; it will be rewritten", self._path)
            return None

    def write(self, position: Position) -> None:
        """Write the position, unless the file has it or a later one from another node. Failures are
        logged."""
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
            logger.warning("could not write %s: %s", self._path, error.strerror)
        else:
            self._written = position


class HeadWatch:
    """Checks regularly whether the node is up to date, and logs when that becomes unknown."""

    def __init__(
        self,
        store: Store,
        freshness: Freshness,
        replica: Replica,
        inbox: Inbox,
        subscribers: LogSubscribers,
        position_file: PositionFile | None,
    ) -> None:
        self._store = store
        self._freshness = freshness
        self._replica = replica
        self._inbox = inbox
        self._subscribers = subscribers
        self._position_file = position_file
        self._looked_at = time.monotonic()
        self._look: asyncio.Task[None] | None = None
        self._is_stale = False

    def tick(self) -> None:
        """Start a check if one is due and none is running. Call this every second."""
        now = time.monotonic()
        is_free = self._look is None or self._look.done()
        if is_free and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._look = asyncio.create_task(self.look(), name="log-look")
        was_stale, self._is_stale = self._is_stale, self._freshness.is_stale
        if self._is_stale and not was_stale:
            logger.error(
                "the node can't tell whether it is up to date and refuses requests: %s",
                self._freshness.look_trouble or "no response from the database",
            )
            for callback in self._subscribers.on_stale:
                callback()
        elif was_stale and not self._is_stale:
            logger.warning("the node is up to date again")

    async def look(self) -> None:
        """Check whether this node has reached the log's head."""
        began, known = time.monotonic(), self._replica.position
        try:
            head = await self._store.look()
        except NewerDatabase:
            self._inbox.add_growth()  # The writer will get the same error.
            return
        except DatabaseReplaced as error:
            self._freshness.doubted(str(error))
            return
        except (
            Exception
        ) as error:  # The next look follows soon. What counts is how long they have failed.
            self._freshness.look_trouble = described(error)
            return
        self._freshness.heard(head.seq)
        self._store.hear()
        # (While others commit constantly, their broadcasts may have advanced this node.)
        if head.position in (known, self._replica.position):
            self._freshness.verified(began)
        else:
            self._inbox.add_growth()
        if self._position_file is not None:
            await asyncio.to_thread(self._position_file.write, self._replica.position)

    async def close(self) -> None:
        """Stop, and write the node's position."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])
        if self._position_file is not None:
            self._position_file.write(self._replica.position)


PROOF_SECONDS: Final = 10.0
"""A write within this many seconds proves that writing works."""


PROOF_WAIT_SECONDS: Final = 2.0
"""The number of seconds for which a caller waits for the writer's attempt."""


class WriteProbe:
    """Tests whether the writer can write, once for all concurrent callers."""

    def __init__(self, inbox: Inbox, freshness: Freshness) -> None:
        self._inbox = inbox
        self._freshness = freshness
        self._done: asyncio.Future[None] | None = None

    async def is_answered(self) -> bool:
        """Wait until `Freshness` shows whether writing works: not at all after a recent write,
        otherwise until the writer has tried. Return False after `PROOF_WAIT_SECONDS`."""
        if time.monotonic() - self._freshness.written_at <= PROOF_SECONDS:
            return True
        if self._done is None:
            self._done = asyncio.get_running_loop().create_future()
        self._inbox.add_probe()
        done, _ = await asyncio.wait([self._done], timeout=PROOF_WAIT_SECONDS)
        return bool(done)

    def finish(self) -> None:
        """Wake the callers after the writer has tried."""
        if self._done is not None:
            self._done.set_result(None)
            self._done = None
