"""What the kernel grants a process beside the server, and what the process gets to see of the
server's environment."""

import contextlib
import os
import resource
import sys
from pathlib import Path
from typing import Final

_NICE: Final = 5
"""By how much the server comes first where both want the processor."""
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
"""No secrets."""


def restrict(memory: int, *, files: int | None = None, file_size: int | None = None) -> None:
    """Restrict this process: to so many bytes of memory, so many files that are open, and files
    that it writes to so many bytes; None leaves them as they are."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: files,
        resource.RLIMIT_FSIZE: file_size,
    }
    for kind, limit in limits.items():
        # Not every system has each of them, and an operator may have set a lower one.
        with contextlib.suppress(OSError, ValueError):
            _, hard = resource.getrlimit(kind)
            if limit is not None:
                within = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
                resource.setrlimit(kind, (within, within))


def environment() -> dict[str, str]:
    """The environment of a process that runs a module of ours."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # As in this process: a package may be in a place that only it was told.
    path = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    return {**passed_on, "PYTHONPATH": os.pathsep.join(path)}
