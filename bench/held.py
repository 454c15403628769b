"""The server with a clock on its event loop: `python -m bench.held serve …`.

It measures each callback in processor time of the loop's thread, including garbage collection, and
so independently of other threads and programs. Commands arrive on standard input, one per line, and
each is answered by a line of JSON with the longest callback since the last command: `take` does
nothing else, `break` makes the next commit fail, and `expire` and `prune` run the hourly jobs. It
runs on asyncio's own loop, which is written in Python and can be measured; uvloop calls the same
callbacks.
"""

import asyncio
import gc
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Coroutine
from types import FrameType
from typing import Any

from tertulia import cli
from tertulia.cli import serve
from tertulia.jobs.due import expired_once
from tertulia.jobs.upkeep import pruned_once
from tertulia.log.log import Log
from tertulia.store.installation import Position
from tertulia.store.writing import Batch

LONG = 0.01
"""Callbacks are sampled once they take this many seconds."""
LOOK_SECONDS = 0.002
UNTOLD = 180.0
"""The time after which every waiting client has received something, if only a heartbeat, in
seconds."""
_SOURCE = "/tertulia/"


class Holds:
    """The longest callback of the event loop."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.longest, self.by, self.collecting, self.long = 0.0, "", 0.0, 0
        self.where: Counter[str] = Counter()
        self._began: float | None = None
        self._places: Counter[str] = Counter()
        self._collected = self._collect_began = 0.0

    def begin(self) -> float:
        """Start timing a callback."""
        self._collected = 0.0
        self._began = time.perf_counter()
        return time.thread_time()

    def end(self, handle: asyncio.Handle, began: float) -> None:
        """Stop timing a callback."""
        took = time.thread_time() - began
        self._began = None
        places, self._places = self._places, Counter()
        if took >= LONG:
            self.long += 1
        if took > self.longest:
            self.longest, self.by, self.collecting = took, _name(handle), self._collected
            self.where = places

    def collect(self, phase: str, _: dict[str, int]) -> None:
        """Start or stop timing a garbage collection."""
        if threading.get_ident() != self.thread:
            return
        if phase == "start":
            self._collect_began = time.thread_time()
        else:
            self._collected += time.thread_time() - self._collect_began

    def take(self) -> dict[str, Any]:
        """Return and reset the longest callback: its duration, its name, and where the time was
        spent."""
        result = {
            "held": self.longest,
            "by": self.by,
            "collecting": self.collecting,
            "long": self.long,
            "where": self.where.most_common(12),
        }
        self.longest, self.by, self.collecting, self.long = 0.0, "", 0.0, 0
        self.where = Counter()
        return result

    def watch(self) -> None:
        """Sample the stack of long callbacks until the process ends."""
        while True:
            time.sleep(LOOK_SECONDS)  # A sampling interval.
            began = self._began
            if began is None or time.perf_counter() - began < LONG:
                continue
            frame = sys._current_frames().get(self.thread)
            self._places.update(set(_places(frame)))


def _places(frame: FrameType | None) -> "list[str]":
    """Return the running functions of this project."""
    places = []
    while frame is not None:
        code = frame.f_code
        if _SOURCE in code.co_filename:
            file = code.co_filename.rpartition(_SOURCE)[2]
            if not file.startswith("cli/"):
                places.append(f"{file}:{code.co_qualname}")
        frame = frame.f_back
    return places


def _name(handle: asyncio.Handle) -> str:
    callback: Any = handle._callback  # type: ignore[attr-defined]  # asyncio's own
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return str(getattr(task.get_coro(), "__qualname__", task))
    return str(getattr(callback, "__qualname__", callback))


def measured(holds: Holds) -> None:
    """Measure each callback from now on."""
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        if holds.loop is None:
            holds.loop = asyncio.get_running_loop()
        began = holds.begin()
        run(handle)
        holds.end(handle, began)

    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]  # on purpose
    gc.callbacks.append(holds.collect)


def _obey(holds: Holds, logs: list[Log]) -> None:
    for line in sys.stdin:
        log = logs[-1]
        match line.strip():
            case "break":
                _break(log)
            case "expire":
                _run(holds, expired_once(log))
            case "prune":
                # Keep the data that waiting clients haven't received. Otherwise, their queues would
                # end.
                _run(holds, pruned_once(log.store, time.time() - UNTOLD))
            case _:
                pass
        sys.stdout.write(json.dumps(holds.take()) + "\n")
        sys.stdout.flush()


def _run(holds: Holds, work: Coroutine[Any, Any, None]) -> None:
    assert holds.loop is not None
    asyncio.run_coroutine_threadsafe(work, holds.loop).result()


def _break(log: Log) -> None:
    """Make the next commit fail."""
    commit = log.store.commit

    async def failing(_batch: Batch, _before: Position | None = None) -> None:
        log.store.commit = commit  # type: ignore[method-assign]  # as it was
        raise OSError("the bench wanted it so")

    log.store.commit = failing  # type: ignore[method-assign, assignment]  # for once


def main() -> None:
    """Run the command line with a measured event loop."""
    holds = Holds()
    logs: list[Log] = []
    init = Log.__init__

    def kept(log: Log, *arguments: Any, **keywords: Any) -> None:
        init(log, *arguments, **keywords)
        logs.append(log)

    Log.__init__ = kept  # type: ignore[method-assign, assignment]  # to have it here
    serve.run = asyncio.run
    measured(holds)
    threading.Thread(target=_obey, args=(holds, logs), daemon=True).start()
    threading.Thread(target=holds.watch, daemon=True).start()
    cli.main()


if __name__ == "__main__":
    main()
