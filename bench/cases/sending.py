"""Sending messages: with one sender and several, and to few and many subscribers."""

from collections.abc import Iterator
from statistics import median

from bench import asking
from bench.arithmetic import Rounds, Sample, Target, ratios, sums
from bench.cases import Case
from bench.context import Bench
from bench.datasets import OLD_COMPANY
from bench.limits import commits
from bench.organization import LARGE, SIZES, SMALL
from bench.report import Line

SENDERS = 8


def _measure(bench: Bench) -> Iterator[Line]:
    served = bench.served(OLD_COMPANY)
    people = served.made.people
    commit = bench.disk()

    def send(channel: str, senders: int) -> Sample:
        asked = [asking.send(p, channel, f"topic {n}") for n, p in enumerate(people[:senders])]
        return bench.requests(served.server, *asked)

    def empty(senders: int) -> Sample:
        return bench.requests(served.server, *map(asking.empty, people[:senders]))

    found = bench.interleaved(
        {
            "empty": lambda: empty(1),
            "commit": lambda: commits(commit, 1, bench.seconds / 2),
            SMALL: lambda: send(SMALL, 1),
            LARGE: lambda: send(LARGE, 1),
        }
    )
    yield _limit("empty", "empty request, 1 connection", found["empty"])
    yield _limit("commit", "bare commit of 1 row", found["commit"], of_server=False)
    one, many = found[SMALL], found[LARGE]
    floor = sums(found["empty"].medians(), found["commit"].medians())
    for channel in (SMALL, LARGE):
        line = _latency(channel, found[channel])
        line.limit, line.limit_title = floor, "request + commit"
        if channel == SMALL:
            line.targets = [
                Target("p50", line.value, 0.002, "ms"),
                Target("p99", one.p99(), 0.006, "ms"),
            ]
        else:
            of_small = median(ratios(many.medians(), one.medians()))
            line.targets = [Target("relative to channel of 10", of_small, 1.1, "x")]
        yield line

    found = bench.interleaved(
        {
            "empty": lambda: empty(SENDERS),
            "commit": lambda: commits(commit, SENDERS, bench.seconds / 2),
            SMALL: lambda: send(SMALL, SENDERS),
            LARGE: lambda: send(LARGE, SENDERS),
        }
    )
    limit = found["empty"].rates()
    yield _limit("empty_8", f"empty requests, {SENDERS} connections", found["empty"], is_rate=True)
    groups = f"bare commits of {SENDERS} rows"
    rows = _limit("commit_8", groups, found["commit"], is_rate=True, of_server=False)
    rows.rounds = [rate * SENDERS for rate in rows.rounds]
    yield rows
    for channel in (SMALL, LARGE):
        rates = found[channel].rates()
        yield Line(
            f"send_8_{channel}",
            f"POST /messages, {SENDERS} senders, channel of {SIZES[channel]:,}",
            "/s",
            rates,
            limit=limit,
            limit_title="empty requests",
            targets=[
                Target("", median(rates), 2000, "/s", at_least=True),
                Target(
                    "relative to empty requests",
                    median(ratios(rates, limit)),
                    0.12,
                    "%",
                    at_least=True,
                ),
            ],
            cpu=found[channel].cpu,
            generator=found[channel].generator,
            more={
                "p50_seconds": median(found[channel].medians()),
                "p99_seconds": found[channel].p99(),
            },
        )


def _latency(channel: str, found: Rounds) -> Line:
    return Line(
        f"send_{channel}",
        f"POST /messages, 1 sender, channel of {SIZES[channel]:,}",
        "ms",
        found.medians(),
        found.p99(),
        cpu=found.cpu,
        generator=found.generator,
    )


def _limit(
    name: str, title: str, found: Rounds, *, is_rate: bool = False, of_server: bool = True
) -> Line:
    """A limit as a line of its own."""
    line = Line(name, f"limit: {title}", "/s" if is_rate else "ms", [])
    line.rounds = found.rates() if is_rate else found.medians()
    if not is_rate:
        line.p99 = found.p99()
    if of_server:
        line.cpu, line.generator = found.cpu, found.generator
    return line


CASE = Case("send", "sending messages, in channels of 10 and of 5,000", _measure)
