"""Many clients that register concurrently, each with 50,000 of a million messages unread, and how
long others wait."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median

from bench import api
from bench.arithmetic import Target
from bench.cases import Case
from bench.cases.memory import read_with_gaps
from bench.company import Waits
from bench.context import Bench
from bench.datasets import OLD_COMPANY
from bench.report import Line

CLIENTS = (60, 200)
PATIENCE = 90.0
"""The longest time for a response, in seconds."""
OTHERS = 0.25
"""The longest time that another client may wait, in seconds."""


def _registered(port: int, person: str) -> float | None:
    """Register, and return the seconds until the whole response, or None if it was refused."""
    began = time.perf_counter()
    try:
        api.asked(port, api.register(person), PATIENCE)
    except api.BadAnswer:
        return None
    return time.perf_counter() - began


def _measure(bench: Bench) -> Iterator[Line]:
    with bench.fresh(OLD_COMPANY, prepare=read_with_gaps) as served:
        people = served.made.people
        for count in CLIENTS:
            took: list[float] = []
            refused = 0
            longest: dict[str, float] = {}
            for _ in range(1 if bench.quick else 2):  # The first time, nothing is loaded.
                clients = people[10 : count + 10]
                with Waits(served.port, people) as others, ThreadPoolExecutor(count) as pool:
                    each = [*pool.map(partial(_registered, served.port), clients)]
                answered = [seconds for seconds in each if seconds is not None]
                refused += count - len(answered)
                took.append(max(answered))
                bench.tell(f"    half of {count} within {median(answered):.1f} s")
                longest = {key: max(longest.get(key, 0.0), s) for key, s in others.longest.items()}
            waits = ", ".join(
                f"{what} {seconds * 1000:.0f} ms" for what, seconds in longest.items()
            )
            bench.tell(f"    others waited: {waits}; refused: {refused}")
            line = Line(f"register_{count}", f"POST /register, {count} at the same time", "s", took)
            line.targets = [
                Target("refused", refused, 0, ""),
                *(Target(what, seconds, OTHERS, "ms") for what, seconds in longest.items()),
            ]
            yield line


CASE = Case("register", "what others wait while many clients register", _measure)
