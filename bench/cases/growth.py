"""Growth with the number of messages, and with the size of the response."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from bench import asking
from bench.arithmetic import Rounds, Sample, Target, ratios
from bench.cases import Case
from bench.context import Bench, Served
from bench.datasets import CITY, COMPANY, OLD_COMPANY, SHAPES, TEAM
from bench.organization import SMALL
from bench.report import Line

SAME = 1.1
"""The ratio up to which something doesn't grow."""


def _measure(bench: Bench) -> Iterator[Line]:
    few, many = bench.served(COMPANY), bench.served(OLD_COMPANY)
    for name, title, job in (
        ("send", "sending", _send),
        ("deliver", "send to delivery", _deliver),
        ("read", "newest 100", _read),
    ):
        with_few, with_many = job(bench, few, "few"), job(bench, many, "many")
        result = bench.interleaved({"few": with_few, "many": with_many})
        yield _messages(name, title, result)
    for name in ("few", "many"):
        bench.part(name)
    names = [TEAM, COMPANY, OLD_COMPANY] + ([] if bench.quick else [CITY])
    served = {name: bench.served(name) for name in names}
    for item in served.values():
        _read_everything(item)
    result = bench.interleaved(
        {
            name: partial(bench.requests, item.server, asking.register(item.made.usual))
            for name, item in served.items()
        }
    )
    yield from _register(result)


def _read_everything(served: Served) -> None:
    """Unread messages would make responses larger, and differ between organizations."""
    is_complete = False
    while not is_complete:
        answer = asking.asked(served.port, asking.read_everything(served.made.usual))
        is_complete = json.loads(asking.body_of(answer))["complete"]


def _send(bench: Bench, served: Served, _: str) -> Callable[[], Sample]:
    request = asking.send(served.made.people[0], SMALL, "growth")
    return lambda: bench.requests(served.server, request)


def _deliver(bench: Bench, served: Served, name: str) -> Callable[[], Sample]:
    people = served.made.people[:1]
    send = asking.send(people[0], SMALL, "growth")
    bench.gather(name, served.server, people, send)
    return lambda: bench.fleet(served.server, name, "bursts")


def _read(bench: Bench, served: Served, _: str) -> Callable[[], Sample]:
    request = asking.newest(served.made.people[0], [])
    return lambda: bench.requests(served.server, request)


def _messages(name: str, title: str, found: dict[str, Rounds]) -> Line:
    few, many = SHAPES[COMPANY].messages, SHAPES[OLD_COMPANY].messages
    title = f"growth: {title}, {many:,} messages compared with {few:,}"
    line = Line(f"growth_{name}", title, "ms", found["many"].medians(), found["many"].p99())
    line.limit, line.limit_title = found["few"].medians(), f"with {few:,}"
    line.cpu, line.generator = found["many"].cpu, found["many"].generator
    growth = median(ratios(line.rounds, line.limit))
    cpu = found["many"].cpu / found["few"].cpu
    line.targets = [Target("p50", growth, SAME, "x"), Target("CPU", cpu, SAME, "x")]
    line.more = {"cpu_among_few": found["few"].cpu}
    return line


def _register(found: dict[str, Rounds]) -> Iterator[Line]:
    """Time per KiB of the response, compared with the company."""

    def per_kib(name: str) -> list[float]:
        sizes = (sample.counts["bytes"] / 1024 for sample in found[name].samples)
        return [took / size for took, size in zip(found[name].medians(), sizes, strict=True)]

    limit = per_kib(COMPANY)
    for name in found:
        if name in {COMPANY, TEAM}:
            continue
        shape, size = SHAPES[name], found[name].samples[0].counts["bytes"]
        what = f"{shape.people:,} users, {shape.messages:,} messages, {size / 2**20:.1f} MiB"
        line = Line(f"growth_register_{name}", f"growth: POST /register per KiB, {what}", "µs", [])
        line.rounds = per_kib(name)
        line.limit, line.limit_title = limit, f"with {SHAPES[COMPANY].people:,} users"
        line.cpu, line.generator = found[name].cpu, found[name].generator
        growth = median(ratios(line.rounds, limit))
        line.targets = [Target("", growth, SAME, "x")]
        line.more = {
            "bytes": size,
            "p50_seconds": median(found[name].medians()),
            "team_bytes": found[TEAM].samples[0].counts["bytes"],
            "team_p50_seconds": median(found[TEAM].medians()),
        }
        yield line


CASE = Case("growth", "what grows with messages and with users", _measure)
