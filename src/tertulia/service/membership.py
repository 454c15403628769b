"""A node's entry in the list of nodes, and its lifecycle."""

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
from tertulia.model.errors import Refused
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
    """The state of a node: serving or draining. Used only on the event loop."""

    def __init__(self) -> None:
        self.is_draining = False
        """Whether the node is shutting down. It still serves requests, but isn't ready, so that
        load balancers stop sending them."""
        self._callbacks: list[Callable[[], None]] = []

    def drain(self) -> None:
        """Begin draining."""
        if self.is_draining:
            return
        self.is_draining = True
        for callback in self._callbacks:
            callback()

    def on_drain(self, callback: Callable[[], None]) -> None:
        """Call the function when draining begins, or now if it has begun."""
        if self.is_draining:
            callback()
        else:
            self._callbacks.append(callback)


logger = logging.getLogger("tertulia.nodes")

REPORT_SECONDS: Final = 5.0
"""Seconds between two reports of a node."""
LEAVE_SECONDS: Final = 5.0
"""The number of seconds for which a stopping node tries to remove its entry."""
WORKER: Final = "/"
"""Separates a server's name and a worker's number."""
_NEXT: Final = "-next"
"""The suffix of a worker's name until the worker that it replaces has left. It's always the same,
so that its metrics don't become new series each time."""
_QUICK_SECONDS: Final = 1.0
"""The database's time is compared only if its response took fewer seconds than this."""

_runs: set[str] = set()
"""IDs of the nodes in this process."""


class Membership:
    """A node's entry in the list of nodes."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.lifecycle = Lifecycle()
        base = config.node_name or socket.gethostname()
        worker = config.worker
        self._is_worker = worker is not None
        self._wanted_name = base if worker is None else f"{base}{WORKER}{worker}"
        self.name = self._wanted_name
        """The node's name, with a suffix while another node has it."""
        self._is_development = config.dev
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
        """Slow requests of this node."""
        self._clock = clock
        self._clock_ahead = 0.0
        self._log: Log | None = None
        self._delivery: Delivery | None = None
        self._soon = asyncio.Event()
        self._trouble = ""

    def loaded(self, log: Log) -> None:
        self._log = log

    def serving(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._soon.set()

    @asynccontextmanager
    async def listed(self, store: Store) -> AsyncIterator[None]:
        """Add the entry for the duration of the context. The database must be migrated. Raise
        Refused if this server is for development and another server uses the database."""
        if self._is_development:
            await store.tend_list(self._require_alone)
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
            with contextlib.suppress(Exception):  # Others will list it as gone.
                async with asyncio.timeout(LEAVE_SECONDS):
                    await store.tend_list(lambda connection: nodes.unregister(connection, run))
            _runs.discard(run)

    @property
    def figures(self) -> NodeFigures:
        """The node's current figures."""
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
        """Whether this node replaces another one that is gone."""
        is_before = other.name == self._wanted_name or self._is_same_place(other)
        is_other = other.entry.run != self.entry.run
        return is_before and is_other and (not other.is_living or _is_dead(other))

    def _require_alone(self, connection: Connection) -> None:
        """Raise Refused if another server uses the database."""
        for other in nodes.list_nodes(connection):
            if (
                other.is_living
                and not _is_dead(other)
                and _server(other.entry) != _server(self.entry)
            ):
                raise Refused(
                    "This server signs people in without a password (--dev), so it has to be the"
                    f" only one, but {other.name} uses the same database. Stop that node, or start"
                    " this one without --dev."
                )

    def _is_same_place(self, other: ListedNode) -> bool:
        """Whether the other node is, or was, the same server or worker."""
        node, its = self.entry, other.entry
        return (its.host, its.port, its.wanted_name) == (node.host, node.port, node.wanted_name)

    async def _enter(self, store: Store) -> None:
        """Add the entry, under a similar name if the name is in use."""
        name = self._wanted_name

        def enter(connection: Connection) -> bool:
            return nodes.register(connection, name, self.entry, self.figures, self._makes_way)

        def is_replacing(connection: Connection) -> bool:
            return self._is_worker and any(
                other.name == self._wanted_name and self._is_same_place(other)
                for other in nodes.list_nodes(connection)
            )

        entered = await store.tend_list(enter)
        if not entered and await store.tend_list(is_replacing):
            name = f"{self._wanted_name}{_NEXT}"
            entered = await store.tend_list(enter)
        while not entered:
            name = f"{self._wanted_name}-{secrets.token_hex(2)}"
            entered = await store.tend_list(enter)
        if name not in {self._wanted_name, f"{self._wanted_name}{_NEXT}"}:
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
            except Exception as error:  # The next report follows soon.
                if not self._trouble:
                    logger.warning(
                        "could not update the list of nodes", extra={"fields": {"reason": error}}
                    )
                self._trouble = str(error)
            else:
                self._trouble = ""

    async def _say(self, store: Store) -> None:
        began = time.monotonic()
        heard = await store.tend_list(self._said)
        took = time.monotonic() - began
        if heard is None:  # The entry was removed, or the database was restored.
            await self._enter(store)
            return
        if took < _QUICK_SECONDS:
            self._clock_ahead = self._clock() - took / 2 - heard.at
        if heard.wanted == nodes.DRAIN and not self.lifecycle.is_draining:
            logger.info("node was asked to drain", extra={"fields": {"name": self.name}})
            self.lifecycle.drain()

    def _said(self, connection: Connection) -> HeartbeatReply | None:
        run, wanted = self.entry.run, self._wanted_name
        if self.name != wanted and nodes.rename(connection, run, wanted, self._makes_way):
            self.name = wanted
        return nodes.heartbeat(connection, run, self.figures)


def _server(entry: NodeEntry) -> tuple[str, int, str]:
    """Return values that identify the server of a node. A server has a node for each worker."""
    return entry.host, entry.port, entry.wanted_name.partition(WORKER)[0]


def _is_dead(other: ListedNode) -> bool:
    """Whether the node's process has certainly ended."""
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
    """Return a text that identifies the scope of process IDs: a boot of this machine, or a
    container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return secrets.token_hex(8)  # Other processes can't be checked.
