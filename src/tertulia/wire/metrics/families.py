"""A node's numbers as families of samples: what is sent to the other processes of its server, and
made into Prometheus' text."""

import asyncio
import contextlib
import os
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from tertulia import __version__
from tertulia.log.health import Histogram
from tertulia.store.database import Connection
from tertulia.wire.http.node import HttpNode

WAITING_SECONDS: Final = 1.0
"""How long the database has to say how much waits; else that is left out."""
_PAGE: Final = resource.getpagesize()


class Buckets(Struct, frozen=True, array_like=True):
    """A histogram as it is at one moment."""

    bounds: Sequence[float]
    counts: Sequence[int]
    """By range, one more than bounds."""
    total: float


class Sample(Struct, frozen=True, array_like=True):
    """One number, or a histogram, with its labels."""

    labels: Mapping[str, str]
    value: float | Buckets


class Family(Struct, frozen=True, array_like=True):
    """What is measured in one way."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    samples: Sequence[Sample]


class OfNode(Struct, frozen=True, array_like=True):
    """All of one node's."""

    node: str
    families: Sequence[Family]


async def families_of(node: HttpNode) -> OfNode:
    """The node's numbers, as they are now."""
    waiting = await _of_what_waits(node)
    return OfNode(node.membership.name, [*_all(node), *waiting])


def _all(node: HttpNode) -> Iterator[Family]:
    yield from _of_the_node(node)
    yield from _of_the_log(node)
    yield from _of_delivery(node)
    yield from _of_requests(node)
    yield from _of_jobs(node)
    yield Family(
        "tertulia_pushes",
        "counter",
        "Pushes, by what came of them: pushed, failed (and tried again), refused, gone.",
        [Sample({"outcome": one}, count) for one, count in sorted(node.pushed.items())],
    )
    yield from _of_the_process()


def _gauge(name: str, help_: str, value: float, **labels: str) -> Family:
    return Family(name, "gauge", help_, [Sample(labels, float(value))])


def _counter(name: str, help_: str, value: float) -> Family:
    return Family(name, "counter", help_, [Sample({}, value)])


def _histogram(name: str, help_: str, *found: tuple[Mapping[str, str], Histogram]) -> Family:
    samples = [Sample(labels, Buckets(h.bounds, list(h.counts), h.total)) for labels, h in found]
    return Family(name, "histogram", help_, samples)


def _of_the_node(node: HttpNode) -> Iterator[Family]:
    figures = node.membership.figures
    entry = node.membership.entry
    yield _gauge(
        "tertulia_node_info",
        "1, with what the program is.",
        1,
        version=__version__,
        schema_version=str(entry.schema_version),
        log_format=str(entry.log_format),
        database=node.store.database.dialect.name,
    )
    yield _gauge(
        "tertulia_node_stale",
        "Whether the node cannot see if it is up to date, and answers nothing.",
        figures.state == "stale",
    )
    yield _gauge(
        "tertulia_node_draining", "Whether the node is leaving.", figures.state == "draining"
    )
    yield _gauge(
        "tertulia_clock_ahead_seconds",
        "By how much the node's clock is ahead of the database's.",
        figures.clock_ahead,
    )
    yield _gauge("tertulia_start_time_seconds", "When the node began, UNIX time.", node.started)
    yield _histogram(
        "tertulia_event_loop_lag_seconds",
        "How much later than wanted the event loop called something.",
        ({}, node.loop_lag),
    )


def _of_the_log(node: HttpNode) -> Iterator[Family]:
    log, measures = node.log, node.log.measures
    lag = log.lag
    yield _gauge("tertulia_log_position", "The newest entry that the node knows.", log.durable)
    yield _gauge(
        "tertulia_log_lag_entries", "Entries by which it is behind the log's head.", lag.entries
    )
    yield _gauge("tertulia_log_lag_seconds", "For how long it has been behind.", lag.seconds)
    yield _counter("tertulia_log_entries", "Entries that the node has committed.", measures.entries)
    yield _counter(
        "tertulia_commands_forwarded",
        "Commands of the node that another one carried out.",
        measures.forwarded,
    )
    yield _counter(
        "tertulia_commands_for_others",
        "Commands of other nodes that the node carried out.",
        measures.carried_out,
    )
    yield _histogram(
        "tertulia_commit_seconds",
        "From asking for the log's head until a group of commands was on disk.",
        ({}, measures.commit_seconds),
    )
    yield _histogram(
        "tertulia_commit_lock_wait_seconds",
        "From asking for the log's head until it was the node's.",
        ({}, measures.lock_seconds),
    )
    yield _histogram(
        "tertulia_commit_group_size",
        "Commands that were committed together.",
        ({}, measures.group_sizes),
    )
    yield _counter(
        "tertulia_transactions_retried",
        "Transactions begun once more, because the database was lost.",
        measures.retried,
    )
    yield _counter(
        "tertulia_transactions_failed", "Begins and commits that failed.", measures.failed
    )
    yield _counter(
        "tertulia_state_reloads",
        "How often the state was thrown away and loaded again.",
        log.generation,
    )
    yield _gauge("tertulia_inbox_requests", "Requests that wait for the log's writer.", log.waiting)


