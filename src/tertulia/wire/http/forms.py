"""Reading a request's query, form, and files."""

import asyncio
import contextlib
import logging
import re
from binascii import a2b_qp
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final
from urllib.parse import unquote_to_bytes

from msgspec import Struct
from python_multipart.exceptions import FormParserError
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from tertulia.model.errors import Refused, Unavailable
from tertulia.store.uploads import ArrivedFile, UploadDraft, UploadStore
from tertulia.wire.http.errors import BadBody, BodyTooLarge, Overloaded
from tertulia.wire.http.request_head import header

MIB: Final = 1024 * 1024
FORM_BYTES: Final = MIB
"""Largest URL-encoded form or other body without files, in bytes. The largest message takes 120,000
bytes when each character is percent-encoded; 90,000 message IDs or 100 drafts of 10,000 letters
fit."""
_MAX_FIELDS: Final = 1000
_MAX_BARE_PERCENT_SIGNS: Final = 10_000
"""The most percent signs in a form that encode nothing. Each takes 20 times as long to decode as an
encoded byte, and a message may consist of them."""
_STEP_BYTES: Final = 256 * 1024
"""Bytes of a multipart form that are parsed in one turn of the event loop."""
_FORM: Final = "application/x-www-form-urlencoded"


class Upload(Struct, frozen=True):
    """An uploaded file."""

    name: str
    content_type: str
    content: bytes


async def received(request: Request, limit: int) -> tuple[dict[str, str], list[Upload]]:
    """Return the parameters and the uploaded files. The form's parameters win over the query's.

    `limit` is the body's size limit in bytes. Without files, `FORM_BYTES` applies too. Raises
    BodyTooLarge, Overloaded, and BadBody for a malformed form or invalid UTF-8.
    """
    sent: dict[str, str] = {}
    raw_query = request.scope["query_string"]
    if raw_query:
        sent.update(urlencoded(raw_query))
    uploads: list[Upload] = []
    if request.method in {"GET", "HEAD"}:
        return sent, uploads
    kind = header(request.scope["headers"], b"content-type") or ""
    kind = kind.partition(";")[0].strip().lower()
    is_multipart = kind == "multipart/form-data"
    body = await whole_body(request, limit if is_multipart else min(limit, FORM_BYTES))
    if is_multipart:
        fields, uploads = await _multipart(request.headers, body)
        sent.update(fields)
    elif body and kind in {_FORM, ""}:
        sent.update(urlencoded(body))
    elif body.strip():
        raise BadBody(f"The content type {kind[:100]} isn't supported. Send a form.")
    return sent, uploads


async def received_payload(request: Request, limit: int) -> tuple[dict[str, str], bytes]:
    """Return the query's parameters and the raw body. Raises as `received`."""
    raw_query = request.scope["query_string"]
    return urlencoded(raw_query) if raw_query else {}, await whole_body(request, limit)


async def fields(headers: Headers, body: bytes) -> dict[str, str] | None:
    """Return the fields of a form; None for another content type. Raises BadBody."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return (await _multipart(headers, body))[0]
    return urlencoded(body) if kind == _FORM else None


async def whole_body(request: Request, limit: int) -> bytes:
    """Return the body, of up to `limit` bytes. Raises BodyTooLarge, Overloaded."""
    return await _gathering.body(request, limit)


class BodyBuffers:
    """The buffers of bodies that are being received, with a common size limit."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken = 0

    async def body(self, request: Request, limit: int) -> bytes:
        """Return the whole body. Raises BodyTooLarge, or Overloaded if the buffers are full.

        Most clients send the whole body before they read the response. So a refused body is still
        received, but dropped. A client that waits for `100 Continue` gets the response immediately.
        """
        chunks: list[bytes] = []
        size = kept = 0
        headers = request.scope["headers"]
        declared = header(headers, b"content-length") or ""
        is_too_large = declared.isdecimal() and int(declared) > limit
        if is_too_large and (header(headers, b"expect") or "").lower() == "100-continue":
            raise BodyTooLarge(limit)
        is_crowded = False
        try:
            more = True
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunk, more = message.get("body", b""), message.get("more_body", False)
                size += len(chunk)
                is_crowded = is_crowded or self.taken + len(chunk) > self.room
                is_too_large = is_too_large or size > limit
                if not is_too_large and not is_crowded:
                    chunks.append(chunk)
                    kept += len(chunk)
                    self.taken += len(chunk)
                else:
                    chunks.clear()
                    self.taken -= kept
                    kept = 0
                if size > limit + 256 * MIB:
                    break
        finally:
            self.taken -= kept
        if is_too_large:
            raise BodyTooLarge(limit)
        if is_crowded:
            raise Overloaded
        return b"".join(chunks)


_gathering = BodyBuffers(256 * MIB)


