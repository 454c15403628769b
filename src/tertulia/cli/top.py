"""`tertulia top`: the nodes' activity, from `/metrics`, without Prometheus."""

import contextlib
import math
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
import typer
from msgspec import Struct

from tertulia.app.founding import NoOrganization, founded_database
from tertulia.cli.commands import settings_from
from tertulia.cli.errors import CommandFailed, UsageError
from tertulia.cli.options import AsJson, ConfigFile, DataDir, finite
from tertulia.cli.tables import table
from tertulia.model.numbers import counted
from tertulia.service.config import Config
from tertulia.store import nodes
from tertulia.store.database import DatabaseError

EXAMPLE = "Example: `tertulia top --data-dir data`, or `tertulia top --url http://10.0.0.7:9991`"
ANSWER_SECONDS: Final = 5.0
"""The timeout in seconds of a request for `/metrics`."""
_MOST_BYTES: Final = 16 * 1024 * 1024
_SHARE: Final = 0.95
"""The percentile at which times are shown."""
_SECONDS: Final = 10_000.0
"""Times longer than this many milliseconds are shown in seconds."""
_CLEAR: Final = "\x1b[H\x1b[J"
_ANY_HOST: Final = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104 (asked, not bound)


class NodeRow(Struct, frozen=True, kw_only=True):
    """A node's activity since the last update. Rates are None for a node that has started since.
    Times are the 95th percentile in milliseconds, or None if nothing happened."""

    node: str
    state: str
    """serving, draining or stale."""
    requests_per_second: float | None
    request_ms: float | None
    refused_per_second: float | None
    entries_per_second: float | None
    """The number of entries per second that it committed to the log."""
    commit_ms: float | None
    loop_lag_ms: float | None
    """The delay of its event loop in milliseconds."""
    inbox: int
    """The number of requests that wait for the log's writer."""
    lag_entries: int
    lag_seconds: float
    waiting_polls: int
    queues: int
    connections: int
    cpu: float | None
    """CPU use as a share of one core; 1.0 is a whole core."""
    memory_mib: float | None


class Figures(Struct, frozen=True, kw_only=True):
    """One update. Pending work is in the database, so it's the same for all nodes; None if the
    database was unavailable."""

    at: float
    """UNIX seconds."""
    nodes: list[NodeRow]
    mails: int | None
    pushes: int | None
    notices: int | None
    service_calls: int | None
    jobs_in_trouble: list[str]
    unreachable: list[str]
    """Sentences about servers that didn't respond."""


Labels = tuple[tuple[str, str], ...]


class Scrape(Struct, frozen=True, kw_only=True):
    """Samples of all servers: by node, by name, and by labels."""

    at: float
    """Seconds of a monotonic clock."""
    samples: Mapping[str, Mapping[str, Mapping[Labels, float]]]
    unreachable: Sequence[str]


def top(
    url: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Address of a server. Can be repeated. Default: the servers of the organization"
            " on this machine.",
        ),
    ] = None,
    interval: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.2, max=3600, callback=finite, help="Seconds between updates."
        ),
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print the values once, and exit.")] = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what the nodes are doing: request rates, lag, queues, waiting polls, and event loop
    delay.

    Reads /metrics, which this machine can always read; other machines need to be in
    metrics_allowed. The processes of one server are all included. Use --url for servers on other
    machines. Press Ctrl-C to stop. With --json, prints one object per line for each update.
    """
    urls = url or _own_addresses(settings_from({"data_dir": data_dir}, config))
    before = _scraped(urls)
    if not before.samples:
        raise CommandFailed(" ".join(before.unreachable) or "The server returned no metrics.")
    try:
        while True:
            time.sleep(interval)  # Rates are measured during this time. Ctrl-C ends it.
            after = _scraped(urls)
            _show(figures(before, after), as_json=as_json, clear=not once and sys.stdout.isatty())
            if once:
                return
            before = after
    except KeyboardInterrupt:
        return


def _own_addresses(settings: Config) -> list[str]:
    """Return the addresses of the organization's servers on this machine. If none is running, or
    they can't be listed, return the address that a server with these settings listens on."""
    if settings.unix_socket:
        return [f"unix:{settings.unix_socket}"]
    ports = _ports_in_use(settings) or {settings.port}
    if ports == {0}:
        raise UsageError("The port is 0, so the server picks one. Use --url.")
    scheme = "https" if settings.tls_cert else "http"
    host = _ANY_HOST.get(settings.host, settings.host)
    host = f"[{host}]" if ":" in host else host
    return [f"{scheme}://{host}:{port}" for port in sorted(ports)]


