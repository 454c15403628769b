"""Memory at rest: the demonstration organization, as `make serve` starts it."""

import sys
import time
from collections.abc import Iterator

from bench import processes, serving
from bench.arithmetic import Target
from bench.cases import Case
from bench.context import Bench
from bench.report import Line

SETTLED = 1.0
"""Seconds after it was ready."""


def _measure(bench: Bench) -> Iterator[Line]:
    found: list[float] = []
    again: list[float] = []
    limits: list[float] = []
    counts: list[int] = []
    for _ in range(1 if bench.quick else 3):
        with bench.datasets.empty() as config:
            command = serving.server_command(config.data_path, config.database_url)
            command.append("--demo")
            # The first start makes the organization, the second one finds it.
            for sizes in (found,) if bench.quick else (found, again):
                with serving.running(command, config.data_path / "serve.log") as server:
                    time.sleep(SETTLED)  # It is rest that is measured.
                    family = processes.family(server.pid)
                    counts.append(len(family))
                    sizes.append(sum(processes.pss(pid) for pid in family))
        bare = [sys.executable, "-m", "bench.bare"]
        with serving.running(bare, bench.directory / "bare.log", '{"/events": ""}') as limit:
            limits.append(processes.pss(limit.pid))
    line = Line("memory", "memory at rest, demonstration", "MiB", found)
    line.limit, line.limit_title = limits, "bare protocol"
    if again:
        line.more["restarted_bytes"] = max(again)
    line.targets = [
        Target("memory", line.value, 70 * 2**20, "MiB"),
        Target("processes", max(counts), 1, ""),
    ]
    if again:
        line.targets.append(Target("started again", max(again), 60 * 2**20, "MiB"))
    yield line


CASE = Case("memory", "the demonstration organization's memory, at rest", _measure)
