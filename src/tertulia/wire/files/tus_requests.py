"""The headers and body of a tus request."""

import asyncio
import base64
import binascii
import hashlib
import re
from collections.abc import AsyncGenerator
from typing import Any, Final

from starlette.requests import Request

from tertulia.model.errors import Refused
from tertulia.store.partial_uploads import UploadPieces
from tertulia.wire.http.errors import TusRefused
from tertulia.wire.http.forms import MIB, Body

ALGORITHMS: Final = ("sha1", "sha256", "md5")
"""Supported checksum algorithms."""
LOOK_SECONDS: Final = 0.5
"""How often a request that waits for its body checks whether another process wants the upload."""
CHUNK: Final = MIB
"""Bytes that are buffered before they're written."""
NUMBER: Final = re.compile(r"[0-9]{1,18}")


class Checksum:
    """The expected checksum of a chunk."""

    def __init__(self, algorithm: str, expected: bytes) -> None:
        self._hash = hashlib.new(algorithm, usedforsecurity=False)
        self._expected = expected

    @classmethod
    def of(cls, request: Request) -> "Checksum | None":
        """Return the request's checksum, or None. Refuses one that can't be parsed."""
        header = request.headers.get("upload-checksum")
        if header is None:
            return None
        algorithm, _, encoded = header.strip().partition(" ")
        if algorithm not in ALGORITHMS:
            raise Refused("This checksum algorithm isn't supported.")
        try:
            return cls(algorithm, base64.b64decode(encoded, validate=True))
        except (binascii.Error, ValueError):
            raise Refused("The checksum isn't valid.") from None

    def update(self, piece: bytes) -> None:
        self._hash.update(piece)

    def verify(self) -> None:
        """Raise TusRefused if the checksum doesn't match."""
        if self._hash.digest() != self._expected:
            raise TusRefused(460, "The checksum doesn't match the chunk.")


def content_type(request: Request) -> str:
    """Return the body's media type, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def number_in(request: Request, header: str) -> int:
    """Return the number of bytes in a header. Refuses a missing or invalid one."""
    text = request.headers.get(header, "")
    if not NUMBER.fullmatch(text):
        raise Refused(f"The {header.title()} header must be a number of bytes.")
    return int(text)


def metadata_in(header: str) -> dict[str, str]:
    """Decode an Upload-Metadata header. Refuses an invalid one."""
    metadata: dict[str, str] = {}
    for pair in header.split(",") if header.strip() else ():
        name, _, encoded = pair.strip().partition(" ")
        if not name or name in metadata:
            raise Refused("The Upload-Metadata header isn't valid.")
        try:
            metadata[name] = base64.b64decode(encoded.strip(), validate=True).decode()
        except ValueError:
            raise Refused("The Upload-Metadata header isn't valid.") from None
    return metadata


async def gathered(
    request: Request, stop: asyncio.Event, pieces: UploadPieces
) -> AsyncGenerator[bytes, None]:
    """Yield the body in chunks of about `CHUNK` bytes.

    Raises TusRefused when another request wants the upload, on this process or another. Bytes that
    arrived before that, or before the client disconnected, are yielded first.
    """
    waiting = bytearray()
    stream = Body(request).chunks()
    stopped = asyncio.create_task(stop.wait())
    try:
        while True:
            next_chunk = asyncio.ensure_future(anext(stream, None))
            await _either(next_chunk, stopped, pieces)
            failed = next_chunk.exception() if next_chunk.done() else None
            chunk = None if failed or not next_chunk.done() else next_chunk.result()
            waiting += chunk or b""
            ends = chunk is None
            if waiting and (ends or len(waiting) >= CHUNK):
                yield bytes(waiting)
                waiting.clear()
            if failed is not None:
                raise failed
            if not next_chunk.done():
                next_chunk.cancel()
                raise TusRefused(423, "Another request is continuing this upload.")
            if ends:
                return
    finally:
        stopped.cancel()


async def _either(
    next_chunk: "asyncio.Future[bytes | None]", stopped: "asyncio.Future[Any]", pieces: UploadPieces
) -> None:
    """Wait for more of the body, or until another request wants the upload."""
    while not pieces.is_wanted:
        done, _ = await asyncio.wait(
            {next_chunk, stopped}, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        if done:
            return
