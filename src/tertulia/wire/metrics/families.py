"""A node's metrics, as families of samples that can be sent to the server's other processes."""

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
from tertulia.store import backups
from tertulia.store.database import Connection
from tertulia.wire.http.node import HttpNode

WAITING_SECONDS: Final = 1.0
"""Timeout for counting waiting records in the database. Without a result, those metrics are left
out."""
_PAGE: Final = resource.getpagesize()


class Buckets(Struct, frozen=True, array_like=True):
    """The state of a histogram."""

    bounds: Sequence[float]
    counts: Sequence[int]
    """Counts by range: one more than `bounds`."""
    total: float


class Sample(Struct, frozen=True, array_like=True):
    """A number or histogram, with its labels."""

    labels: Mapping[str, str]
    value: float | Buckets


class Family(Struct, frozen=True, array_like=True):
    """A metric, with its samples."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    samples: Sequence[Sample]


class NodeMetrics(Struct, frozen=True, array_like=True):
    """All metrics of a node."""

    node: str
    families: Sequence[Family]


async def collect_metrics(node: HttpNode) -> NodeMetrics:
    """Collect the node's current metrics."""
    families = [
        *_node_metrics(node),
        *_log_metrics(node),
        *_delivery_metrics(node),
        *_request_metrics(node),
        *_job_metrics(node),
        *_process_metrics(),
        *_disk_metrics(node),
        *await _waiting_metrics(node),
    ]
    return NodeMetrics(node.membership.name, families)


def _gauge(name: str, help_: str, value: float, **labels: str) -> Family:
    return Family(name, "gauge", help_, [Sample(labels, float(value))])


def _counter(name: str, help_: str, value: float) -> Family:
    return Family(name, "counter", help_, [Sample({}, value)])


def _histogram(name: str, help_: str, *histograms: tuple[Mapping[str, str], Histogram]) -> Family:
    samples = [
        Sample(labels, Buckets(h.bounds, list(h.counts), h.total)) for labels, h in histograms
    ]
    return Family(name, "histogram", help_, samples)


def _node_metrics(node: HttpNode) -> Iterator[Family]:
    figures = node.membership.figures
    entry = node.membership.entry
    yield _gauge(
        "tertulia_node_info",
        "Always 1, with the versions as labels.",
        1,
        version=__version__,
        schema_version=str(entry.schema_version),
        log_format=str(entry.log_format),
        database=node.store.database.dialect.name,
    )
    yield _gauge(
        "tertulia_node_stale",
        "Whether the node can't tell whether it is up to date, and refuses requests.",
        figures.state == "stale",
    )
    yield _gauge(
        "tertulia_node_draining", "Whether the node is shutting down.", figures.state == "draining"
    )
    yield _gauge(
        "tertulia_clock_ahead_seconds",
        "How far the node's clock is ahead of the database's.",
        figures.clock_ahead,
    )
    yield _gauge(
        "tertulia_start_time_seconds", "When the node started, in UNIX seconds.", node.started
    )
    yield _histogram(
        "tertulia_event_loop_lag_seconds",
        "Delay of timers in the event loop.",
        ({}, node.loop_lag),
    )


def _log_metrics(node: HttpNode) -> Iterator[Family]:
    log, measures = node.log, node.log.measures
    lag = log.lag
    yield _gauge("tertulia_log_position", "The newest log entry that the node knows.", log.durable)
    yield _gauge(
        "tertulia_log_lag_entries", "Entries that the node is behind the log's head.", lag.entries
    )
    yield _gauge("tertulia_log_lag_seconds", "How long the node has been behind.", lag.seconds)
    yield _counter("tertulia_log_entries", "Entries that the node has committed.", measures.entries)
    yield _counter(
        "tertulia_commands_forwarded",
        "Commands of this node that another node executed.",
        measures.forwarded,
    )
    yield _counter(
        "tertulia_commands_for_others",
        "Commands of other nodes that this node executed.",
        measures.carried_out,
    )
    yield _histogram(
        "tertulia_commit_seconds",
        "Time from requesting the log's head until a group of commands was on disk.",
        ({}, measures.commit_seconds),
    )
    yield _histogram(
        "tertulia_commit_lock_wait_seconds",
        "Time from requesting the log's head until the node had it.",
        ({}, measures.lock_seconds),
    )
    yield _histogram(
        "tertulia_commit_group_size",
        "Commands committed together.",
        ({}, measures.group_sizes),
    )
    yield _counter(
        "tertulia_transactions_retried",
        "Transactions retried because the database connection was lost.",
        measures.retried,
    )
    yield _counter(
        "tertulia_transactions_failed",
        "Transactions that failed to begin or commit.",
        measures.failed,
    )
    yield _counter(
        "tertulia_state_reloads",
        "Times the state was discarded and loaded again.",
        log.durability.generation,
    )
    yield _gauge("tertulia_inbox_requests", "Requests waiting for the log's writer.", log.waiting)


def _delivery_metrics(node: HttpNode) -> Iterator[Family]:
    yield _gauge(
        "tertulia_event_queues", "Event queues that the node knows.", len(node.delivery.queues)
    )
    yield _gauge("tertulia_waiting_polls", "Polls waiting for events.", node.delivery.waiting)
    yield Family(
        "tertulia_pushes",
        "counter",
        "Push notifications by outcome: pushed, failed (and retried), refused, gone.",
        [Sample({"outcome": text}, count) for text, count in sorted(node.pushed.items())],
    )


