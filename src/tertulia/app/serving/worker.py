"""What a worker and its supervisor know of each other."""

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
"""Of a worker's environment: its `Place`."""
LEAVE: Final = b"l"
STOP: Final = b"s"
"""What a supervisor tells a worker: to make way for another one, and to end with all others."""
LOST_SECONDS: Final = 30.0
"""A worker without a supervisor has so long to end by itself."""
SLOTS: Final = 256
"""Workers whose connections are counted: more than there ever are at a time."""
_SLOT: Final = struct.Struct("qd")
COUNTS_BYTES: Final = SLOTS * _SLOT.size
"""Of the file in which they are counted."""
_ALIVE_SECONDS: Final = 1.0
"""A worker that has not counted for so long stands still, or is gone."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Which worker a process is, and what it has inherited."""

    number: int
    """From 0 to `of` - 1."""
    of: int
    """How many there are."""
    installation: str
    """What it serves, as all others do: `Plan.installation`."""
    bus: str
    """The directory by which they know each other."""
    listener: int
    """The descriptor of the socket that all of them accept connections from."""
    control: int
    """That of its own connection with the supervisor."""
    counts: int
    """That of the file in which connections are counted;"""
    slot: int
    """and its own place there."""


def take_place(environment: MutableMapping[str, str]) -> Place | None:
    """The worker that the environment says this process is, which it then says no more. None for a
    process that serves alone."""
    try:
        place = msgspec.json.decode(environment.get(VARIABLE, "null"), type=Place | None)
    except msgspec.MsgspecError:
        return None  # No supervisor wrote it: it is refused with other settings that are unknown.
    environment.pop(VARIABLE, None)
    return place


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker tells its supervisor; a line of JSON each."""

    ready: str = ""
    """It answers; this is to be printed when all do."""
    leaving: bool = False
    """It is about to end."""


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
        """Call these, from another thread, when the worker is to make way for another one, when it
        is to end with all others, and when the supervisor is gone."""
        self._calls = {LEAVE: on_leave, STOP: on_stop, b"": on_lost}

    def report(self, report: Report) -> None:
        """Tell the supervisor."""
        with contextlib.suppress(OSError):  # It is gone, which is noticed elsewhere.
            self._socket.sendall(msgspec.json.encode(report) + b"\n")

    def _hear(self) -> None:
        told = b"?"
        while told:
            try:
                told = self._socket.recv(1)
            except OSError:
                told = b""
            if not told:
                self.is_lost = True
                logger.error("the supervisor is gone: the worker stops")
            if not self._calls:
                os._exit(0)  # It has not begun to serve.
            self._calls[told]()
        time.sleep(LOST_SECONDS)  # Until then the loop may end by itself.
        os._exit(1)


class Counts:
    """How many connections each worker has, in memory that all of them share."""

    def __init__(self, descriptor: int, slot: int = 0) -> None:
        """`slot` is this worker's."""
        self._memory = mmap.mmap(descriptor, COUNTS_BYTES)
        self._slot = slot

    def tell(self, connections: int, now: float) -> None:
        """This worker has so many. To be called several times a second. `now` is of the steady
        clock, which is the same for all processes."""
        _SLOT.pack_into(self._memory, self._slot * _SLOT.size, connections, now)

    def beat(self, slot: int) -> float | None:
        """When the worker of that slot counted last; None where it takes no connections."""
        _, at = _SLOT.unpack_from(self._memory, slot * _SLOT.size)
        return at or None

    def withdraw(self, slot: int | None = None) -> None:
        """This worker takes no more; or the one of that slot, which has ended."""
        _SLOT.pack_into(self._memory, (self._slot if slot is None else slot) * _SLOT.size, 0, 0)

    def least(self, now: float) -> int | None:
        """The least number of connections that another worker has; None where there is none."""
        found = [
            count
            for slot, (count, at) in enumerate(_SLOT.iter_unpack(self._memory))
            if slot != self._slot and at and now - at < _ALIVE_SECONDS
        ]
        return min(found, default=None)


_CGROUPS = Path("/sys/fs/cgroup")


def usable_cores(cgroups: Path = _CGROUPS, own: Path = Path("/proc/self/cgroup")) -> int:
    """The cores that the process may run on, or fewer, where it is allowed less of their time; 1
    at least."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _quota(cgroups, own)
    return max(cores if quota is None else min(cores, math.ceil(quota)), 1)


def _quota(cgroups: Path, own: Path) -> float | None:
    """The least number of cores whose time the control groups (version 2) around the process
    allow; None where nothing is said."""
    try:
        line = next(one for one in own.read_text().splitlines() if one.startswith("0::"))
    except (OSError, StopIteration):
        return None
    place = cgroups / line.removeprefix("0::").lstrip("/")
    found = []
    for directory in (place, *place.parents):
        try:
            allowed, period = (directory / "cpu.max").read_text().split()
        except (OSError, ValueError):
            allowed, period = "max", "1"
        if allowed != "max":
            found.append(int(allowed) / int(period))
        if directory == cgroups:
            break
    return min(found, default=None)


_VARIABLE: Final = "NOTIFY_SOCKET"
READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def notify(*facts: str) -> None:
    """Tell whoever listens at the socket that the environment names. Nobody does, mostly."""
    address = os.environ.get(_VARIABLE, "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    # Whoever is to be told may be gone, and nothing here may wait for it.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as plug:
        plug.setblocking(False)
        plug.sendto("\n".join(facts).encode(), address)
