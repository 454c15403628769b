"""Nodes on a private PostgreSQL, each behind its own proxy, and the faults that can be injected."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.plan import Fault, Kind
from tests.e2e.server import SOURCE, STOP_SECONDS, Server
from tests.postgres import Standalone, socket_of, through
from tests.proxy import Fault as OnTheWay
from tests.proxy import Link, Proxy

ROOT = SOURCE.parent
LOOK_SECONDS = 0.1
"""Seconds between two checks whether a node is running."""
DELAY_SECONDS = 0.15
"""The delay of each piece of data on a slow connection."""
REST_SECONDS = 0.5
"""Seconds before an ended node is restarted."""
LISTENS, WRITES = b"LISTEN", b"FOR UPDATE"
"""The bytes by which a node's connections are told apart."""
SEVERAL = 5
"""The number of commits, of which some are by clients."""
Say = Callable[[str], None]
_AT_A_COMMIT = {
    Kind.LOSE_ANSWER: OnTheWay.CUT_AFTER,
    Kind.FREEZE_ANSWER: OnTheWay.FREEZE_AFTER,
}


@dataclass
class Node(Server):
    """One of several nodes."""

    is_forked = False
    number: int = 0
    is_newer: bool = False
    """Whether the process is of the newer version."""
    killed: bool = False
    """Whether the test ended it."""
    has_served: bool = False
    """Whether it has responded since it was started."""

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send the signal to the process if it's running."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def _command_line(self, *words: str) -> list[str]:
        module = "tests.chaos.newer_version" if self.is_newer else "tertulia"
        return [sys.executable, "-m", module, *words]

    def _environment(self) -> dict[str, str]:
        ours = super()._environment()
        path = f"{SOURCE}{os.pathsep}{ROOT}"
        return {**ours, "PYTHONPATH": path, "TERTULIA_EXTERNAL_URL": "http://chat.test"}


