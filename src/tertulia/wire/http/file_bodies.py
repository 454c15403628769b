"""A form with a file that may be large: written to the disk as it comes in."""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from tertulia.model.errors import Refused, Unavailable
from tertulia.store.uploads import ArrivedFile, Draft, Uploads
from tertulia.wire.http.errors import BadBody
from tertulia.wire.http.forms import MIB, StrictParser, urlencoded

logger = logging.getLogger("tertulia.http")

OVERHEAD = MIB
"""Bytes that a form may have beside its file."""
PATIENCE = 256 * MIB
"""Bytes beyond the limit that are read and dropped, so that the client reads the refusal."""
SILENCE_SECONDS = 120.0
"""A client that sends nothing for so long has gone."""
_EXTENDED_NAME = re.compile(rb"""filename\*\s*=\s*"?([\w-]*)'[^';"]*'([^\s;"]*)"?""", re.IGNORECASE)
_ESCAPED = {"%22": '"', "%0A": "\n", "%0D": "\r"}
"""What browsers write so in the name of a file."""


class _TooLarge(Exception):
    pass


class _FileParser(StrictParser):
    """Writes the one file of a form to the disk."""

    def __init__(
        self, headers: Headers, stream: AsyncGenerator[bytes, None], uploads: Uploads, limit: int
    ) -> None:
        super().__init__(headers, stream, max_part_size=OVERHEAD)
        self._uploads = uploads
        self._left = limit
        self.draft: Draft | None = None

    def on_headers_finished(self) -> None:
        part = self._current_part
        extended = _EXTENDED_NAME.search(part.content_disposition or b"")
        if extended and part.content_disposition:
            part.content_disposition += b'; filename="x"'
        super().on_headers_finished()
        if part.file is None:
            return
        if extended:
            part.file.filename = _decoded(*extended.groups())
        if not part.file.filename:
            return  # A form's field for a file, left empty.
        if self.draft is not None:
            raise Refused("You can upload only one file at a time.")
        self.draft = self._uploads.begin()
        part.file.file.close()
        part.file.file = self.draft.file

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._current_part.file is not None:
            self._left -= end - start
            if self._left < 0:
                raise _TooLarge
        super().on_part_data(data, start, end)

    def close(self) -> None:
        """Let go of what is no file with a name."""
        for file in self._files_to_close_on_error:
            file.close()


def _decoded(charset: bytes, name: bytes) -> str:
    try:
        return unquote_to_bytes(name).decode(charset.decode() or "utf-8")
    except (UnicodeError, LookupError):
        raise BadBody("The file's name isn't valid.") from None


class Body:
    """A request's body. It can be left in the middle, and taken up again."""

    def __init__(self, request: Request) -> None:
        self._request = request

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """What has not been read yet, as it comes. ClientDisconnect where the client has gone, or
        nothing came for long."""
        stream = self._request.stream()
        while True:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    chunk = await anext(stream, None)
            except TimeoutError:
                raise ClientDisconnect from None
            except RuntimeError:
                return  # It has been read to its end.
            if chunk is None:
                return
            yield chunk

    async def drain(self, limit: int) -> None:
        """Read and drop what is left, at most so many bytes: a client that is still sending hears
        no answer."""
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size > limit:
                return


async def drained(request: Request) -> None:
    """Read and drop the body of a request that is refused whatever it says."""
    await Body(request).drain(PATIENCE)


@contextlib.asynccontextmanager
async def received_file(
    request: Request, uploads: Uploads, limit: int
) -> AsyncIterator[tuple[dict[str, str], ArrivedFile]]:
    """Query and fields as text by name, and the one file, which may have so many bytes.

    Raises Refused where there is no file, more than one, or one that is too large; BadBody for
    what is no form; Unavailable where the disk is full. The file is gone afterwards, unless it was
    settled in its place.
    """
    body = Body(request)
    parser = _FileParser(request.headers, body.chunks(), uploads, limit)
    try:
        try:
            arrived = await _arrived(parser, request.headers)
            sent = _fields(parser, request)
        except _TooLarge:
            await body.drain(PATIENCE)
            raise Refused(
                f"The file is larger than the {limit // MIB} MiB limit. Upload a smaller file."
            ) from None
        except Refused:
            await body.drain(PATIENCE)
            raise
        except OSError as error:
            logger.exception("an uploaded file could not be written")
            raise Unavailable("The server couldn't save the file. Try again later.") from error
        yield sent, arrived
    finally:
        parser.close()
        if parser.draft is not None:
            await asyncio.to_thread(parser.draft.discard)


async def _arrived(parser: _FileParser, headers: Headers) -> ArrivedFile:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        raise Refused("The request doesn't contain a file. Send it as a multipart form.")
    form = await parser.parse()
    for _, file in form.multi_items():
        if not isinstance(file, str) and file.filename and parser.draft is not None:
            size = await asyncio.to_thread(parser.draft.finish)
            name = file.filename
            for escaped, character in _ESCAPED.items():
                name = name.replace(escaped, character)
            return ArrivedFile(name, file.content_type or "", size, parser.draft.arriving)
    raise Refused("The request doesn't contain a file.")


def _fields(parser: _FileParser, request: Request) -> dict[str, str]:
    query = request.scope["query_string"]
    fields = {name: value for name, value in parser.items if isinstance(value, str)}
    return {**(urlencoded(query) if query else {}), **fields}