def _ports_in_use(settings: Config) -> set[int]:
    with contextlib.suppress(NoOrganization, DatabaseError):
        with founded_database(settings) as connection:
            listed = nodes.list_nodes(connection)
        hostname = socket.gethostname()
        return {
            listed_node.entry.port
            for listed_node in listed
            if listed_node.is_living and listed_node.entry.host == hostname
        } - {0}
    return set()


def _scraped(urls: Sequence[str]) -> Scrape:
    samples: dict[str, dict[str, dict[Labels, float]]] = {}
    unreachable = []
    at = time.monotonic()
    for url in urls:
        try:
            text = _fetched(url)
        except CommandFailed as error:
            unreachable.append(str(error))
        else:
            samples |= parsed(text)
    return Scrape(at=at, samples=samples, unreachable=unreachable)


def _fetched(url: str) -> str:
    """Fetch /metrics from a server. Raise CommandFailed if that fails."""
    import httpx  # Imported here because only this command sends requests.

    path = url.removeprefix("unix:")
    is_path = path != url
    site = "http://localhost" if is_path else url.rstrip("/")
    if not is_path and urlsplit(site).scheme not in {"http", "https"}:
        raise UsageError(f"'{url}' isn't a URL that starts with http:// or https://.")
    # The certificate doesn't name the loopback address, and no secret is sent.
    transport = httpx.HTTPTransport(uds=path if is_path else None, verify=False)
    try:
        with httpx.Client(transport=transport, timeout=ANSWER_SECONDS, trust_env=False) as client:
            response = client.get(f"{site}/metrics")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CommandFailed(f"Can't connect to {url}: {error}") from None
    if response.status_code == httpx.codes.FORBIDDEN:
        raise CommandFailed(f"The server at {url} doesn't list this machine in metrics_allowed.")
    if response.status_code != httpx.codes.OK or len(response.content) > _MOST_BYTES:
        raise CommandFailed(f"{url} returned no metrics (status {response.status_code}).")
    return response.text


def parsed(text: str) -> dict[str, dict[str, dict[Labels, float]]]:
    """Parse metrics by node, name, and labels. Raise CommandFailed if the text isn't valid."""
    from prometheus_client.parser import text_string_to_metric_families

    by_node: dict[str, dict[str, dict[Labels, float]]] = defaultdict(lambda: defaultdict(dict))
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = dict(sample.labels)
                node = labels.pop("node", None)
                if node is not None:
                    by_node[node][sample.name][tuple(sorted(labels.items()))] = sample.value
    except (ValueError, KeyError):
        raise CommandFailed("The server's response to /metrics isn't valid.") from None
    return {node: dict(samples) for node, samples in by_node.items()}


def figures(before: Scrape, after: Scrape) -> Figures:
    """Return the activity between two scrapes, and the state at the second one."""
    nodes = [
        _of_node(name, _Between(before.samples.get(name, {}), samples, after.at - before.at))
        for name, samples in sorted(after.samples.items())
    ]
    every = list(after.samples.values())
    return Figures(
        at=round(time.time(), 3),
        nodes=nodes,
        mails=_waiting(every, "tertulia_mails_waiting"),
        pushes=_waiting(every, "tertulia_pushes_waiting"),
        notices=_waiting(every, "tertulia_notices_waiting"),
        service_calls=_waiting(every, "tertulia_service_calls_waiting"),
        jobs_in_trouble=sorted(
            {
                dict(labels).get("job", "")
                for samples in every
                for labels, value in samples.get("tertulia_job_in_trouble", {}).items()
                if value
            }
        ),
        unreachable=list(after.unreachable),
    )


def _waiting(every: Iterable[Mapping[str, Mapping[Labels, float]]], name: str) -> int | None:
    numbers = [int(value) for samples in every for value in samples.get(name, {}).values()]
    return max(numbers, default=None)


