"""From starting the program to its first response."""

import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench import api, serving
from bench.arithmetic import Target
from bench.cases import Case
from bench.context import Bench
from bench.datasets import OLD_COMPANY, TEAM
from bench.report import Line


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind((api.HOST, 0))
        return int(listener.getsockname()[1])


def _bare(bench: Bench) -> float:
    command = [sys.executable, "-m", "bench.bare"]
    start = time.perf_counter()
    with serving.running(command, bench.directory / "bare.log", '{"/events": ""}'):
        return time.perf_counter() - start


def _measure(bench: Bench) -> Iterator[Line]:
    with bench.datasets.copied(TEAM) as team, bench.datasets.copied(OLD_COMPANY) as company:
        sets = {"small": (team, 0.6), "5,000 users, 1,000,000 messages": (company, 2.0)}
        result: dict[str, list[float]] = {title: [] for title in sets}
        limits: list[float] = []
        for _ in range(2 if bench.quick else 5):
            limits.append(_bare(bench))
            for title, (made, _) in sets.items():
                port = free_port()
                path = Path(made.config.data_dir)
                command = serving.server_command(
                    path, made.config.database_url, "--port", str(port)
                )
                request = api.empty(made.people[0])
                result[title].append(
                    serving.started(command, port, request, bench.directory / "start.log")
                )
    for title, (_, bound) in sets.items():
        line = Line(f"start_{title.split()[0]}", f"startup to first response, {title}", "s", [])
        line.rounds = result[title]
        line.limit, line.limit_title = limits, "bare protocol"
        line.targets = [Target("", line.value, bound, "s")]
        yield line


CASE = Case("start", "from starting the server to its first response", _measure)
