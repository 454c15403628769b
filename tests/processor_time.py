"""Where the tests' time goes: `make test-times`, or `pytest -p tests.processor_time`.

What processors did for each test, in its own process and in those that it started, is a line of
`TEST_TIMES` (a file; `build/times` unless it is given) for each: `python -m
tests.processor_time` says which modules take most. A module's fixtures are its first test's, and
what ends within a tenth of a second of its start may be missed.
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

_FILE = Path(os.environ.get("TEST_TIMES", "build/times"))
_TICKS = os.sysconf("SC_CLK_TCK")
_SECONDS = 0.1
_WORKER = "PYTEST_XDIST_WORKER"
_MARKS = ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID")


class _Meter(threading.Thread):
    """Looks again and again at what the processes that this one has started took so far."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._taken: dict[str, float] = dict.fromkeys(KINDS, 0.0)
        self._known: dict[int, tuple[str, float] | None] = {}
        """By process ID: when it began and its seconds so far; None for another's."""
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
            self._own += time.thread_time() - before
            self._taken["tests"] = time.process_time() - self._own
            return dict(self._taken)

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
                seen = (fields[19], 0.0)
            self._taken[_kind(name)] += seconds - seen[1]
            self._known[pid] = (fields[19], seconds)

    def _is_ours(self, pid: int, parent: int) -> bool:
        if parent == os.getpid() or self._known.get(parent) is not None:
            return True
        try:
            # Of those that went on without who started them.
            return self._marks <= {*Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}
        except OSError:
            return False


def _kind(name: str) -> str:
    if name == "postgres":
        return "postgresql"
    return "browser" if name.startswith(("chrom", "node", "headless")) else "programs"


_meter = _Meter()


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or config.getoption("numprocesses", None) in {None, 0}:
        _meter.start()
    else:
        _FILE.parent.mkdir(parents=True, exist_ok=True)
        _FILE.write_text("")


def pytest_collection_finish() -> None:
    if _meter.is_alive():
        _write("collection", 0, dict.fromkeys(KINDS, 0.0))


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


def _most(lines: Iterable[dict[str, Any]], by: str) -> None:
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * (len(KINDS) + 2))
    for line in lines:
        name = line["test"]
        module = name.partition("::")[0]
        database = next((d for d in ("sqlite", "postgresql") if f"[{d}" in name), "neither")
        keys = {"module": module, "folder": module.rpartition("/")[0], "database": database}
        keys["test"] = name.partition("[")[0]
        for key in (keys[by], "all of it"):
            row = sums[key]
            row[0] += 1
            for number, kind in enumerate(KINDS):
                row[number + 1] += line[kind]
                row[-1] += line[kind]
    print(f"\n{'times':>6} {'all':>8} " + " ".join(f"{k:>10}" for k in KINDS) + f"  {by}")
    for key, row in sorted(sums.items(), key=lambda pair: -pair[1][-1])[:60]:
        print(
            f"{row[0]:6.0f} {row[-1]:8.1f} "
            + " ".join(f"{s:10.1f}" for s in row[1:-1])
            + f"  {key}"
        )


if __name__ == "__main__":
    read = [json.loads(line) for line in _FILE.read_text().splitlines()]
    for one in sys.argv[1:] or ("database", "folder", "module", "test"):
        _most(read, one)
