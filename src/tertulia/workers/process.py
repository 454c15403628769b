"""A worker's own process: `python -m tertulia.workers.process MEMORY`.

It does one thing after the other that its parent asks for, and ends when the parent closes its
input, or is gone. What takes more of the processor than it may ends the process, by the kernel's
timer: so there is no step that goes on for longer.
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
"""Bytes of a frame's length."""
MAX_FRAME: Final = 128 * 1024 * 1024


class WorkRequest(msgspec.Struct, array_like=True):
    """What is to be done."""

    function: str
    """`module:function`."""
    load: str
    """The same, called before and with the same arguments; its time does not count. May be
    empty."""
    seconds: float
    """Of the processor, that it may take."""
    arguments: list[object]


class WorkResponse(msgspec.Struct, array_like=True):
    """What has become of it."""

    seconds: float
    """Of the processor, that it took."""
    result: msgspec.Raw = msgspec.Raw(b"\xc0")
    """What the function returned."""
    error: str = ""
    """The name of the exception's class; empty where there was none."""
    text: str = ""
    """What the exception says."""


def framed(frame: msgspec.Struct) -> bytes:
    """The frame as bytes, with its length. ValueError where it is too long."""
    content = msgspec.msgpack.encode(frame)
    if len(content) > MAX_FRAME:
        raise ValueError("a frame is too long")
    return len(content).to_bytes(HEADER, "big") + content


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


_OURS: Final = "tertulia."


def main() -> None:
    """Work until the parent closes the input."""
    requests = sys.stdin.buffer
    # What a library prints must not get between the frames.
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
    except Exception as error:  # Whatever it is, it is the parent's to judge.
        return WorkResponse(
            time.process_time() - begun, error=type(error).__name__, text=str(error)[:1000]
        )
    return WorkResponse(time.process_time() - begun, msgspec.Raw(result))


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    if not module.startswith(_OURS):
        raise LookupError(f"{module} is none of ours")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


if __name__ == "__main__":
    main()
