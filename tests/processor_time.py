"""Where the tests' time goes: `make test-times`, or `pytest -p tests.processor_time`.

What processors did for each test, in its own process and in those that it started, is a line of
`TEST_TIMES` (a file; `build/times` unless it is given) for each: `python -m
tests.processor_time` says which modules take most, and which tests wait most while no processor has
anything to do for them. A module's fixtures are its first test's, and what ends within a tenth of a
second of its start may be missed.
"""

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

KINDS = ("tests", "postgresql", "browser", "programs")
"""Whose processors' time it is: the test's own process, and what kind of another."""
QUEUED = "queued"
"""Seconds in which one of those could have gone on, and others had the processors."""

_FILE = Path(os.environ.get("TEST_TIMES", "build/times"))
_TICKS = os.sysconf("SC_CLK_TCK")
_SECONDS = 0.1
_WORKER = "PYTEST_XDIST_WORKER"
_MARKS = ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID")


class _Meter(threading.Thread):
    """Looks again and again at what the processes that this one has started took so far."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._taken: dict[str, float] = dict.fromkeys((*KINDS, QUEUED), 0.0)
        self._known: dict[int, tuple[str, float, float] | None] = {}
        """By process ID: when it began, its seconds so far, and those in which it was queued; None
        for another's."""
        self._threads: dict[str, float] = {}
        """Seconds in which each of this process's threads was queued so far."""
        self._own = 0.0
        self._lock = threading.Lock()
        self._marks = {f"{name}={os.environ.get(name, '')}".encode() for name in _MARKS}

    def run(self) -> None:
        while True:
            time.sleep(_SECONDS)
            self.look()

    def look(self) -> dict[str, float]:
        """Seconds so far, by kind."""
        with self._lock:
            before = time.thread_time()
            self._look()
            self._taken[QUEUED] += self._own_queued()
            self._own += time.thread_time() - before
            return {**self._taken, "tests": time.process_time() - self._own}

    def _own_queued(self) -> float:
        """Seconds in which threads of this process were queued since this was last asked."""
        before, self._threads = self._threads, {}
        for thread in os.listdir("/proc/self/task"):
            self._threads[thread] = _queued(f"self/task/{thread}")
        # (A number may come again.)
        return sum(max(0.0, s - before.get(one, 0.0)) for one, s in self._threads.items())

    def _look(self) -> None:
        there = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}
        self._known = {pid: seen for pid, seen in self._known.items() if pid in there}
        for pid in sorted(there):
            if pid in self._known and self._known[pid] is None:
                continue
            try:
                stat = Path(f"/proc/{pid}/stat").read_text()
            except OSError:
                continue
            name, _, rest = stat.partition("(")[2].rpartition(")")
            fields = rest.split()
            seconds = (int(fields[11]) + int(fields[12])) / _TICKS
            seen = self._known.get(pid)
            if seen is None or seen[0] != fields[19]:
                if not self._is_ours(pid, int(fields[1])):
                    self._known[pid] = None
                    continue
                seen = (fields[19], 0.0, 0.0)
            queued = _queued(pid)
            self._taken[_kind(name)] += seconds - seen[1]
            self._taken[QUEUED] += queued - seen[2]
            self._known[pid] = (fields[19], seconds, queued)

    def _is_ours(self, pid: int, parent: int) -> bool:
        if parent == os.getpid() or self._known.get(parent) is not None:
            return True
        try:
            # Of those that went on without who started them.
            return self._marks <= {*Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}
        except OSError:
            return False


def _queued(process: int | str) -> float:
    """Seconds that the process's first thread was ready to run and did not; 0 where the system does
    not tell."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def _kind(name: str) -> str:
    if name == "postgres":
        return "postgresql"
    return "browser" if name.startswith(("chrom", "node", "headless")) else "programs"


_began = time.time()
_meter = _Meter()


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or config.getoption("numprocesses", None) in {None, 0}:
        _meter.start()
    else:
        _FILE.parent.mkdir(parents=True, exist_ok=True)
        _FILE.write_text("")


def pytest_collection_finish() -> None:
    if _meter.is_alive():
        _write("collection", _began, dict.fromkeys((*KINDS, QUEUED), 0.0))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    began, before = time.time(), _meter.look()
    found = yield
    _write(item.nodeid, began, before)
    return found


def _write(name: str, began: float, before: dict[str, float]) -> None:
    taken = {kind: round(s - before[kind], 4) for kind, s in _meter.look().items()}
    line = {"test": name, "began": began, "ended": time.time(), "worker": os.environ.get(_WORKER)}
    with _FILE.open("a") as file:
        file.write(json.dumps({**line, **taken}) + "\n")


def _waited(line: dict[str, Any]) -> float:
    """Seconds in which nothing was done for it, though processors were free."""
    done: float = sum(line[kind] for kind in (*KINDS, QUEUED))
    wall: float = line["ended"] - line["began"]
    return max(0.0, wall - done)


_COLUMNS = ("all", *KINDS, "waited")


def _most(lines: Iterable[dict[str, Any]], by: str, order: str = "all") -> None:
    none = dict.fromkeys(("times", *_COLUMNS), 0.0)
    sums: dict[str, dict[str, float]] = defaultdict(none.copy)
    for line in lines:
        name = line["test"]
        module = name.partition("::")[0]
        database = next((d for d in ("sqlite", "postgresql") if f"[{d}" in name), "neither")
        keys = {"module": module, "folder": module.rpartition("/")[0], "database": database}
        keys["test"] = name.partition("[")[0]
        own = {kind: line[kind] for kind in KINDS}
        own |= {"times": 1, "all": sum(own.values()), "waited": _waited(line)}
        for key in (keys[by], "all of it"):
            for column, value in own.items():
                sums[key][column] += value
    print(f"\n{'times':>6} " + " ".join(f"{column:>10}" for column in _COLUMNS) + f"  {by}")
    for key, row in sorted(sums.items(), key=lambda pair: -pair[1][order])[:60]:
        print(f"{row['times']:6.0f} " + " ".join(f"{row[c]:10.1f}" for c in _COLUMNS) + f"  {key}")


if __name__ == "__main__":
    read = [json.loads(line) for line in _FILE.read_text().splitlines()]
    for one in sys.argv[1:] or ("database", "folder", "module", "test"):
        _most(read, one)
    print("\nThose that wait most:")
    _most(read, "test", "waited")
