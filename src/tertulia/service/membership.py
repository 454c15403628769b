"""A process's entry in the list of nodes, and its lifecycle."""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Final

from tertulia import __version__
from tertulia.delivery.delivery import Delivery
from tertulia.log.log import Log
from tertulia.service.config import Config
from tertulia.store import log_formats, migrations, nodes
from tertulia.store.database import Connection
from tertulia.store.nodes import (
    MAX_SLOW_REQUESTS,
    HeartbeatReply,
    ListedNode,
    NodeEntry,
    NodeFigures,
    SlowRequest,
)
from tertulia.store.store import Store


class Lifecycle:
    """One node's way from serving to its end. Used on the event loop alone."""

    def __init__(self) -> None:
        self.is_draining = False
        """Whether the node is about to leave: it goes on answering, but is not ready any more, so
        that whoever distributes requests sends it none."""
        self._callbacks: list[Callable[[], None]] = []

    def drain(self) -> None:
        """Begin to leave, if that has not begun."""
        if self.is_draining:
            return
        self.is_draining = True
        for callback in self._callbacks:
            callback()

    def on_drain(self, callback: Callable[[], None]) -> None:
        """Call when the node begins to leave; at once if it has begun."""
        if self.is_draining:
            callback()
        else:
            self._callbacks.append(callback)


logger = logging.getLogger("tertulia.nodes")

REPORT_SECONDS: Final = 5.0
"""Between two words of a node."""
LEAVE_SECONDS: Final = 5.0
"""How long a node that ends tries to take its leave."""
WORKER: Final = "/"
"""Between the name of a server and the number of one of its processes."""
_QUICK_SECONDS: Final = 1.0
"""Where the database took longer to answer, its time says little about a clock."""

_runs: set[str] = set()
"""Of the nodes in this process."""


class Membership:
    """A node's row in the list, for as long as it is `listed`."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.lifecycle = Lifecycle()
        base = config.node_name or socket.gethostname()
        worker = config.worker
        self._wanted_name = base if worker is None else f"{base}{WORKER}{worker}"
        self.name = self._wanted_name
        """The node's name; with a random ending where another node has it already."""
        self.entry = NodeEntry(
            run=secrets.token_hex(8),
            host=socket.gethostname(),
            pid=os.getpid(),
            pid_space=_pid_space(),
            wanted_name=self._wanted_name,
            port=config.port,
            version=__version__,
            schema_version=len(migrations.MIGRATIONS),
            log_format=log_formats.LOG_FORMAT,
            settings=config.digests_of_shared(),
        )
        self.slow_requests: deque[SlowRequest] = deque(maxlen=MAX_SLOW_REQUESTS)
        """Requests of the node that took long."""
        self._clock = clock
        self._clock_ahead = 0.0
        self._log: Log | None = None
        self._delivery: Delivery | None = None
        self._soon = asyncio.Event()
        self._trouble = ""

    def loaded(self, log: Log) -> None:
        """The log is open."""
        self._log = log

    def serving(self, delivery: Delivery) -> None:
        """The node answers."""
        self._delivery = delivery
        self._soon.set()

    @asynccontextmanager
    async def listed(self, store: Store) -> AsyncIterator[None]:
        """Be on the list for the time of the context. The database must be migrated."""
        run = self.entry.run
        _runs.add(run)
        saying = None
        self.lifecycle.on_drain(self._soon.set)
        try:
            await self._enter(store)
            saying = asyncio.create_task(self._say_on(store), name="node-list")
            yield
        finally:
            if saying is not None:
                saying.cancel()
                await asyncio.wait([saying])
            with contextlib.suppress(Exception):  # Then it is shown as gone.
                async with asyncio.timeout(LEAVE_SECONDS):
                    await store.tend_list(lambda connection: nodes.unregister(connection, run))
            _runs.discard(run)

    @property
    def figures(self) -> NodeFigures:
        """How the node is now."""
        log, delivery = self._log, self._delivery
        if log is None:
            return NodeFigures()
        lag = log.lag
        return NodeFigures(
            state=self._state(log),
            position=log.durable,
            lag_entries=lag.entries,
            lag_seconds=round(lag.seconds, 1),
            waiting_polls=0 if delivery is None else delivery.waiting,
            queues=0 if delivery is None else len(delivery.queues),
            clock_ahead=round(self._clock_ahead, 2),
            slow=tuple(self.slow_requests),
        )

    def _state(self, log: Log) -> str:
        if self.lifecycle.is_draining:
            return "draining"
        if log.freshness.is_stale:
            return "stale"
        return "starting" if self._delivery is None else "serving"

    def _makes_way(self, other: ListedNode) -> bool:
        """Whether a node is gone, and this one has its name or comes in its place."""
        own, its = self.entry, other.entry
        is_same = (its.host, its.port, its.wanted_name) == (own.host, own.port, own.wanted_name)
        is_before = other.name == self._wanted_name or is_same
        return is_before and its.run != own.run and (not other.is_living or _is_dead(other))

    async def _enter(self, store: Store) -> None:
        """Enter the list by the name, or one like it."""
        name = self._wanted_name

        def enter(connection: Connection) -> bool:
            return nodes.register(connection, name, self.entry, self.figures, self._makes_way)

        while not await store.tend_list(enter):
            name = f"{self._wanted_name}-{secrets.token_hex(2)}"
        if name != self._wanted_name:
            logger.warning(
                "another node has this name",
                extra={"fields": {"name": self._wanted_name, "instead": name}},
            )
        self.name = name

    async def _say_on(self, store: Store) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPORT_SECONDS):
                    await self._soon.wait()
            self._soon.clear()
            try:
                await self._say(store)
            except Exception as error:  # The next word comes soon.
                if not self._trouble:
                    logger.warning(
                        "the list of nodes cannot be written", extra={"fields": {"reason": error}}
                    )
                self._trouble = str(error)
            else:
                self._trouble = ""

    async def _say(self, store: Store) -> None:
        began = time.monotonic()
        heard = await store.tend_list(self._said)
        took = time.monotonic() - began
        if heard is None:  # It was forgotten, or the database was put back.
            await self._enter(store)
            return
        if took < _QUICK_SECONDS:
            self._clock_ahead = self._clock() - took / 2 - heard.at
        if heard.wanted == nodes.DRAIN and not self.lifecycle.is_draining:
            logger.info("the node was asked to leave", extra={"fields": {"name": self.name}})
            self.lifecycle.drain()

    def _said(self, connection: Connection) -> HeartbeatReply | None:
        run, wanted = self.entry.run, self._wanted_name
        if self.name != wanted and nodes.rename(connection, run, wanted, self._makes_way):
            self.name = wanted
        return nodes.heartbeat(connection, run, self.figures)


def _is_dead(other: ListedNode) -> bool:
    """Whether the node's process certainly runs no more."""
    entry = other.entry
    if entry.pid_space != _pid_space():
        return False
    if entry.pid == os.getpid():
        return entry.run not in _runs
    try:
        os.kill(entry.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


@cache
def _pid_space() -> str:
    """Where process IDs mean the same: this machine since it was started, or a container on it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return secrets.token_hex(8)  # Nothing is known of others then.
