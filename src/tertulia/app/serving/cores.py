"""How many cores the process may use."""

import math
import os
from pathlib import Path

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
