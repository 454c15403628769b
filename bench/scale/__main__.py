"""`python -m bench.scale`: the resources that an organization of 100,000 people would need.

The costs are measured by `python -m bench --database postgresql --only nodes --json FILE`
(`--figures FILE`; by default, recorded ones). First the simulation has to reproduce the measured
rates of one, two, and three nodes; then it predicts larger setups.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Final

from bench.scale.simulation import Costs, Setup, at_most, simulated

RECORDED: Final = Path(__file__).with_name("measured.json")
BY_TURNS: Final = Path(__file__).with_name("measured_by_turns.json")
NODES: Final = (1, 2, 3)
SENDERS: Final = (8, 16, 96)
CORES: Final = 2
"""Cores of the machine where everything ran."""
WITHIN: Final = 0.2
"""The allowed deviation from the measurements."""

GATHERED: Final = 0.02
"""How long idle nodes left announcements unread when this was measured, in seconds."""
TRIP: Final = 300e-6
"""The duration of a round trip between two processes of that machine, in seconds."""
TURNS: Final = 6
FIT_SECONDS: Final = 1.5

# The division of a node's time for a message, according to a profile.
PREPARE, DECIDE, WRITE = 0.55, 0.10, 0.15
POLL: Final = 45e-6
"""A node's time for delivering a message to one client, with the next poll, in seconds."""
NETWORK: Final = 300e-6
"""The duration of a round trip between machines, in seconds."""
DISK: Final = 500e-6
"""The duration of a commit on a server's disk, in seconds."""

