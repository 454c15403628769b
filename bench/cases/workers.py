"""Several workers behind one address compared with one process: sending, reading, waiting clients,
and memory."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import cycle, islice
from statistics import median

from bench import api, processes
from bench.arithmetic import Rounds
from bench.cases import Case
from bench.context import Bench, Served
from bench.datasets import COMPANY
from bench.organization import LARGE, SIZES, SMALL
from bench.report import Line

COUNTS = (1, 2, 4)
ASKING = 32
"""Concurrent connections."""
CYCLING = 1_000
"""Clients that poll repeatedly."""


def _measure(bench: Bench) -> Iterator[Line]:
    with ExitStack() as stack:
        served = {n: stack.enter_context(bench.fresh(COMPANY, n)) for n in COUNTS}
        at_rest = {n: sum(map(processes.pss, item.server.processes)) for n, item in served.items()}
        # Reads come first: most readers don't receive the messages sent here, and each server would
        # have sent a different number of messages for them to skip.
        yield from _work(bench, served, "newest", "GET /messages, newest 100", _reads)
        yield from _work(bench, served, "send", "POST /messages", _sends)
        for count, item in served.items():
            people = list(islice(cycle(item.made.people[: SIZES[LARGE]]), CYCLING))
            send = api.send(people[0], LARGE, "waiting")
            bench.gather(f"of {count}", item.server, people, send)
        result = bench.interleaved(
            {
                str(count): partial(bench.fleet, item.server, f"of {count}", "cycles")
                for count, item in served.items()
            }
        )
        yield from _lines(
            "cycles", f"deliver and poll again, {CYCLING:,} clients", result, of="answers"
        )
        for count in served:
            bench.part(f"of {count}")
        for count, item in served.items():
            line = Line(
                f"workers_memory_{count}", f"memory, 5,200 users, {_words(count)}, busy", "MiB", []
            )
            line.rounds = [float(sum(map(processes.pss, item.server.processes)))]
            line.more = {"at_rest": at_rest[count], "of_each": line.value / count}
            yield line


def _work(
    bench: Bench,
    served: dict[int, Served],
    name: str,
    title: str,
    requests: Callable[[list[str]], list[str]],
) -> Iterator[Line]:
    result = bench.interleaved(
        {
            str(count): partial(bench.requests, item.server, *requests(item.made.people[:ASKING]))
            for count, item in served.items()
        }
    )
    yield from _lines(name, f"{title}, {ASKING} connections", result)


def _lines(name: str, title: str, results: dict[str, Rounds], of: str = "") -> Iterator[Line]:
    alone = results["1"]
    for count, rounds in results.items():
        line = Line(f"workers_{name}_{count}", f"{title}, {_words(int(count))}", "/s", [])
        line.rounds = rounds.rates(of)
        line.limit, line.limit_title = alone.rates(of), "one process"
        line.cpu, line.generator = rounds.cpu, rounds.generator
        line.more = {"cpu_of_one_process": rounds.cpu / alone.cpu}
        if not of:
            line.more["p50_seconds"] = median(rounds.medians())
            line.more["p99_seconds"] = rounds.p99()
        yield line


def _sends(people: list[str]) -> list[str]:
    return [api.send(person, SMALL, f"topic {n}") for n, person in enumerate(people)]


def _reads(people: list[str]) -> list[str]:
    return [api.newest(person, []) for person in people]


def _words(count: int) -> str:
    return "one process" if count == 1 else f"{count} workers"


CASE = Case("workers", "several workers compared with one process", _measure, is_quick=False)
