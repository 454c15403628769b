"""Sending messages: with one sender and several, and to few and many subscribers."""

from collections.abc import Iterator
from statistics import median

from bench import api
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
        asked = [api.send(p, channel, f"topic {n}") for n, p in enumerate(people[:senders])]
        return bench.requests(served.server, *asked)

    def empty(senders: int) -> Sample:
        return bench.requests(served.server, *map(api.empty, people[:senders]))

    result = bench.interleaved(
        {
            "empty": lambda: empty(1),
            "commit": lambda: commits(commit, 1, bench.seconds / 2),
            SMALL: lambda: send(SMALL, 1),
            LARGE: lambda: send(LARGE, 1),
        }
    )
    yield _limit("empty", "empty request, 1 connection", result["empty"])
    yield _limit("commit", "bare commit of 1 row", result["commit"], of_server=False)
    rounds, many = result[SMALL], result[LARGE]
    floor = sums(result["empty"].medians(), result["commit"].medians())
    for channel in (SMALL, LARGE):
        line = _latency(channel, result[channel])
        line.limit, line.limit_title = floor, "request + commit"
        if channel == SMALL:
            line.targets = [
                Target("p50", line.value, 0.002, "ms"),
                Target("p99", rounds.p99(), 0.006, "ms"),
            ]
        else:
            of_small = median(ratios(many.medians(), rounds.medians()))
            line.targets = [Target("relative to channel of 10", of_small, 1.1, "x")]
        yield line

    result = bench.interleaved(
        {
            "empty": lambda: empty(SENDERS),
            "commit": lambda: commits(commit, SENDERS, bench.seconds / 2),
            SMALL: lambda: send(SMALL, SENDERS),
            LARGE: lambda: send(LARGE, SENDERS),
        }
    )
    limit = result["empty"].rates()
    yield _limit("empty_8", f"empty requests, {SENDERS} connections", result["empty"], is_rate=True)
    groups = f"bare commits of {SENDERS} rows"
    rows = _limit("commit_8", groups, result["commit"], is_rate=True, of_server=False)
    rows.rounds = [rate * SENDERS for rate in rows.rounds]
    yield rows
    for channel in (SMALL, LARGE):
        rates = result[channel].rates()
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
            cpu=result[channel].cpu,
            generator=result[channel].generator,
            more={
                "p50_seconds": median(result[channel].medians()),
                "p99_seconds": result[channel].p99(),
            },
        )


def _latency(channel: str, rounds: Rounds) -> Line:
    return Line(
        f"send_{channel}",
        f"POST /messages, 1 sender, channel of {SIZES[channel]:,}",
        "ms",
        rounds.medians(),
        rounds.p99(),
        cpu=rounds.cpu,
        generator=rounds.generator,
    )


def _limit(
    name: str, title: str, rounds: Rounds, *, is_rate: bool = False, of_server: bool = True
) -> Line:
    """Return a limit as a separate line."""
    line = Line(name, f"limit: {title}", "/s" if is_rate else "ms", [])
    line.rounds = rounds.rates() if is_rate else rounds.medians()
    if not is_rate:
        line.p99 = rounds.p99()
    if of_server:
        line.cpu, line.generator = rounds.cpu, rounds.generator
    return line


CASE = Case("send", "sending messages, in channels of 10 and of 5,000", _measure)