def _request_metrics(node: HttpNode) -> Iterator[Family]:
    measures = node.request_measures
    counts = [
        Sample({"group": group, "status": str(status)}, count)
        for (group, status), count in sorted(measures.counts.items())
    ]
    yield Family(
        "tertulia_http_requests",
        "counter",
        "Responses, by the first part of the path.",
        counts,
    )
    yield _histogram(
        "tertulia_http_request_seconds",
        "Response times, without polls that waited.",
        *(({"group": group}, item) for group, item in sorted(measures.seconds.items())),
    )
    yield _counter(
        "tertulia_http_requests_slow",
        "Requests whose response began after slow_request_ms, not counting waiting for clients.",
        measures.slow,
    )
    for server in node.gauges:
        yield _gauge("tertulia_http_connections", "Open connections.", server.connections)
        yield _gauge(
            "tertulia_http_requests_in_progress",
            "Requests in progress, without polls.",
            server.in_progress,
        )
        yield _counter(
            "tertulia_http_requests_refused",
            "Requests refused because of overload.",
            server.refused,
        )
        if server.certificate_expires_at is not None:
            yield _gauge(
                "tertulia_certificate_expires_timestamp_seconds",
                "When the server's TLS certificate expires, in UNIX seconds.",
                server.certificate_expires_at,
            )


def _job_metrics(node: HttpNode) -> Iterator[Family]:
    jobs = node.jobs()
    yield Family(
        "tertulia_job_last_success_timestamp_seconds",
        "gauge",
        "When the job last succeeded, in UNIX seconds.",
        [Sample({"job": job.name}, job.succeeded_at) for job in jobs if job.succeeded_at],
    )
    yield Family(
        "tertulia_job_failures",
        "counter",
        "Failed runs of the job.",
        [Sample({"job": job.name}, job.failures) for job in jobs],
    )
    yield Family(
        "tertulia_job_in_trouble",
        "gauge",
        "Whether the job is failing, or has skipped items that failed.",
        [Sample({"job": job.name}, float(job.is_in_trouble)) for job in jobs],
    )


_WAITING: Final = {
    "mails": ("tertulia_mails_waiting", "Emails waiting to be sent."),
    "notices": (
        "tertulia_notices_waiting",
        "Messages whose notifications are waiting, unless they are read first.",
    ),
    "pushes WHERE wanted <> 'shown'": (
        "tertulia_pushes_waiting",
        "Push notifications waiting to be sent.",
    ),
    "webhook_deliveries": (
        "tertulia_service_calls_waiting",
        "Outgoing webhook requests waiting to be sent.",
    ),
}
"""Metric and help text by database table."""


async def _waiting_metrics(node: HttpNode) -> list[Family]:
    """Return the metrics of waiting records; empty if the database doesn't respond in time."""

    def count(connection: Connection) -> tuple[list[int], tuple[float, int] | None]:
        numbers = [
            int(connection.query(f"SELECT COUNT(*) FROM {table}")[0][0])  # noqa: S608 (a constant)
            for table in _WAITING
        ]
        return numbers, backups.last_backup(connection)

    with contextlib.suppress(Exception):  # The other metrics are more important.
        async with asyncio.timeout(WAITING_SECONDS):
            numbers, last = await node.store.read(count)
            return [
                *(
                    _gauge(*metric, number)
                    for metric, number in zip(_WAITING.values(), numbers, strict=True)
                ),
                *_backup_metrics(node, last),
            ]
    return []


def _backup_metrics(node: HttpNode, last: tuple[float, int] | None) -> Iterator[Family]:
    """Yield the metrics of backups; empty if backups are off. Without a backup, the time is 0, so
    that alerts notice it."""
    if not node.config.backup_to:
        return
    at, size = last or (0.0, 0)
    yield _gauge(
        "tertulia_last_backup_timestamp_seconds",
        "When the last tested backup was made, in UNIX seconds; 0 for never.",
        at,
    )
    yield _gauge("tertulia_last_backup_bytes", "Size of the last tested backup.", size)


def _disk_metrics(node: HttpNode) -> Iterator[Family]:
    with contextlib.suppress(OSError):
        result = os.statvfs(node.config.data_path)
        yield _gauge(
            "tertulia_disk_free_bytes",
            "Free space in the file system of the data directory.",
            result.f_bavail * result.f_frsize,
        )
        yield _gauge(
            "tertulia_disk_size_bytes",
            "Size of the file system of the data directory.",
            result.f_blocks * result.f_frsize,
        )


def _process_metrics() -> Iterator[Family]:
    yield _counter("process_cpu_seconds", "CPU time of the process.", time.process_time())
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield _gauge("process_max_fds", "Limit of open files.", soft)
    with contextlib.suppress(OSError):  # Not on every system.
        resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        yield _gauge(
            "process_resident_memory_bytes", "Resident memory of the process.", resident * _PAGE
        )
        # Without the file descriptor that lists them.
        yield _gauge(
            "process_open_fds",
            "Open files.",
            len(os.listdir("/proc/self/fd")) - 1,
        )