ONLINE: Final = 20_000
PEAK: Final = 2_000
"""Messages per second."""
AUDIENCES: Final = (10, 50, 200)
"""The average numbers of recipients who are online."""
GROWING: Final = (4, 8, 16, 32)
MACHINES: Final = (2, 4, 8)
"""Cores of one machine."""
WORKERS: Final = (1, 2, 4, 8)
PATIENCE: Final = 0.25
"""The time within which 99% of messages are sent, in seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--figures", type=Path, default=RECORDED, help="what the bench wrote")
    options = parser.parse_args()
    runs = [Run(_lines(options.figures), forwards=True, gathered=GATHERED)]
    if options.figures == RECORDED:
        # Measured on the same day, with nodes that take turns.
        runs.append(Run(_lines(BY_TURNS), forwards=False, gathered=0.0))
    costs = fitted(runs)
    print("| a message's cost | µs |\n|---|---:|")
    for name, seconds in asdict(costs).items():
        print(f"| {name} | {seconds * 1e6:,.0f} |")
    print()
    worst = 0.0
    print("| way of writing | senders | nodes | measured | simulated | deviation |")
    print("|---|---:|---:|---:|---:|---:|")
    for run in runs:
        for senders in SENDERS:
            for nodes in NODES:
                rate = run.rate(nodes, senders)
                predicted = simulated(costs, run.setup(nodes, senders)).rate
                off = predicted / rate - 1
                if run.forwards:
                    worst = max(worst, abs(off))
                mode = "forwarding" if run.forwards else "taking turns"
                rates = f"{rate:,.0f}/s | {predicted:,.0f}/s"
                print(f"| {mode} | {senders} | {nodes} | {rates} | {off:+.0%} |")
    if worst > WITHIN:
        raise SystemExit(f"The simulation is off by {worst:.0%}: it tells nothing.")
    print()
    for line in _of_workers(costs):
        print(line)
    print()
    for line in _extrapolated(costs):
        print(line, flush=True)


def _lines(path: Path) -> dict[str, dict[str, float]]:
    lines: dict[str, dict[str, float]] = json.loads(path.read_text())["lines"]
    return lines


@dataclass(frozen=True)
class Run:
    """The results of one run with several nodes."""

    lines: dict[str, dict[str, float]]
    forwards: bool
    gathered: float

    def setup(self, nodes: int, senders: int) -> Setup:
        """Return the setup of three nodes on one machine. Only `nodes` get requests."""
        return Setup(
            nodes=nodes,
            senders=senders,
            cores=CORES,
            listening=max(NODES) - nodes,
            forwards=self.forwards,
            gathered=self.gathered,
        )

    def rate(self, nodes: int, senders: int) -> float:
        """Return the rate in messages per second."""
        return self.of(nodes, senders)["value"]

    def of(self, nodes: int, senders: int) -> dict[str, float]:
        """Return all results of a run."""
        return self.lines[f"nodes_{nodes}_senders_{senders}"]


def fitted(runs: Sequence[Run]) -> Costs:
    """Return the costs that give the measured processor time.

    There are costs per message, per group, per wake-up of a process, per message from another node,
    and per message that another node commits. How often these happen follows from the simulation,
    so both are found iteratively. The rest is waiting, chosen to match the rate of 8 senders at one
    node. All other rates are predictions.
    """
    parts = [500e-6, 100e-6, 50e-6, 20e-6, 50e-6]
    of_database = [50e-6, 200e-6]
    wait = 0.0003
    client = median(
        run.of(1, senders)["generator"] / run.rate(1, senders)
        for run in runs
        for senders in SENDERS
    )
    for _ in range(TURNS):
        costs = _costs(parts, of_database, wait, client)
        rows: list[tuple[list[float], float]] = []
        database_rows: list[tuple[list[float], float]] = []
        late: list[float] = []
        for run in runs:
            for nodes, senders in product(NODES, SENDERS):
                setup, measured = run.setup(nodes, senders), run.of(nodes, senders)
                predicted = simulated(costs, replace(setup, seconds=FIT_SECONDS))
                often = [
                    1.0,
                    1 / predicted.group,
                    predicted.wakes,
                    nodes - 1.0,
                    2 * predicted.forwarded,
                ]
                rows.append((often, measured["server_cpu_per_operation"]))
                database_rows.append(
                    ([1.0, 1 / predicted.group], measured["database_cpu_per_operation"])
                )
                if (nodes, senders) == (1, min(SENDERS)):
                    late.append(senders / predicted.rate - senders / measured["value"])
            for senders in (1, 8):
                predicted = simulated(costs, replace(run.setup(1, senders), seconds=FIT_SECONDS))
                idle = [0.0, 0.0, predicted.idle_wakes, 1.0, 0.0]
                rows.append((idle, run.lines[f"foreign_{senders}"]["value"]))
        parts, of_database = _solved(rows, parts), _solved(database_rows, of_database)
        wait = max(wait - sum(late) / len(late) / 4, 0.0)
    return _costs(parts, of_database, wait, client)


def _costs(
    parts: Sequence[float], of_database: Sequence[float], wait: float, client: float
) -> Costs:
    message, group, wake, foreign, forward = parts
    database_message, database_group = of_database
    return Costs(
        prepare=message * PREPARE,
        decide=message * DECIDE,
        write=message * WRITE,
        answer=message * (1 - PREPARE - DECIDE - WRITE),
        group=group,
        foreign=foreign,
        forward=forward,
        wake=wake,
        poll=POLL,
        database_group=database_group,
        database_message=database_message,
        flush=wait,
        trip=TRIP,
        client=client,
    )


def _solved(rows: Sequence[tuple[Sequence[float], float]], first: Sequence[float]) -> list[float]:
    """Return the non-negative costs that fit the measurements best, relative to their size: least
    squares, one cost after the other."""
    result = list(first)
    for _ in range(500):
        for which in range(len(result)):
            above = below = 0.0
            for often, measured in rows:
                rest = sum(
                    path * cost
                    for n, (path, cost) in enumerate(zip(often, result, strict=True))
                    if n != which
                )
                above += often[which] * (measured - rest) / measured**2
                below += often[which] ** 2 / measured**2
            result[which] = max(above / below, 0.0)
    return result


def _of_workers(costs: Costs) -> Iterator[str]:
    """Yield the results of workers on one machine with the senders and the database."""
    yield "| cores | workers | messages per second, 96 senders | relative to 1 process |"
    yield "|---:|---:|---:|---:|"
    for cores in MACHINES:
        alone = 0.0
        for workers in WORKERS:
            setup = Setup(nodes=workers, senders=max(SENDERS), cores=cores, forwards=True)
            rate = simulated(costs, replace(setup, seconds=2.0)).rate
            alone = alone or rate
            yield f"| {cores} | {workers} | {rate:,.0f}/s | {rate / alone:.1f}x |"


def _extrapolated(costs: Costs) -> Iterator[str]:
    """Yield the results of nodes with two cores each on separate machines, and a database with
    eight."""
    apart = replace(costs, trip=NETWORK, flush=DISK)
    yield (
        "| nodes | recipients per message | maximum rate | p99 latency at peak load"
        " | load of a node's core | time that the log is locked | messages per commit"
        " | database cores |"
    )
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|"
    for audience in AUDIENCES:
        for nodes in GROWING:
            setup = Setup(nodes=nodes, audience=audience, seconds=0.8)
            most = at_most(apart, setup, PATIENCE)
            peak = simulated(apart, replace(setup, rate=PEAK))
            within = f"{peak.p99 * 1000:,.0f} ms" if most >= PEAK else "not reached"
            yield (
                f"| {nodes} | {audience} | {most:,.0f}/s | {within} | {peak.node_load:.0%}"
                f" | {peak.lock_load:.0%} | {peak.group:.1f} | {peak.database_cores:.1f} |"
            )


if __name__ == "__main__":
    main()
