"""A worker's own process: `python -m tertulia.workers.process MEMORY`.

It does one thing after the other that its parent asks for, and ends when the parent closes its
input, or is gone. What takes more of the processor than it may ends the process, by the kernel's
timer: so there is no step that goes on for longer.
"""

import importlib
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO, Final

import msgspec

from tertulia.workers.frames import HEADER, Request, Response, framed
from tertulia.workers.limits import restrict

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
    _send(responses, Response(0.0))
    while header := requests.read(HEADER):
        content = requests.read(int.from_bytes(header, "big"))
        _send(responses, _done(msgspec.msgpack.decode(content, type=Request)))


def _send(responses: BinaryIO, response: Response) -> None:
    responses.write(framed(response))
    responses.flush()


def _done(request: Request) -> Response:
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
        return Response(
            time.process_time() - begun, error=type(error).__name__, text=str(error)[:1000]
        )
    return Response(time.process_time() - begun, msgspec.Raw(result))


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    if not module.startswith(_OURS):
        raise LookupError(f"{module} is none of ours")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


if __name__ == "__main__":
    main()
