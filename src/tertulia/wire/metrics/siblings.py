"""The processes of one server tell each other their numbers: a scrape reaches any one of them."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from tertulia.wire.http.node import HttpNode
from tertulia.wire.metrics.families import OfNode, families_of

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
