"""`/metrics`, for Prometheus: for this machine, and for whom the operator lists."""

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
from tertulia.wire.http.request_head import METRICS, client_address
from tertulia.wire.metrics.families import OfNode, families_of
from tertulia.wire.protocol.addresses import is_listed, is_loopback

logger = logging.getLogger("tertulia.metrics")

ANSWER_SECONDS: Final = 2.0
"""How long another process has to tell. One that stands still is left out."""
_SUFFIX: Final = ".metrics"
_LONGEST: Final = 16 * 1024 * 1024
_decoder = msgspec.json.Decoder(OfNode)


@asynccontextmanager
async def told_to_siblings(node: HttpNode) -> AsyncIterator[None]:
    """Tell the other processes of the server, if it has several, this one's numbers, for the time
    of the context."""
    directory = node.config.bus
    if directory is None:
        yield
        return
    path = _own(directory)

    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                writer.write(msgspec.json.encode(await families_of(node)))
                await writer.drain()
        writer.close()

    _remove(path)
    server = await asyncio.start_unix_server(tell, path)
    path.chmod(0o600)
    try:
        yield
    finally:
        server.close()
        _remove(path)


async def families_of_siblings(node: HttpNode) -> list[OfNode]:
    """The numbers of the server's other processes: of those that tell them in time."""
    directory = node.config.bus
    if directory is None:
        return []
    others = [path for path in directory.glob(f"*{_SUFFIX}") if path != _own(directory)]
    found = await asyncio.gather(*map(_asked, others))
    return [one for one in found if one is not None]


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _own(directory: Path) -> Path:
    return directory / f"{os.getpid()}{_SUFFIX}"


async def _asked(path: Path) -> OfNode | None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path, limit=_LONGEST)
            try:
                return _decoder.decode(await reader.read(-1))
            finally:
                writer.close()
    except ConnectionRefusedError:  # Its process was killed.
        _remove(path)
    except (OSError, TimeoutError, msgspec.MsgspecError) as error:
        logger.warning(
            "a worker does not tell its numbers", extra={"fields": {"reason": repr(error)}}
        )
    return None


_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_PASSED_ON: Final = frozenset(
    {"x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"}
)
"""Headers by which a request shows that a proxy passed it on: then it comes from elsewhere,
whatever address it has."""


def metrics_page(node: HttpNode) -> list[BaseRoute]:
    """The page of a node."""
    may_read = readers(node.config)

    async def metrics(request: Request) -> Response:
        """What the node measures, as Prometheus reads it."""
        if not may_read(request):
            return PlainTextResponse(
                "The setting metrics_allowed does not list this address.\n",
                status_code=403,
            )
        found = [await families_of(node), *await families_of_siblings(node)]
        headers = {"Content-Type": _TYPE, "Cache-Control": "no-store"}
        return Response(await asyncio.to_thread(_exposed, found), headers=headers)

    return [Route(METRICS, metrics)]


def _exposed(found: Sequence[OfNode]) -> bytes:
    from tertulia.wire.metrics.exposition import exposed  # Many servers are never asked.

    return exposed(found)


def readers(config: Config) -> Callable[[Request], bool]:
    """Whether a request may read the metrics."""
    is_allowed = is_listed(config.metrics_allowed)

    def may_read(request: Request) -> bool:
        address = client_address(request)
        if is_allowed(address):
            return True
        # Without an address it came by the path of a socket on this machine.
        is_own = request.client is None or is_loopback(address)
        return is_own and _PASSED_ON.isdisjoint(request.headers.keys())

    return may_read


PERIOD_SECONDS: Final = 0.5
"""Between two looks."""


@contextmanager
def watched(lag: Histogram) -> Iterator[None]:
    """Observe, for the time of the context, how much later than wanted the loop calls something."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def look(wanted: float) -> None:
        nonlocal timer
        now = loop.time()
        lag.observe(max(now - wanted, 0.0))
        timer = loop.call_later(PERIOD_SECONDS, look, now + PERIOD_SECONDS)

    timer = loop.call_later(PERIOD_SECONDS, look, loop.time() + PERIOD_SECONDS)
    try:
        yield
    finally:
        timer.cancel()
