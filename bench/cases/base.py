"""A server with default settings, compared with another checkout: the cost of starting it, and its
memory at rest. `BASE=DIR` names the checkout."""

import os
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from bench import processes, serving
from bench.api import HOST
from bench.arithmetic import Target
from bench.cases import Case
from bench.cases.starting import free_port
from bench.context import Bench
from bench.report import Line

SETTLED = 1.0
"""Seconds after the first response."""
MOST = 1.1
"""The largest allowed multiple of the other checkout's value."""
PATIENCE = 60.0


class _Rest(NamedTuple):
    starting: float
    """Processor time until the first response, in seconds."""
    memory: float
    """In bytes."""


def _measure(bench: Bench) -> Iterator[Line]:
    if not (base := os.environ.get("BASE")):
        return
    roots = (serving.ROOT, Path(base).resolve())
    for root in roots:  # Otherwise, a new checkout would compile its modules at each start.
        subprocess.run([sys.executable, "-m", "compileall", "-q", root / "src"], check=True)
    rests: dict[Path, list[_Rest]] = {root: [] for root in roots}
    for n, root in enumerate(chain(*[roots] * (3 if bench.quick else 8))):
        directory = bench.directory / f"base-{n}"
        rests[root].append(_started(root, directory))
    mine, other = (rests[root] for root in roots)
    yield _line(
        "base_start",
        "startup to first response, nothing configured, processor time",
        "ms",
        [rest.starting for rest in mine],
        [rest.starting for rest in other],
    )
    yield _line(
        "base_memory",
        "idle memory, nothing configured",
        "MiB",
        [rest.memory for rest in mine],
        [rest.memory for rest in other],
    )


def _line(name: str, title: str, unit: str, values: list[float], other: list[float]) -> Line:
    line = Line(name, title, unit, values, limit=other, limit_title="other checkout")
    line.targets = [Target("of the other", line.of_limit or 0, MOST, "x")]
    return line


def _started(root: Path, directory: Path) -> _Rest:
    """Create an organization with the checkout, and start its server."""
    program = [sys.executable, "-m", "tertulia"]
    how: dict[str, Any] = {
        "env": {**serving.environment(), "PYTHONPATH": str(root / "src")},
        "cwd": root,
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
    }
    founder = ["--org", "Bench", "--email", "ann@example.com", "--full-name", "Ann"]
    founder += ["--password", secrets.token_urlsafe()]
    data = ["--data-dir", str(directory)]
    subprocess.run([*program, "init", *data, *founder, "--yes"], check=True, **how)
    port = free_port()
    command = [*program, "serve", *data, "--host", HOST, "--port", str(port)]
    process: subprocess.Popen[bytes] = subprocess.Popen(command, **how)
    try:
        _wait_for(f"http://{HOST}:{port}/api/v1/server_settings", process)
        starting = sum(processes.cpu_of(processes.family(process.pid)).values())
        time.sleep(SETTLED)  # Memory is measured when idle.
        return _Rest(starting, sum(map(processes.pss, processes.family(process.pid))))
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE):
                return
        except urllib.error.URLError:
            time.sleep(0.01)  # Another process can only be polled.
    raise serving.BenchError("A server with nothing configured did not start.")


CASE = Case("base", "starting and memory with nothing configured, compared with BASE=DIR", _measure)
