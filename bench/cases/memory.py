"""Memory of the idle demo organization as started by `make serve`, and of a company with 1,000,000
messages after everyone's clients have connected."""

import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Final

from pyroaring import BitMap

from bench import api, processes, serving
from bench.arithmetic import Target
from bench.cases import Case
from bench.context import Bench
from bench.datasets import OLD_COMPANY, SHAPES, Made
from bench.report import Line
from tertulia.store.codec import CHUNK_BITS
from tertulia.store.store import database_at

SETTLED = 1.0
"""Seconds after it's ready."""
MOST: Final = 300 * 2**20
"""The most memory of the company, in bytes: its state, 48 MiB of unread messages, 48 MiB of
fragments, and the allocator's overhead."""


def _measure(bench: Bench) -> Iterator[Line]:
    results: list[float] = []
    again: list[float] = []
    limits: list[float] = []
    counts: list[int] = []
    for _ in range(1 if bench.quick else 3):
        with bench.datasets.empty() as config:
            command = serving.server_command(config.data_path, config.database_url)
            command.append("--demo")
            # The first start creates the organization, and the second one loads it.
            for sizes in (results,) if bench.quick else (results, again):
                with serving.running(command, config.data_path / "serve.log") as server:
                    time.sleep(SETTLED)  # Memory is measured when idle.
                    family = processes.family(server.pid)
                    counts.append(len(family))
                    sizes.append(sum(processes.pss(pid) for pid in family))
        bare = [sys.executable, "-m", "bench.bare"]
        with serving.running(bare, bench.directory / "bare.log", '{"/events": ""}') as limit:
            limits.append(processes.pss(limit.pid))
    line = Line("memory", "idle memory, demo", "MiB", results)
    line.limit, line.limit_title = limits, "bare protocol"
    if again:
        line.more["restarted_bytes"] = max(again)
    line.targets = [
        Target("memory", line.value, 70 * 2**20, "MiB"),
        Target("processes", max(counts), 1, ""),
    ]
    if again:
        line.targets.append(Target("after restart", max(again), 60 * 2**20, "MiB"))
    yield line


def _team(bench: Bench) -> Iterator[Line]:
    """All clients connect after a start, with 1,000,000 messages, and then again."""
    teams = (60, 200) if bench.quick else (60, 200, 5_200)
    with bench.fresh(OLD_COMPANY, refuses=False, prepare=read_with_gaps) as served:
        before = processes.pss(served.server.pid)
        for size in teams:
            results: list[float] = []
            for _ in range(2):
                with ThreadPoolExecutor(8) as clients:
                    for _ in clients.map(partial(_come, served.port), served.made.people[:size]):
                        pass
                time.sleep(SETTLED)  # Memory is measured when idle.
                results.append(processes.pss(served.server.pid))
            line = Line(
                f"memory_{size}", f"memory, clients of {size:,} people connected", "MiB", results
            )
            line.limit, line.limit_title = [before, before], "no clients"
            line.targets = [Target("", max(results), MOST, "MiB")]
            yield line


def _come(port: int, person: str) -> None:
    api.asked(port, api.register(person))


def read_with_gaps(made: Made) -> None:
    """Mark every sixth message as read for everyone, at irregular distances, which takes the most
    memory."""
    rng = random.Random(14)
    chunks = range(SHAPES[OLD_COMPANY].messages >> CHUNK_BITS)
    patterns = [
        [
            BitMap(rng.sample(range(n << CHUNK_BITS, (n + 1) << CHUNK_BITS), 10_000)).serialize()
            for n in chunks
        ]
        for _ in range(20)
    ]
    first = made.organization.first_user_id
    database = database_at(made.config.data_path, made.config.database_url)
    with closing(database.connect(readonly=False)) as connection:
        connection.run("BEGIN")
        connection.run_many(
            "INSERT INTO read_state (user_id, chunk, bitmap) VALUES (?, ?, ?)"
            " ON CONFLICT (user_id, chunk) DO UPDATE SET bitmap = excluded.bitmap",
            [
                (first + number, chunk, patterns[number % len(patterns)][chunk])
                for number in range(len(made.people))
                for chunk in chunks
            ],
        )
        connection.run("COMMIT")


def _both(bench: Bench) -> Iterator[Line]:
    yield from _measure(bench)
    yield from _team(bench)


CASE = Case("memory", "memory, idle and with everyone's clients connected", _both)
