"""Several nodes on one PostgreSQL: their combined rate, and the cost of other nodes' messages at
each."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from statistics import median

from bench import api
from bench.arithmetic import Rounds, Sample, Target, ratios
from bench.cases import Case
from bench.context import Bench
from bench.datasets import COMPANY
from bench.organization import SMALL
from bench.report import Line
from bench.serving import Running

NODES = (1, 2, 3)
SENDERS = (8, 16, 96)
FAST_MACHINE = 8000
"""Empty requests per second from which a machine should reach `RATE` messages per second."""
RATE = 2000
FOREIGN_SECONDS = 60e-6
"""The allowed cost of another node's message if nobody waits for it at this node, in seconds."""


def _measure(bench: Bench) -> Iterator[Line]:
    if not bench.cluster:
        bench.tell("  (several nodes need DATABASE=postgresql)")
        return
    with ExitStack() as stack:
        served = stack.enter_context(bench.fresh(COMPANY, refuses=False))
        others = [stack.enter_context(bench.joined(served, n)) for n in range(1, max(NODES))]
        people, servers = served.made.people, [served.server, *others]

        def send(nodes: list[Running], senders: int) -> Sample:
            asked = [api.send(p, SMALL, f"topic {n}") for n, p in enumerate(people[:senders])]
            return bench.spread(nodes, *asked)

        empty = [api.empty(person) for person in people[:8]]
        for senders in SENDERS:
            result = bench.interleaved(
                {
                    "empty": lambda: bench.requests(served.server, *empty),
                    **{str(nodes): partial(send, servers[:nodes], senders) for nodes in NODES},
                }
            )
            yield from _together(result, senders)
        yield from _foreign(bench, servers, people)


def _together(rounds: dict[str, Rounds], senders: int) -> Iterator[Line]:
    """Yield the rates of this many senders at each number of nodes."""
    alone, limit = rounds["1"].rates(), rounds["empty"].rates()
    is_fast = median(limit) >= FAST_MACHINE
    for nodes in NODES:
        of_nodes = rounds[str(nodes)]
        rates = of_nodes.rates()
        targets = []
        if nodes == 1 and senders == min(SENDERS) and is_fast:
            targets.append(Target("", median(rates), RATE, "/s", at_least=True))
        if nodes > 1:
            ratio = median(ratios(rates, alone))
            targets.append(Target("relative to 1 node", ratio, 1.0, "x", at_least=True))
        yield Line(
            f"nodes_{nodes}_senders_{senders}",
            f"POST /messages, {senders} senders, {nodes} node{'s' if nodes > 1 else ''}",
            "/s",
            rates,
            limit=limit if nodes == 1 else alone,
            limit_title="empty requests" if nodes == 1 else "1 node",
            targets=targets,
            cpu=of_nodes.cpu,
            generator=of_nodes.generator,
            more={
                "database_cpu_per_operation": _each(of_nodes, "database"),
                **{
                    f"node_{n}_cpu_per_operation": _each(of_nodes, f"node {n}")
                    for n in range(nodes)
                },
                "p99_seconds": of_nodes.p99(),
            },
        )


def _each(rounds: Rounds, name: str) -> float:
    """Return the seconds of this process per operation."""
    operations = sum(sample.operations for sample in rounds.samples)
    return sum(sample.counts[name] for sample in rounds.samples) / operations


def _foreign(bench: Bench, servers: list[Running], people: list[str]) -> Iterator[Line]:
    """Yield the cost of another node's messages for an idle node."""
    for senders in (1, 8):
        asked = [api.send(p, SMALL, f"topic {n}") for n, p in enumerate(people[:senders])]

        def send(asked: list[str] = asked) -> Sample:
            return bench.spread([servers[0]], *asked, beside=servers[1:2])

        rounds = bench.interleaved({"send": send})["send"]
        each = [s.counts["beside 0"] / s.operations for s in rounds.samples]
        yield Line(
            f"foreign_{senders}",
            f"message from another node with {senders} sender{'s' if senders > 1 else ''}:"
            " CPU of an idle node",
            "µs",
            each,
            targets=[Target("", median(each), FOREIGN_SECONDS, "µs")],
        )


CASE = Case("nodes", "several nodes on one PostgreSQL", _measure)
