"""Many waiting clients: their memory, a message to all of them, and continuous delivery."""

from collections.abc import Iterator
from functools import partial
from itertools import cycle, islice
from statistics import median

from bench import api, processes
from bench.arithmetic import Rounds, Target, ratios
from bench.cases import Case
from bench.context import Bench
from bench.datasets import OLD_COMPANY
from bench.organization import LARGE, SIZES
from bench.report import Line
from bench.serving import Running

CLIENTS, QUICK_CLIENTS = 10_000, 2_000
WITHIN = 0.25 / CLIENTS
"""Seconds for each client that a message is delivered to."""
CYCLING = 1_000
"""The number of clients that poll repeatedly."""


def _measure(bench: Bench) -> Iterator[Line]:
    wanted = QUICK_CLIENTS if bench.quick else CLIENTS
    count = min(wanted, bench.most_connections)
    if count < wanted:
        bench.tell(f"  only {count:,} connections: the limit of open files (ulimit -Hn) is low")
    with bench.fresh(OLD_COMPANY) as served, bench.bare(served) as bare:
        everybody = served.made.people[: SIZES[LARGE]]
        waiting = list(islice(cycle(everybody), count))
        send = api.send(everybody[0], LARGE, "waiting")
        servers = {"bare": bare, "ours": served.server}

        def gathered(server: Running, name: str, people: list[str]) -> int:
            """Return the growth of the server's memory in bytes."""
            before = processes.pss(server.pid)
            bench.gather(name, server, people, send)
            return processes.pss(server.pid) - before

        # The first clients make the server load modules, which isn't counted.
        for name, server in servers.items():
            gathered(server, name, waiting[:100])
            bench.part(name)
        grown = {name: gathered(server, name, waiting) for name, server in servers.items()}
        line = Line("memory_waiting", f"memory per waiting client, {count:,} clients", "KiB", [])
        line.rounds = [grown["ours"] / count]
        line.limit, line.limit_title = [grown["bare"] / count], "bare protocol"
        line.targets = [Target("", line.value, 12 * 1024, "KiB")]
        yield line

        result = bench.interleaved(
            {name: partial(bench.fleet, server, name, "bursts") for name, server in servers.items()}
        )
        yield _limit(count, result["bare"])
        yield _burst(count, result)
        for name in servers:
            bench.part(name)

        for name, server in servers.items():
            gathered(server, name, waiting[:CYCLING])
        result = bench.interleaved(
            {
                "bare": partial(bench.fleet, bare, "bare", "cycles"),
                "cycles": partial(bench.fleet, served.server, "ours", "cycles"),
                "flood": partial(bench.fleet, served.server, "ours", "flood"),
            }
        )
        for name in servers:
            bench.part(name)
        yield _cycles(result)
        yield _flood(result)


def _limit(count: int, bare: Rounds) -> Line:
    """Measure the limit of the generator and the machine."""
    title = f"limit: bare protocol, to {count:,} waiting clients"
    rates = [count / took for took in bare.medians()]
    return Line("bare_all", title, "/s", rates, cpu=bare.cpu, generator=bare.generator)


def _burst(count: int, rounds: dict[str, Rounds]) -> Line:
    ours, bare = rounds["ours"], rounds["bare"]
    line = Line("deliver_all", f"1 message to {count:,} waiting clients", "ms", ours.medians())
    line.p99 = ours.p99()
    line.limit, line.limit_title = bare.medians(), "bare protocol"
    line.cpu, line.generator = ours.cpu, ours.generator
    part = median(ratios(bare.medians(), ours.medians()))
    line.targets = [
        Target("p50", line.value, WITHIN * count, "ms"),
        Target("relative to bare protocol's rate", part, 0.5, "%", at_least=True),
    ]
    line.more = {
        "deliveries_per_second": count / line.value,
        "bare_deliveries_per_second": count / median(bare.medians()),
    }
    return line


def _cycles(rounds: dict[str, Rounds]) -> Line:
    ours, bare = rounds["cycles"], rounds["bare"]
    line = Line("cycles", f"deliver and poll, {CYCLING:,} clients", "/s", ours.rates("answers"))
    line.limit, line.limit_title = bare.rates("answers"), "bare protocol"
    line.cpu, line.generator = ours.cpu, ours.generator
    line.targets = [Target("", line.value, 20_000, "/s", at_least=True)]
    line.more = {"bare_generator": bare.generator, "bare_cpu": bare.cpu}
    return line


def _flood(rounds: dict[str, Rounds]) -> Line:
    """Measure more messages than can be delivered individually: each response contains several."""
    ours, bare = rounds["flood"], rounds["bare"]
    line = Line("flood", "deliveries, messages sent without pause", "/s", ours.rates("messages"))
    line.limit, line.limit_title = bare.rates("messages"), "bare protocol, one message each"
    line.cpu, line.generator = ours.cpu, ours.generator
    line.more = {"answers_per_second": median(ours.rates("answers"))}
    return line


CASE = Case("wait", "10,000 waiting clients: memory, 1 message to all, deliver and poll", _measure)
