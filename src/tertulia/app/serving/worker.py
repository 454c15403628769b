"""The interface between a worker and its supervisor: messages, connection counts, and notifications
to systemd."""

import contextlib
import logging
import math
import mmap
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Final

import msgspec

logger = logging.getLogger("tertulia.serving")

VARIABLE: Final = "TERTULIA_WORKER"
"""The environment variable with a worker's `Place`."""
LEAVE: Final = b"l"
STOP: Final = b"s"
"""The supervisor's commands: exit after being replaced, and exit together with all workers."""
LOST_SECONDS: Final = 30.0
"""The number of seconds that a worker without a supervisor has to exit."""
SLOTS: Final = 256
"""The number of workers that can be counted, more than ever run concurrently."""
_SLOT: Final = struct.Struct("qd")
COUNTS_BYTES: Final = SLOTS * _SLOT.size
"""The size of the counts file in bytes."""
_ALIVE_SECONDS: Final = 1.0
"""A worker that hasn't updated its count for this many seconds hangs or is gone."""


class WorkerPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's number and the file descriptors that it inherits."""

    number: int
    """The worker's number, from 0 to `of` - 1."""
    of: int
    """The number of workers."""
    installation: str
    """See `Plan.installation`."""
    bus: str
    """The directory of the workers' sockets."""
    listener: int
    """The file descriptor of the socket that all workers accept connections from."""
    control: int
    """The file descriptor of the connection with the supervisor."""
    counts: int
    """The file descriptor of the connection counts."""
    slot: int
    """The worker's slot in the counts."""


def take_place(environment: MutableMapping[str, str]) -> WorkerPlace | None:
    """Return the place that the environment assigns to this process, and remove it there. None for
    a process that serves alone."""
    try:
        place = msgspec.json.decode(environment.get(VARIABLE, "null"), type=WorkerPlace | None)
    except msgspec.MsgspecError:
        return None  # No supervisor wrote it, so it's refused like other unknown settings.
    environment.pop(VARIABLE, None)
    return place


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """A worker's message to its supervisor: a line of JSON."""

    ready: str = ""
    """The message to print when all workers serve requests; empty until this one does."""
    leaving: bool = False
    """Whether the worker is about to exit."""


class Control:
    """A worker's connection with its supervisor."""

    def __init__(self, descriptor: int) -> None:
        self.is_lost = False
        """Whether the supervisor is gone."""
        self._socket = socket.socket(fileno=descriptor)
        self._calls: dict[bytes, Callable[[], None]] = {}
        threading.Thread(target=self._hear, name="supervisor", daemon=True).start()

    def listen(
        self,
        on_leave: Callable[[], None],
        on_stop: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        """Set the functions that are called, in another thread, when the worker must exit after
        being replaced, must exit with all workers, or has lost its supervisor."""
        self._calls = {LEAVE: on_leave, STOP: on_stop, b"": on_lost}

    def report(self, report: Report) -> None:
        """Send a report to the supervisor."""
        with contextlib.suppress(OSError):  # The supervisor is gone, which is noticed elsewhere.
            self._socket.sendall(msgspec.json.encode(report) + b"\n")

    def _hear(self) -> None:
        reply = b"?"
        while reply:
            try:
                reply = self._socket.recv(1)
            except OSError:
                reply = b""
            if not reply:
                self.is_lost = True
                logger.error("lost the supervisor; the worker stops")
            if not self._calls:
                os._exit(0)  # It hasn't begun to serve.
            self._calls[reply]()
        time.sleep(LOST_SECONDS)  # Until then the loop may end by itself.
        os._exit(1)


class Counts:
    """The number of connections of each worker, in shared memory."""

    def __init__(self, descriptor: int, slot: int = 0) -> None:
        """Use shared memory. `slot` is this worker's slot."""
        self._memory = mmap.mmap(descriptor, COUNTS_BYTES)
        self._slot = slot

    def tell(self, connections: int, now: float) -> None:
        """Set this worker's number of connections. Call this several times per second. `now` is the
        monotonic clock, which processes share."""
        _SLOT.pack_into(self._memory, self._slot * _SLOT.size, connections, now)

    def beat(self, slot: int) -> float | None:
        """Return the time when the worker of a slot last updated its count; None if it accepts no
        connections."""
        _, at = _SLOT.unpack_from(self._memory, slot * _SLOT.size)
        return at or None

    def withdraw(self, slot: int | None = None) -> None:
        """Clear this worker's slot, or that of a worker that has exited."""
        _SLOT.pack_into(self._memory, (self._slot if slot is None else slot) * _SLOT.size, 0, 0)

    def least(self, now: float) -> int | None:
        """Return the smallest number of connections of another worker, if any."""
        results = [
            count
            for slot, (count, at) in enumerate(_SLOT.iter_unpack(self._memory))
            if slot != self._slot and at and now - at < _ALIVE_SECONDS
        ]
        return min(results, default=None)


_CGROUPS = Path("/sys/fs/cgroup")


def usable_cores(cgroups: Path = _CGROUPS, path: Path = Path("/proc/self/cgroup")) -> int:
    """Return the number of cores that the process may use, limited by its CPU quota; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _quota(cgroups, path)
    return max(cores if quota is None else min(cores, math.ceil(quota)), 1)


def _quota(cgroups: Path, path: Path) -> float | None:
    """Return the smallest CPU quota, in cores, of the control groups (version 2) around the
    process; None if unlimited."""
    try:
        line = next(item for item in path.read_text().splitlines() if item.startswith("0::"))
    except (OSError, StopIteration):
        return None
    place = cgroups / line.removeprefix("0::").lstrip("/")
    results = []
    for directory in (place, *place.parents):
        try:
            allowed, period = (directory / "cpu.max").read_text().split()
        except (OSError, ValueError):
            allowed, period = "max", "1"
        if allowed != "max":
            results.append(int(allowed) / int(period))
        if directory == cgroups:
            break
    return min(results, default=None)


_VARIABLE: Final = "NOTIFY_SOCKET"
READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def notify(*facts: str) -> None:
    """Send facts to the service manager's socket, if there is one."""
    address = os.environ.get(_VARIABLE, "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    # The service manager may be gone, and nothing may wait for it.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as plug:
        plug.setblocking(False)
        plug.sendto("\n".join(facts).encode(), address)
