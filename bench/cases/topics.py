"""How long other clients wait while a large topic is renamed, moved, merged, and deleted."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench import archive
from bench.cases import Case
from bench.company import Company, measured, measured_line
from bench.context import Bench
from bench.datasets import COMPANY
from bench.listeners import listening
from bench.organization import LARGE
from bench.report import Line

SIZES = (28_000, 113_000)
LISTENERS = 50
QUIET_SECONDS = 3.0


def _names(size: int) -> list[str]:
    return [f"{which} {size}" for which in ("first", "second", "third", "last")]


def _operations(c: Company, size: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    text, other, third, last = _names(size)
    # The other clients send and read during this time.
    yield "nothing", partial(time.sleep, QUIET_SECONDS)
    yield f"resolve {size:,}", partial(c.move, text, topic=f"✔ {text}")
    yield f"rename {size:,}", partial(c.move, text, topic=f"renamed {size}")
    narrow = ("channel", LARGE), ("topic", f"renamed {size}")
    yield f"a page of {size:,}", partial(c.page, None, *narrow)
    yield f"merge {size:,} with another", partial(c.move, text, topic=other)
    yield f"move {size:,} to a private channel", partial(c.move, third, stream_id=c.private)
    delete = f"POST /streams/{c.large}/delete_topic"
    yield f"delete {size:,}", partial(c.repeat, delete, topic_name=last)


def _measure(bench: Bench) -> Iterator[Line]:
    with bench.datasets.copied(COMPANY) as made:
        organization = made.organization
        large = organization.first_channel_id + organization.channels + 2
        senders = range(organization.first_user_id, organization.first_user_id + 50)
        topics: dict[str, range] = {}
        for size in SIZES:
            names = _names(size)
            ranges = archive.add_topics(made.config, large, names, size, senders)
            topics.update(zip(names, ranges, strict=True))
        with measured(made) as server:
            company = Company(made, server, topics)
            with listening(server.port, [company.owner, *company.people[:LISTENERS]]):
                every = (operation for size in SIZES for operation in _operations(company, size))
                for number, (title, operation) in enumerate(every):
                    began = time.perf_counter()
                    line = measured_line(bench, number, title, company, operation)
                    bench.tell(f"    {title}: {time.perf_counter() - began:.1f} s")
                    yield line


CASE = Case("topics", "what others wait while a large topic is changed", _measure, is_quick=False)
