"""Resources of a process: processor time and memory. Linux only."""

import contextlib
import os
import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CONNECTIONS_BESIDE = 500
"""Open files of a process in addition to its connections."""


def cpu(pid: int) -> float:
    """Return the processor time of the process and all its current threads, in seconds."""
    used = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            used += int((task / "schedstat").read_text().split()[0])
        except FileNotFoundError:
            if task.exists():
                raise
    return used / 1e9


def cpu_of(pids: Sequence[int]) -> dict[int, float]:
    """Return the processor time of each of these processes that still exists."""
    result = {}
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            result[pid] = cpu(pid)
    return result


def busy() -> tuple[float, float]:
    """Return the processor time since the machine started, and that of this process and its
    finished children, in seconds."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    idle = fields[3] + fields[4]
    memory = sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK"), memory


def pss(pid: int) -> int:
    """Return the process's own memory in bytes, plus its share of shared memory."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise ValueError("no PSS of the process is known")


def family_peak(
    process: "subprocess.Popen[Any]", is_enough: Callable[[], bool] = lambda: False
) -> int:
    """Wait until the process ends, or `is_enough`. Return the peak memory of the process and its
    descendants, in bytes."""
    most = 0
    while process.poll() is None and not is_enough():
        with contextlib.suppress(OSError, ValueError):  # One of them has just ended.
            most = max(most, sum(map(pss, family(process.pid))))
        time.sleep(0.25)  # Another process can only be polled.
    return most


def forget_peak(pid: int) -> int:
    """Reset the peak that `peak` returns. Return the process's resident memory in bytes."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak(pid)


def peak(pid: int) -> int:
    """Return the process's peak resident memory in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ValueError("no peak of the process is known")


def family(pid: int) -> list[int]:
    """Return the process and all its running descendants."""
    result = [pid]
    for parent in result:
        # A database may end its own processes at any time.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for children in list(Path(f"/proc/{parent}/task").glob("*/children")):
                result += [int(child) for child in children.read_text().split()]
    return result


def parent(pid: int) -> int:
    """Return the parent process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def room_for_connections() -> int:
    """Raise the limit of open files as far as possible. Return how many connections this process,
    and each process that it starts, can have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - CONNECTIONS_BESIDE