def _of_delivery(node: HttpNode) -> Iterator[Family]:
    yield _gauge(
        "tertulia_event_queues", "Event queues that the node knows.", len(node.delivery.queues)
    )
    yield _gauge("tertulia_waiting_polls", "Polls that wait for events.", node.delivery.waiting)


def _of_requests(node: HttpNode) -> Iterator[Family]:
    measures = node.request_measures
    counts = [
        Sample({"group": group, "status": str(status)}, count)
        for (group, status), count in sorted(measures.counts.items())
    ]
    yield Family(
        "tertulia_http_requests",
        "counter",
        "Requests answered, by the first part of their path.",
        counts,
    )
    yield _histogram(
        "tertulia_http_request_seconds",
        "How long answers took, without polls that waited.",
        *(({"group": group}, one) for group, one in sorted(measures.seconds.items())),
    )
    yield _counter(
        "tertulia_http_requests_slow",
        "Requests whose answers began later than slow_request_ms, without waiting for clients.",
        measures.slow,
    )
    for server in node.gauges:
        yield _gauge("tertulia_http_connections", "Connections that are open.", server.connections)
        yield _gauge(
            "tertulia_http_requests_in_progress",
            "Requests in progress, without polls.",
            server.in_progress,
        )
        yield _counter(
            "tertulia_http_requests_refused",
            "Requests refused because there was too much to do.",
            server.refused,
        )


def _of_jobs(node: HttpNode) -> Iterator[Family]:
    jobs = node.jobs()
    yield Family(
        "tertulia_job_last_success_timestamp_seconds",
        "gauge",
        "When a round of the job last succeeded, UNIX time.",
        [Sample({"job": job.name}, job.succeeded_at) for job in jobs if job.succeeded_at],
    )
    yield Family(
        "tertulia_job_failures",
        "counter",
        "Rounds of the job that failed.",
        [Sample({"job": job.name}, job.failures) for job in jobs],
    )
    yield Family(
        "tertulia_job_in_trouble",
        "gauge",
        "Whether the job fails just now, or has set something aside.",
        [Sample({"job": job.name}, float(job.is_in_trouble)) for job in jobs],
    )


_WAITING: Final = {
    "mails": ("tertulia_mails_waiting", "Mails that wait to be sent."),
    "notices": (
        "tertulia_notices_waiting",
        "Messages of which people are to be told, if they do not read them before.",
    ),
    "pushes WHERE wanted <> 'shown'": (
        "tertulia_pushes_waiting",
        "Conversations of which a program of somebody's is still to be told by push.",
    ),
    "webhook_deliveries": (
        "tertulia_service_calls_waiting",
        "Messages of which bots' services are still to be told.",
    ),
}
"""What waits in the database, by where it is."""


async def _of_what_waits(node: HttpNode) -> list[Family]:
    """Nothing, where the database does not say in time."""

    def count(connection: Connection) -> list[int]:
        return [
            int(connection.query(f"SELECT COUNT(*) FROM {table}")[0][0])  # noqa: S608 (a constant)
            for table in _WAITING
        ]

    with contextlib.suppress(Exception):  # Whatever it is, the other numbers are wanted then.
        async with asyncio.timeout(WAITING_SECONDS):
            numbers = await node.store.read(count)
            return [
                _gauge(*named, number)
                for named, number in zip(_WAITING.values(), numbers, strict=True)
            ]
    return []


def _of_the_process() -> Iterator[Family]:
    yield _counter(
        "process_cpu_seconds", "Processor time that the process has used.", time.process_time()
    )
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield _gauge("process_max_fds", "Files that the process may have open.", soft)
    with contextlib.suppress(OSError):  # Not every system has it.
        resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        yield _gauge("process_resident_memory_bytes", "Memory of the process.", resident * _PAGE)
        # One is that by which they are counted.
        yield _gauge(
            "process_open_fds",
            "Files that the process has open.",
            len(os.listdir("/proc/self/fd")) - 1,
        )