class Cluster:
    """All nodes and their database. Changes to nodes are made on the event loop."""

    def __init__(self, database: Standalone, directory: Path, count: int, say: Say) -> None:
        self.database = database
        self.is_upgraded = False
        """Whether the newer version has been started."""
        self.complaints: list[str] = []
        self.proxies = [
            Proxy(socket_of(database.url), marks=(LISTENS, WRITES)) for _ in range(count + 1)
        ]
        self.stopping = asyncio.Event()
        """Set for a moment when a node is paused."""
        self.stopped: set[int] = set()
        """The paused nodes."""
        self._say = say
        self._directory = directory
        self._wanted: set[int] = set(range(count))
        self._waits: set[int] = set()
        """Nodes that were killed and haven't been restarted."""
        self._tasks: list[asyncio.Task[None]] = []
        self._is_database_up = True
        for proxy in self.proxies:
            proxy.open()
        self.nodes = [
            Node(directory / f"node-{n}", through(database.url, proxy.port), number=n)
            for n, proxy in enumerate(self.proxies)
        ]

    @property
    def serving(self) -> list[Node]:
        """The nodes that clients may use, whatever their state."""
        return [self.nodes[number] for number in sorted(self._wanted)]

    def share_secret(self) -> None:
        """Copy the first node's secret to all nodes."""
        for node in self.nodes[1:]:
            node.data_dir.mkdir(parents=True)
            shutil.copy(self.nodes[0].data_dir / "secret", node.data_dir)

    def start(self) -> None:
        """Start the nodes, and restart them as a service supervisor would."""
        self._tasks = [asyncio.create_task(self._keep(node)) for node in self.nodes]

    async def _keep(self, node: Node) -> None:
        """Start the node whenever it should be running and isn't."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if node.number not in self._wanted or node.number in self._waits or node.runs:
                continue
            if node.process is not None and not self._may_end(node):
                self.complaints.append(
                    f"node {node.number} ended by itself with {node.process.returncode}:"
                    f" {node.log_text()[-1500:]}"
                )
            if node.process is not None and not node.killed:
                await asyncio.sleep(REST_SECONDS)
            node.killed = False
            node.is_newer = self.is_upgraded
            node.has_served = False
            node.launch()

    def _may_end(self, node: Node) -> bool:
        """Whether the node had a reason to end: it was killed, a newer version joined, or the
        database was down when it started."""
        return node.killed or (self.is_upgraded and not node.is_newer) or not node.has_served

    # Faults

    async def strike(self, fault: Fault) -> None:
        """Inject the fault, wait, and end it."""
        self._say(f"{fault}")
        if fault.kind is Kind.KILL_DATABASE:
            await asyncio.to_thread(self.database.crash)
            await asyncio.sleep(fault.seconds)
            await asyncio.to_thread(self.database.start)
            return
        if fault.kind is Kind.STOP_DATABASE:
            await asyncio.to_thread(self.database.pause)
            await asyncio.sleep(fault.seconds)
            await asyncio.to_thread(self.database.resume)
            return
        assert fault.node is not None
        node, proxy = self.nodes[fault.node], self.proxies[fault.node]
        match fault.kind:
            case Kind.KILL_NODE:
                self._waits.add(node.number)
                node.killed = True
                node.signal(signal.SIGKILL)
                await asyncio.sleep(fault.seconds)
                self._waits.discard(node.number)
            case Kind.STOP_NODE:
                node.signal(signal.SIGSTOP)
                self.stopped.add(node.number)
                self.stopping.set()
                await asyncio.sleep(fault.seconds)
                self.stopped.discard(node.number)
                node.signal(signal.SIGCONT)
            case Kind.FREEZE:
                proxy.freeze()
                await asyncio.sleep(fault.seconds)
                proxy.thaw()
            case Kind.CUT:
                proxy.shut()
                await asyncio.sleep(fault.seconds)
                proxy.open()
            case Kind.SNAP:
                proxy.cut()
            case Kind.DELAY:
                proxy.delay_seconds = DELAY_SECONDS
                await asyncio.sleep(fault.seconds)
                proxy.delay_seconds = 0.0
            case Kind.LOSE_ANSWER | Kind.FREEZE_ANSWER:
                for _ in range(1 if fault.kind is Kind.FREEZE_ANSWER else SEVERAL):
                    proxy.when_answered(b"COMMIT\0", _AT_A_COMMIT[fault.kind], WRITES)
                await asyncio.sleep(fault.seconds)
                proxy.forget()
                proxy.thaw()
            case Kind.CUT_LISTENER:
                for link in self._listeners(proxy):
                    link.cut()
            case Kind.FREEZE_LISTENER:
                links = self._listeners(proxy)
                for link in links:
                    link.freeze()
                await asyncio.sleep(fault.seconds)
                for link in links:
                    link.thaw()
            case Kind.UPGRADE:
                self.is_upgraded = True
                self._wanted.add(node.number)

    def _listeners(self, proxy: Proxy) -> list[Link]:
        return [link for link in proxy.links if LISTENS in link.marks and link.is_open]

    # Shutdown

    def close(self) -> None:
        """Stop everything, whatever its state."""
        for task in self._tasks:
            task.cancel()
        for node in self.nodes:
            node.signal(signal.SIGCONT)
            node.signal(signal.SIGTERM)
        for proxy in self.proxies:
            proxy.thaw()
        until = time.monotonic() + STOP_SECONDS
        for node in self.nodes:
            if node.process is None:
                continue
            try:
                node.process.wait(max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                self.complaints.append(
                    f"node {node.number} did not stop:\n{node.log_text()[-1500:]}"
                )
                node.process.kill()
                node.process.wait(STOP_SECONDS)
        for proxy in self.proxies:
            with contextlib.suppress(OSError):
                proxy.shut()

    def tracebacks(self) -> list[str]:
        """Tracebacks in the nodes' logs, except for those caused by an unavailable database."""
        found = []
        for node in self.nodes:
            if not node.log_path.exists():
                continue
            found += [
                f"node {node.number} logged: {text[-3000:]}" for text in mistakes(node.log_text())
            ]
        return found


def mistakes(log: str) -> list[str]:
    """Tracebacks in a log, each with the line before it, except for those whose last exception says
    that the database was unavailable."""
    found = []
    lines = log.splitlines()
    begin = 0
    while (begin := _next(lines, begin)) < len(lines):
        end = begin + 1
        raised = ""
        while end < len(lines) and not lines[end].startswith(_NEXT_EVENT):
            if (match := _RAISED.match(lines[end])) is not None:
                raised = match[1]
            end += 1
        if raised not in _NO_MISTAKES:
            found.append("\n".join(lines[max(begin - 1, 0) : end]))
        begin = end
    return found


def _next(lines: Sequence[str], begin: int) -> int:
    while begin < len(lines) and not lines[begin].startswith("Traceback (most recent"):
        begin += 1
    return begin


_NEXT_EVENT = "20"
"""Each log line starts with its date."""
_RAISED = re.compile(r"(?:\w+\.)*([A-Z]\w+)(?::|$)")
_NO_MISTAKES = {"DatabaseUnavailable", "ConnectionLost", "TimeLimitReached", "CommitUnknown"}
