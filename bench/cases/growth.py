"""Growth with the number of messages, and with the size of the response."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from bench import api
from bench.arithmetic import Rounds, Sample, Target, ratios
from bench.cases import Case
from bench.context import Bench, Served
from bench.datasets import CITY, COMPANY, OLD_COMPANY, SHAPES, TEAM
from bench.organization import SMALL
from bench.report import Line

SAME = 1.1
"""The largest ratio that counts as no growth."""


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
            name: partial(bench.requests, item.server, api.register(item.made.usual))
            for name, item in served.items()
        }
    )
    yield from _register(result)


def _read_everything(served: Served) -> None:
    """Mark all messages as read, because unread messages would make responses larger and differ
    between organizations."""
    is_complete = False
    while not is_complete:
        answer = api.asked(served.port, api.read_everything(served.made.usual))
        is_complete = json.loads(api.body_of(answer))["complete"]


def _send(bench: Bench, served: Served, _: str) -> Callable[[], Sample]:
    request = api.send(served.made.people[0], SMALL, "growth")
    return lambda: bench.requests(served.server, request)


def _deliver(bench: Bench, served: Served, name: str) -> Callable[[], Sample]:
    people = served.made.people[:1]
    send = api.send(people[0], SMALL, "growth")
    bench.gather(name, served.server, people, send)
    return lambda: bench.fleet(served.server, name, "bursts")


def _read(bench: Bench, served: Served, _: str) -> Callable[[], Sample]:
    request = api.newest(served.made.people[0], [])
    return lambda: bench.requests(served.server, request)


def _messages(name: str, title: str, rounds: dict[str, Rounds]) -> Line:
    few, many = SHAPES[COMPANY].messages, SHAPES[OLD_COMPANY].messages
    title = f"growth: {title}, {many:,} messages compared with {few:,}"
    line = Line(f"growth_{name}", title, "ms", rounds["many"].medians(), rounds["many"].p99())
    line.limit, line.limit_title = rounds["few"].medians(), f"with {few:,}"
    line.cpu, line.generator = rounds["many"].cpu, rounds["many"].generator
    growth = median(ratios(line.rounds, line.limit))
    cpu = rounds["many"].cpu / rounds["few"].cpu
    line.targets = [Target("p50", growth, SAME, "x"), Target("CPU", cpu, SAME, "x")]
    line.more = {"cpu_among_few": rounds["few"].cpu}
    return line


def _register(rounds: dict[str, Rounds]) -> Iterator[Line]:
    """Yield the time per KiB of the response, compared with the company."""

    def per_kib(name: str) -> list[float]:
        sizes = (sample.counts["bytes"] / 1024 for sample in rounds[name].samples)
        return [took / size for took, size in zip(rounds[name].medians(), sizes, strict=True)]

    limit = per_kib(COMPANY)
    for name in rounds:
        if name in {COMPANY, TEAM}:
            continue
        shape, size = SHAPES[name], rounds[name].samples[0].counts["bytes"]
        what = f"{shape.people:,} users, {shape.messages:,} messages, {size / 2**20:.1f} MiB"
        line = Line(f"growth_register_{name}", f"growth: POST /register per KiB, {what}", "µs", [])
        line.rounds = per_kib(name)
        line.limit, line.limit_title = limit, f"with {SHAPES[COMPANY].people:,} users"
        line.cpu, line.generator = rounds[name].cpu, rounds[name].generator
        growth = median(ratios(line.rounds, limit))
        line.targets = [Target("", growth, SAME, "x")]
        line.more = {
            "bytes": size,
            "p50_seconds": median(rounds[name].medians()),
            "team_bytes": rounds[TEAM].samples[0].counts["bytes"],
            "team_p50_seconds": median(rounds[TEAM].medians()),
        }
        yield line


CASE = Case("growth", "what grows with messages and with users", _measure)
