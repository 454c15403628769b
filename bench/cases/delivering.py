"""From sending a message to its delivery."""

from collections.abc import Iterator

from bench import api
from bench.arithmetic import Target
from bench.cases import Case
from bench.context import Bench
from bench.datasets import OLD_COMPANY
from bench.organization import MIDDLE, SIZES, SMALL
from bench.report import Line


def _measure(bench: Bench) -> Iterator[Line]:
    served = bench.served(OLD_COMPANY)
    people = served.made.people
    with bench.bare(served) as bare:
        for channel, count in ((SMALL, 1), (MIDDLE, SIZES[MIDDLE])):
            send = api.send(people[0], channel, "waiting")
            for name, server in (("bare", bare), ("ours", served.server)):
                bench.gather(name, server, people[:count], send)
            result = bench.interleaved(
                {
                    "bare": lambda: bench.fleet(bare, "bare", "bursts"),
                    "ours": lambda: bench.fleet(served.server, "ours", "bursts"),
                }
            )
            for name in ("bare", "ours"):
                bench.part(name)
            ours = result["ours"]
            line = Line(f"deliver_{count}", "", "ms", ours.medians(), ours.p99())
            line.limit, line.limit_title = result["bare"].medians(), "bare protocol"
            line.cpu, line.generator = ours.cpu, ours.generator
            line.more = {
                "first_seconds": sorted(ours.medians("first"))[len(ours.samples) // 2],
                "answered_seconds": sorted(ours.medians("answered"))[len(ours.samples) // 2],
            }
            if count == 1:
                line.title = "send to delivery, 1 waiting client"
                line.targets = [
                    Target("p50", line.value, 0.003, "ms"),
                    Target("p99", ours.p99(), 0.008, "ms"),
                ]
            else:
                line.title = f"1 message to {count} waiting clients"
                line.targets = [Target("p50", line.value, 0.012, "ms")]
            yield line


CASE = Case("deliver", "1 message to 1 waiting client, and to 200", _measure)
