"""`python -m bench.scale`: what an organization of a hundred thousand people would need.

The costs are those that `python -m bench --database postgresql --only nodes --json FILE` measured
(`--figures FILE`; else those that were recorded with this program). First the simulation must show
the measured rates of one, two and three nodes again; then it says what larger ones would do.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.scale.simulation import Costs, Setup, at_most, simulated

RECORDED: Final = Path(__file__).with_name("measured.json")
NODES: Final = (1, 2, 3)
SENDERS: Final = (8, 16, 96)
CORES: Final = 2
"""Of the machine on which it was measured, on which everything ran."""
WITHIN: Final = 0.2
"""So far the simulation may be from what was measured."""

# How a node's time for a message is divided: as a profile of it says.
PREPARE, DECIDE, WRITE = 0.55, 0.10, 0.15
POLL: Final = 45e-6
"""Seconds of a node for a message to one client that waits, with its next poll."""
NETWORK: Final = 300e-6
"""Seconds from one machine to another and back."""
DISK: Final = 500e-6
"""Seconds that a disk of a server takes to keep a commit."""

ONLINE: Final = 20_000
PEAK: Final = 2_000
"""Messages in a second."""
AUDIENCES: Final = (10, 50, 200)
"""How many of those who are online get a message, on average."""
GROWING: Final = (1, 2, 4, 8, 16, 32)
PATIENCE: Final = 0.25
"""Seconds within which 99 of 100 messages are to be sent."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--figures", type=Path, default=RECORDED, help="what the bench wrote")
    options = parser.parse_args()
    lines = json.loads(options.figures.read_text())["lines"]
    measured, costs = _rates(lines), fitted(lines)
    print("| a message's cost | µs |\n|---|---:|")
    for name, seconds in asdict(costs).items():
        print(f"| {name} | {seconds * 1e6:,.0f} |")
    print()
    is_true = True
    print("| senders | nodes | measured | simulated | off by |\n|---:|---:|---:|---:|---:|")
    for (nodes, senders), rate in measured.items():
        listening = max(NODES) - nodes
        setup = Setup(nodes=nodes, senders=senders, cores=CORES, listening=listening)
        found = simulated(costs, setup).rate
        off = found / rate - 1
        is_true &= abs(off) <= WITHIN
        print(f"| {senders} | {nodes} | {rate:,.0f}/s | {found:,.0f}/s | {off:+.0%} |")
    if not is_true:
        raise SystemExit(f"The simulation is off by more than {WITHIN:.0%}: it tells nothing.")
    print()
    for line in _extrapolated(costs):
        print(line)


def _rates(lines: Mapping[str, Any]) -> dict[tuple[int, int], float]:
    return {
        (nodes, senders): lines[f"nodes_{nodes}_senders_{senders}"]["value"]
        for senders in SENDERS
        for nodes in NODES
    }


def fitted(lines: Mapping[str, Any]) -> Costs:
    """The costs that lead to what was measured at one node.

    A node's and the database's time for a message has a part for each message and one for each
    group. How large the groups were, the simulation says; so both are found by turns. What is left
    is waiting, which is chosen such that the rate of 8 senders at one node comes out. All other
    rates are then for the simulation to show.
    """
    few, many = min(SENDERS), max(SENDERS)
    one = {senders: lines[f"nodes_1_senders_{senders}"] for senders in (few, many)}
    of_node = {senders: one[senders]["node_0_cpu_per_operation"] for senders in one}
    idle = {senders: lines[f"foreign_{senders}"]["value"] for senders in (1, 8)}
    listeners = max(NODES) - 1  # They heard what the one did.
    of_database = {senders: one[senders]["database_cpu_per_operation"] for senders in one}
    client = median(one[senders]["generator"] / one[senders]["value"] for senders in one)
    sizes = {few: few * 0.6, many: many * 0.6}
    wait = 0.0002
    costs = None
    for _ in range(12):
        message, group = _line(of_node, sizes)
        database_message, database_group = _line(of_database, sizes)
        foreign, foreign_group = _line(idle, {1: 1.0, 8: sizes[few]})
        costs = Costs(
            prepare=message * PREPARE,
            decide=message * DECIDE,
            write=message * WRITE,
            answer=message * (1 - PREPARE - DECIDE - WRITE),
            group=group,
            foreign=foreign,
            foreign_group=foreign_group,
            poll=POLL,
            database_group=database_group,
            database_message=database_message,
            flush=wait,
            trip=wait / 2,
            client=client,
        )
        found = {
            senders: simulated(
                costs, Setup(nodes=1, senders=senders, cores=CORES, listening=listeners)
            )
            for senders in one
        }
        sizes = {senders: found[senders].group for senders in one}
        took = few / found[few].rate - few / one[few]["value"]
        wait = max(wait - took / 2, 0.0)
    assert costs is not None
    return costs


def _line(found: Mapping[int, float], sizes: Mapping[int, float]) -> tuple[float, float]:
    """The part for each message, and that for each group."""
    (few, of_few), (many, of_many) = sorted(found.items())
    group = (of_few - of_many) / (1 / sizes[few] - 1 / sizes[many])
    group = min(max(group, 0.0), of_few * sizes[few] * 0.8)
    return of_many - group / sizes[many], group


def _extrapolated(costs: Costs) -> Iterator[str]:
    """Nodes on machines of their own, of two cores each, and a database of eight."""
    apart = replace(costs, trip=NETWORK, flush=DISK)
    yield (
        "| nodes | each message to | messages at most | at the peak: 99 of 100 within | of a node's"
        " core | of the time the log is held | messages in a commit | cores of the database |"
    )
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|"
    for audience in AUDIENCES:
        for nodes in GROWING:
            setup = Setup(nodes=nodes, audience=audience, seconds=3.0)
            most = at_most(apart, setup, PATIENCE)
            peak = simulated(apart, replace(setup, rate=PEAK))
            within = f"{peak.p99 * 1000:,.0f} ms" if most >= PEAK else "not done"
            yield (
                f"| {nodes} | {audience} | {most:,.0f}/s | {within} | {peak.node_load:.0%}"
                f" | {peak.lock_load:.0%} | {peak.group:.1f} | {peak.database_cores:.1f} |"
            )


if __name__ == "__main__":
    main()
