"""What a process takes of the machine: processor time, memory. Linux only."""

import contextlib
import os
import resource
from collections.abc import Sequence
from pathlib import Path

CONNECTIONS_BESIDE = 500
"""Open files of a process beside the connections that it is measured with."""


def cpu(pid: int) -> float:
    """The seconds of processor time that the process has used, all its present threads together."""
    used = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            used += int((task / "schedstat").read_text().split()[0])
        except FileNotFoundError:
            if task.exists():
                raise
    return used / 1e9


def cpu_of(pids: Sequence[int]) -> dict[int, float]:
    """The same of each of the processes that are still there."""
    found = {}
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found[pid] = cpu(pid)
    return found


def busy() -> tuple[float, float]:
    """The seconds that this machine's processors have been at work since it was started, and those
    of this process and of the children that it has waited for."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    idle = fields[3] + fields[4]
    own = sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK"), own


def pss(pid: int) -> int:
    """The bytes of memory that are the process's own, and its part of those that it shares."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise ValueError("no PSS of the process is known")


def forget_peak(pid: int) -> int:
    """The bytes that the process has in memory. `peak` is of what comes from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak(pid)


def peak(pid: int) -> int:
    """The bytes that the process had in memory at most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ValueError("no peak of the process is known")


def family(pid: int) -> list[int]:
    """The process and all that come of it and have not ended."""
    found = [pid]
    for parent in found:
        # A database ends processes of its own at any moment.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for children in list(Path(f"/proc/{parent}/task").glob("*/children")):
                found += [int(child) for child in children.read_text().split()]
    return found


def parent(pid: int) -> int:
    """The process that this one was started by."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def room_for_connections() -> int:
    """How many connections a process may have, with the limit of open files raised as far as it
    can be; processes that are started from now on may have as many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - CONNECTIONS_BESIDE