class _Between:
    """The samples of one node in two scrapes."""

    def __init__(
        self,
        before: Mapping[str, Mapping[Labels, float]],
        after: Mapping[str, Mapping[Labels, float]],
        seconds: float,
    ) -> None:
        self._before, self._after, self._seconds = before, after, seconds
        self._looks = (after, before)
        start = "tertulia_start_time_seconds"
        self._is_the_same = bool(before) and before.get(start) == after.get(start)

    def now(self, name: str) -> float | None:
        """Return the sum of a gauge's samples, or None if it has none."""
        series = self._after.get(name)
        return None if series is None else sum(series.values())

    def count(self, name: str) -> int:
        return int(self.now(name) or 0)

    def rate(self, name: str) -> float | None:
        """Return the growth of a counter per second, or None for a node that has started since."""
        if not self._is_the_same or name not in self._after:
            return None
        grown = sum(self._after[name].values()) - sum(self._before.get(name, {}).values())
        return round(grown / self._seconds, 3)

    def most_ms(self, name: str) -> float | None:
        """Return the percentile of the times observed between the scrapes, or None if there were
        none."""
        if not self._is_the_same:
            return None
        buckets: dict[float, float] = defaultdict(float)
        for looked, sign in ((self._after, 1), (self._before, -1)):
            for labels, value in looked.get(f"{name}_bucket", {}).items():
                buckets[float(dict(labels)["le"])] += sign * value
        total = buckets.get(math.inf, 0)
        if total <= 0:
            return None
        bound = min(le for le, count in buckets.items() if count >= _SHARE * total)
        if math.isinf(bound):  # The sum is an upper bound for each of them.
            sums = (sum(looked.get(f"{name}_sum", {}).values()) for looked in self._looks)
            bound = next(sums) - next(sums)
        return round(bound * 1000, 3)


def _of_node(name: str, between: _Between) -> NodeRow:
    state = "draining" if between.now("tertulia_node_draining") else "serving"
    memory = between.now("process_resident_memory_bytes")
    return NodeRow(
        node=name,
        state="stale" if between.now("tertulia_node_stale") else state,
        requests_per_second=between.rate("tertulia_http_requests_total"),
        request_ms=between.most_ms("tertulia_http_request_seconds"),
        refused_per_second=between.rate("tertulia_http_requests_refused_total"),
        entries_per_second=between.rate("tertulia_log_entries_total"),
        commit_ms=between.most_ms("tertulia_commit_seconds"),
        loop_lag_ms=between.most_ms("tertulia_event_loop_lag_seconds"),
        inbox=between.count("tertulia_inbox_requests"),
        lag_entries=between.count("tertulia_log_lag_entries"),
        lag_seconds=between.now("tertulia_log_lag_seconds") or 0.0,
        waiting_polls=between.count("tertulia_waiting_polls"),
        queues=between.count("tertulia_event_queues"),
        connections=between.count("tertulia_http_connections"),
        cpu=between.rate("process_cpu_seconds_total"),
        memory_mib=None if memory is None else round(memory / 2**20, 1),
    )


# Showing

_HEADINGS: Final = (
    *("NODE", "STATE", "REQ/S", "95 %", "REFUSED/S", "ENTRIES/S", "COMMIT", "INBOX", "LAG"),
    *("LOOP", "POLLS", "QUEUES", "CONNECTIONS", "CPU", "MEMORY"),
)


def _show(figures: Figures, *, as_json: bool, clear: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.encode(figures).decode())
        return
    typer.echo((_CLEAR if clear else "") + "\n".join(shown(figures)))


def shown(figures: Figures) -> list[str]:
    """Return the figures as a table."""
    lines = table(_HEADINGS, map(_row, figures.nodes))
    waiting = [
        counted(number, text, several)
        for number, text, several in (
            (figures.mails, "email", "emails"),
            (figures.pushes, "push notification", "push notifications"),
            (figures.notices, "notification", "notifications"),
            (figures.service_calls, "service call", "service calls"),
        )
        if number is not None
    ]
    lines.append(
        f"Pending: {', '.join(waiting) or 'unknown, because the database is unavailable'}."
    )
    if figures.jobs_in_trouble:
        lines.append(f"Failing jobs (see the log): {', '.join(figures.jobs_in_trouble)}.")
    return [*lines, *figures.unreachable]


def _row(node: NodeRow) -> tuple[str, ...]:
    lag = f"{node.lag_entries} ({node.lag_seconds:g} s)" if node.lag_seconds else "0"
    return (
        *(node.node, node.state, _rate(node.requests_per_second), _ms(node.request_ms)),
        *(_rate(node.refused_per_second), _rate(node.entries_per_second), _ms(node.commit_ms)),
        *(str(node.inbox), lag, _ms(node.loop_lag_ms), str(node.waiting_polls), str(node.queues)),
        *(str(node.connections), "-" if node.cpu is None else f"{node.cpu:.0%}"),
        "-" if node.memory_mib is None else f"{node.memory_mib:.0f} MiB",
    )


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value / 1000:.0f} s" if value >= _SECONDS else f"{value:g} ms"
