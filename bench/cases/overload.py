"""Overload: accepted requests, refusals, and recovery."""

from collections.abc import Iterator
from itertools import cycle, islice
from statistics import median

from bench import api, processes
from bench.arithmetic import Sample, Target, quantile
from bench.cases import Case
from bench.context import Bench
from bench.datasets import COMPANY
from bench.organization import MIDDLE, SIZES, SMALL
from bench.report import Line

CLIENTS, QUICK_CLIENTS = 4_000, 3_000
SECONDS = 8.0
ENOUGH = 32
"""The number of senders that use the server's full capacity without overloading it."""
LONGEST_WAIT = 1.0
"""The server's default setting, in seconds."""


def _measure(bench: Bench) -> Iterator[Line]:
    count = min(QUICK_CLIENTS if bench.quick else CLIENTS, bench.most_connections)
    with bench.fresh(COMPANY) as served:
        people, server = served.made.people, served.server
        # Waiting clients aren't in the busy channel.
        waiting = people[SIZES[SMALL] : SIZES[SMALL] + SIZES[MIDDLE] - 50]
        few = people[: SIZES[SMALL]]
        sends = [
            api.send(who, SMALL, f"topic {n}") for n, who in enumerate(islice(cycle(few), count))
        ]
        probe = api.send(few[0], MIDDLE, "overload")
        bench.gather("overload", server, waiting, probe)

        def alone() -> float:
            return median(bench.requests(server, sends[0]).latencies)

        alone()  # Warm up.
        capacity = bench.requests(server, *sends[:ENOUGH])
        before = alone()
        resident = processes.forget_peak(server.pid)
        storm = bench.storm(server, "overload", sends, probe, SECONDS / (2 if bench.quick else 1))
        grown = processes.peak(server.pid) - resident
        bench.tell(f"  all were answered {storm.counts['drained']:.1f} s after the last came")
        after = alone()
        bench.part("overload")
    yield _accepted(count, storm, capacity)
    yield _latency("accepted", "accepted requests", storm, "accepted", 1.5 * LONGEST_WAIT)
    yield _latency("refused", "refused requests", storm, "refused", 0.5 * LONGEST_WAIT)
    title = f"delivery to {len(waiting)} waiting clients"
    yield _latency("heard", title, storm, "heard", 2 * LONGEST_WAIT)
    line = Line("overload_memory", "overload: peak memory per connection", "KiB", [])
    line.rounds = [grown / count]
    line.targets = [Target("", line.value, 40 * 1024, "KiB")]
    yield line
    line = Line("overload_after", "after overload: POST /messages, 1 sender", "ms", [after])
    line.limit, line.limit_title = [before], "before"
    line.targets = [Target("relative to before", after / before, 1.5, "x")]
    yield line


def _accepted(count: int, storm: Sample, capacity: Sample) -> Line:
    accepted = len(storm.more["accepted"]) / storm.seconds
    possible = len(capacity.latencies) / capacity.seconds
    line = Line("overload", f"overload, {count:,} senders: accepted rate", "/s", [accepted])
    line.limit, line.limit_title = [possible], f"with {ENOUGH}"
    line.cpu = storm.server_cpu / storm.operations
    line.generator = storm.generator
    line.targets = [Target("of capacity", accepted / possible, 0.7, "%", at_least=True)]
    line.more = {"refused_per_second": len(storm.more["refused"]) / storm.seconds}
    return line


def _latency(name: str, title: str, storm: Sample, of: str, bound: float) -> Line:
    results = storm.more[of]
    line = Line(f"overload_{name}", f"overload: {title}", "ms", [median(results)])
    line.p99 = quantile(results, 0.99)
    line.targets = [Target("p99", line.p99, bound, "ms")]
    return line


CASE = Case(
    "overload", "thousands of concurrent senders: refusals and recovery", _measure, is_quick=False
)
