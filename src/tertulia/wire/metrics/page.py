"""`/metrics` for Prometheus, for this machine and the addresses in the setting
`metrics_allowed`."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.log.health import Histogram
from tertulia.service.config import Config
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.peers import is_listed
from tertulia.wire.http.request_head import METRICS, client_address
from tertulia.wire.metrics.families import NodeMetrics, collect_metrics
from tertulia.wire.protocol.addresses import is_loopback

logger = logging.getLogger("tertulia.metrics")

ANSWER_SECONDS: Final = 2.0
"""Timeout for metrics of another process. Without a response, they're left out."""
_SUFFIX: Final = ".metrics"
_LONGEST: Final = 16 * 1024 * 1024
_decoder = msgspec.json.Decoder(NodeMetrics)


@asynccontextmanager
async def shared_with_siblings(node: HttpNode) -> AsyncIterator[None]:
    """Serve this process's metrics to the server's other processes, if any, during the context."""
    directory = node.config.bus
    if directory is None:
        yield
        return
    path = _own_path(directory)

    async def respond(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                writer.write(msgspec.json.encode(await collect_metrics(node)))
                await writer.drain()
        writer.close()

    _remove(path)
    server = await asyncio.start_unix_server(respond, path)
    path.chmod(0o600)
    try:
        yield
    finally:
        server.close()
        _remove(path)


async def collect_sibling_metrics(node: HttpNode) -> list[NodeMetrics]:
    """Get the metrics of the server's other processes, except those that don't respond in time."""
    directory = node.config.bus
    if directory is None:
        return []
    others = [path for path in directory.glob(f"*{_SUFFIX}") if path != _own_path(directory)]
    responses = await asyncio.gather(*map(_fetch, others))
    return [response for response in responses if response is not None]


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _own_path(directory: Path) -> Path:
    return directory / f"{os.getpid()}{_SUFFIX}"


async def _fetch(path: Path) -> NodeMetrics | None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path, limit=_LONGEST)
            try:
                return _decoder.decode(await reader.read(-1))
            finally:
                writer.close()
    except ConnectionRefusedError:  # The process was killed.
        _remove(path)
    except (OSError, TimeoutError, msgspec.MsgspecError) as error:
        logger.warning(
            "could not get a worker's metrics", extra={"fields": {"reason": repr(error)}}
        )
    return None


_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_PROXY_HEADERS: Final = frozenset(
    {"x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"}
)
"""Headers of requests that a proxy forwarded. They don't count as local, whatever their
address is."""


def metrics_page(node: HttpNode) -> list[BaseRoute]:
    may_read = readers(node.config)

    async def metrics(request: Request) -> Response:
        if not may_read(request):
            return PlainTextResponse(
                "The setting metrics_allowed doesn't list this address.\n",
                status_code=403,
            )
        nodes = [await collect_metrics(node), *await collect_sibling_metrics(node)]
        headers = {"Content-Type": _TYPE, "Cache-Control": "no-store"}
        return Response(await asyncio.to_thread(_exposed, nodes), headers=headers)

    return [Route(METRICS, metrics)]


def _exposed(nodes: Sequence[NodeMetrics]) -> bytes:
    from tertulia.wire.metrics.exposition import exposed  # Imported only if used.

    return exposed(nodes)


def readers(config: Config) -> Callable[[Request], bool]:
    """Return a function that says whether a request may read the metrics."""
    is_allowed = is_listed(config.metrics_allowed)

    def may_read(request: Request) -> bool:
        address = client_address(request)
        if is_allowed(address):
            return True
        # Without an address, the request came over a Unix socket.
        is_own = request.client is None or is_loopback(address)
        return is_own and _PROXY_HEADERS.isdisjoint(request.headers.keys())

    return may_read


PERIOD_SECONDS: Final = 0.5
"""The interval between measurements."""


@contextmanager
def watched(lag: Histogram) -> Iterator[None]:
    """Measure the event loop's lag during the context."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def measure(expected: float) -> None:
        nonlocal timer
        now = loop.time()
        lag.observe(max(now - expected, 0.0))
        timer = loop.call_later(PERIOD_SECONDS, measure, now + PERIOD_SECONDS)

    timer = loop.call_later(PERIOD_SECONDS, measure, loop.time() + PERIOD_SECONDS)
    try:
        yield
    finally:
        timer.cancel()