def urlencoded(raw: bytes) -> dict[str, str]:
    """Return the parameters of a query or form by name. If a name is repeated, the last value
    counts. Raises BadBody."""
    if raw.count(b"&") >= _MAX_FIELDS:
        raise BadBody(f"A request can have at most {_MAX_FIELDS} parameters.")
    if b"%" in raw:
        raw, bare = _BARE_PERCENT_SIGN.subn(b"%25", raw, _MAX_BARE_PERCENT_SIGNS + 1)
        if bare > _MAX_BARE_PERCENT_SIGNS:
            raise BadBody("Too many percent signs don't encode anything. Write them as '%25'.")
    fields: dict[str, str] = {}
    try:
        # Some clients send UTF-8 without percent-encoding it.
        for pair in raw.replace(b"+", b" ").split(b"&"):
            if pair:
                name, _, value = pair.partition(b"=")
                fields[_unquoted(name)] = _unquoted(value)
    except UnicodeDecodeError:
        raise BadBody("The parameters aren't valid UTF-8.") from None
    return fields


_BARE_PERCENT_SIGN: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def _unquoted(text: bytes) -> str:
    if b"%" in text:
        # The standard library decodes percent signs in Python, which takes 100 ms for a MiB.
        # Quoted-printable, which differs only in the sign, is decoded in C.
        text = a2b_qp(text.replace(b"=", b"%3D").replace(b"%", b"="))
    return text.decode()


class StrictParser(MultiPartParser):
    """A parser that accepts only UTF-8 (the original falls back to Latin-1) and complete forms."""

    _has_ended = False

    async def parse(self) -> FormData:
        """Return the form. Raises BadBody."""
        try:
            form = await super().parse()
        except UnicodeDecodeError:
            raise BadBody("The parameters aren't valid UTF-8.") from None
        except (MultiPartException, FormParserError, KeyError):
            raise BadBody("The body isn't a valid multipart form.") from None
        if not self._has_ended:
            await form.close()
            raise BadBody("The body is an incomplete multipart form.")
        return form

    def on_part_end(self) -> None:
        if self._current_part.file is None:
            self._current_part.data.decode()
        super().on_part_end()

    def on_end(self) -> None:
        self._has_ended = True


async def _multipart(headers: Headers, body: bytes) -> tuple[dict[str, str], list[Upload]]:
    parser = StrictParser(
        headers, _stream(body), max_fields=_MAX_FIELDS, max_part_size=max(len(body), 1)
    )
    form = await parser.parse()
    fields: dict[str, str] = {}
    uploads: list[Upload] = []
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            uploads.append(
                Upload(value.filename or "", value.content_type or "", await value.read())
            )
        else:
            fields[name] = value
    await form.close()
    return fields, uploads


async def _stream(body: bytes) -> AsyncGenerator[bytes, None]:
    for begin in range(0, len(body), _STEP_BYTES):
        yield body[begin : begin + _STEP_BYTES]
        await asyncio.sleep(0)


logger = logging.getLogger("tertulia.http")

OVERHEAD = MIB
"""Bytes that a form may have in addition to its file."""
PATIENCE = 256 * MIB
"""Bytes beyond the limit that are read and dropped, so that the client reads the error."""
SILENCE_SECONDS = 120.0
"""How long a client may pause before it counts as disconnected."""
_EXTENDED_NAME = re.compile(rb"""filename\*\s*=\s*"?([\w-]*)'[^';"]*'([^\s;"]*)"?""", re.IGNORECASE)
_ESCAPED = {"%22": '"', "%0A": "\n", "%0D": "\r"}
"""How browsers encode these characters in file names."""


class _TooLarge(Exception):
    pass


class _FileParser(StrictParser):
    """A parser that writes the form's only file to disk."""

    def __init__(
        self,
        headers: Headers,
        stream: AsyncGenerator[bytes, None],
        uploads: UploadStore,
        limit: int,
    ) -> None:
        super().__init__(headers, stream, max_part_size=OVERHEAD)
        self._uploads = uploads
        self._left = limit
        self.draft: UploadDraft | None = None

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
            return  # A form's file field that was left empty.
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
        for file in self._files_to_close_on_error:
            file.close()


def _decoded(charset: bytes, name: bytes) -> str:
    try:
        return unquote_to_bytes(name).decode(charset.decode() or "utf-8")
    except (UnicodeError, LookupError):
        raise BadBody("The file's name isn't valid.") from None


class Body:
    """A request's body, which can be read in several steps."""

    def __init__(self, request: Request) -> None:
        self._request = request

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the rest of the body as it arrives. Raises ClientDisconnect if the client has
        disconnected or is silent."""
        stream = self._request.stream()
        while True:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    chunk = await anext(stream, None)
            except TimeoutError:
                raise ClientDisconnect from None
            except RuntimeError:
                return  # The body has been read to its end.
            if chunk is None:
                return
            yield chunk

    async def drain(self, limit: int) -> None:
        """Read and drop up to `limit` bytes, because a client that is still sending doesn't read a
        response."""
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size > limit:
                return


async def drained(request: Request) -> None:
    """Read and drop the body of a request that was refused."""
    await Body(request).drain(PATIENCE)


@contextlib.asynccontextmanager
async def received_file(
    request: Request, uploads: UploadStore, limit: int
) -> AsyncIterator[tuple[dict[str, str], ArrivedFile]]:
    """Receive a form with one file of up to `limit` bytes; yield its parameters and the file.

    Raises Refused for no file, several, or one that is too large; BadBody for a malformed form;
    Unavailable if the disk is full. The file is deleted afterwards, unless it was moved into place.
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
            logger.exception("could not write an uploaded file")
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
