"""A worker's process: `python -m tertulia.workers.process MEMORY`.

It runs one task after the other for its parent, and ends when the parent closes its input or is
gone. The kernel's timer ends it when a task exceeds its CPU time.
"""

import contextlib
import importlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

HEADER: Final = 4
"""The number of bytes of a frame's length."""
MAX_FRAME: Final = 128 * 1024 * 1024


class WorkRequest(msgspec.Struct, array_like=True):
    """A task to run."""

    function: str
    """`module:function`."""
    load: str
    """A `module:function` called first with the same arguments, without counting its time, or
    ""."""
    seconds: float
    """The limit of CPU time in seconds."""
    arguments: list[object]


class WorkResponse(msgspec.Struct, array_like=True):
    """A task's result."""

    seconds: float
    """The CPU time used, in seconds."""
    result: msgspec.Raw = msgspec.Raw(b"\xc0")
    error: str = ""
    """The class name of the exception, or ""."""
    text: str = ""
    """The exception's text."""


def framed(frame: msgspec.Struct) -> bytes:
    """Encode the frame with its length. Raise ValueError if it is too long."""
    content = msgspec.msgpack.encode(frame)
    if len(content) > MAX_FRAME:
        raise ValueError("a frame is too long")
    return len(content).to_bytes(HEADER, "big") + content


_NICE: Final = 5
"""The process's niceness, so that the server has priority."""
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
"""Environment variables that are passed on. They contain no secrets."""


def restrict(memory: int, *, files: int | None = None, file_size: int | None = None) -> None:
    """Limit this process's memory in bytes, open files, and the size of files that it writes.
    None sets no limit."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: files,
        resource.RLIMIT_FSIZE: file_size,
    }
    for kind, limit in limits.items():
        # Some systems lack a limit, and an operator may have set a lower one.
        with contextlib.suppress(OSError, ValueError):
            _, hard = resource.getrlimit(kind)
            if limit is not None:
                within = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
                resource.setrlimit(kind, (within, within))


def environment() -> dict[str, str]:
    """Return the environment of a process that runs one of Tertulia's modules."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # The same path as this process, which may have additional directories.
    path = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    return {**passed_on, "PYTHONPATH": os.pathsep.join(path)}


_OURS: Final = "tertulia."


def main() -> None:
    requests = sys.stdin.buffer
    # Output of libraries must not get between the frames.
    responses = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    restrict(int(sys.argv[1]))
    _send(responses, WorkResponse(0.0))
    while header := requests.read(HEADER):
        content = requests.read(int.from_bytes(header, "big"))
        _send(responses, _done(msgspec.msgpack.decode(content, type=WorkRequest)))


def _send(responses: BinaryIO, response: WorkResponse) -> None:
    responses.write(framed(response))
    responses.flush()


def _done(request: WorkRequest) -> WorkResponse:
    begun = time.process_time()
    try:
        if request.load:
            _function(request.load)(*request.arguments)
        function = _function(request.function)
        begun = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, max(request.seconds, 0.001))
        try:
            result = msgspec.msgpack.encode(function(*request.arguments))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except Exception as error:  # Reported to the parent.
        return WorkResponse(
            time.process_time() - begun, error=type(error).__name__, text=str(error)[:1000]
        )
    return WorkResponse(time.process_time() - begun, msgspec.Raw(result))


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    if not module.startswith(_OURS):
        raise LookupError(f"{module} is none of ours")
    result: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return result


if __name__ == "__main__":
    main()
