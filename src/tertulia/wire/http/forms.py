"""What a request brings: its query, and its body as a form."""

import asyncio
import re
from binascii import a2b_qp
from collections.abc import AsyncGenerator
from typing import Final

from python_multipart.exceptions import FormParserError
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from tertulia.wire.http.call import Upload
from tertulia.wire.http.errors import BadBody, BodyTooLarge, Overloaded
from tertulia.wire.http.request_headers import header

MIB: Final = 1024 * 1024
FORM_BYTES: Final = MIB
"""Bytes of a URL-encoded form, and of any body without files. The largest message takes 120,000
bytes when each of its characters is encoded; 90,000 message IDs, or 100 drafts of 10,000 letters,
fit."""
_MAX_FIELDS: Final = 1000
_MAX_BARE_PERCENT_SIGNS: Final = 10_000
"""Percent signs that encode nothing, of one form: enough for a message of nothing else. Each takes
20 times as long as an encoded byte."""
_STEP_BYTES: Final = 256 * 1024
"""Bytes of a multipart form that are parsed in one turn of the event loop."""
_FORM: Final = "application/x-www-form-urlencoded"


async def received(request: Request, limit: int) -> tuple[dict[str, str], list[Upload]]:
    """Query and form as text by name (of the same name in both, the form's), and uploaded files.

    `limit` is that of the body, in bytes; only a multipart form can be larger than `FORM_BYTES`.
    Raises BodyTooLarge, Overloaded, and BadBody for what is no form or no UTF-8.
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
    """The query as text by name, and the body as it came. Raises as `received`."""
    raw_query = request.scope["query_string"]
    return urlencoded(raw_query) if raw_query else {}, await whole_body(request, limit)


async def fields(headers: Headers, body: bytes) -> dict[str, str] | None:
    """The fields of a body that is a form; None for one that says that it is something else.
    BadBody where it is not what it says."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return (await _multipart(headers, body))[0]
    return urlencoded(body) if kind == _FORM else None


async def whole_body(request: Request, limit: int) -> bytes:
    """The body as it is, of at most `limit` bytes. Raises BodyTooLarge, Overloaded."""
    return await _gathering.body(request, limit)


class BodyBuffers:
    """The bodies that are coming in, of all requests together: no more is kept of them than there
    is room for."""

    def __init__(self, room: int) -> None:
        """`room` in bytes."""
        self.room = room
        self.taken = 0

    async def body(self, request: Request, limit: int) -> bytes:
        """Return the whole body. Raise BodyTooLarge, or Overloaded if the buffers are full.

        Most clients send the whole body before they read the response. So a body that is refused
        is still received, but no part of it is kept from when that is known: for a declared length
        from the start. A client that waits for `100 Continue` gets the response without sending.
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
"""Of this process."""


def urlencoded(raw: bytes) -> dict[str, str]:
    """Return the parameters of a query or a form by name; the last one where a name repeats. Raise
    BadBody."""
    if raw.count(b"&") >= _MAX_FIELDS:
        raise BadBody(f"A request can have at most {_MAX_FIELDS} parameters.")
    if b"%" in raw:
        raw, bare = _BARE_PERCENT_SIGN.subn(b"%25", raw, _MAX_BARE_PERCENT_SIGNS + 1)
        if bare > _MAX_BARE_PERCENT_SIGNS:
            raise BadBody("Too many percent signs don't encode anything. Write them as '%25'.")
    found: dict[str, str] = {}
    try:
        # Some clients write UTF-8 as it is, without percent signs.
        for pair in raw.replace(b"+", b" ").split(b"&"):
            if pair:
                name, _, value = pair.partition(b"=")
                found[_unquoted(name)] = _unquoted(value)
    except UnicodeDecodeError:
        raise BadBody("The parameters aren't valid UTF-8.") from None
    return found


_BARE_PERCENT_SIGN: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def _unquoted(text: bytes) -> str:
    if b"%" in text:
        # The standard library decodes percent signs in Python, 100 ms for a MiB; but the same
        # encoding with another sign, quoted-printable, in C.
        text = a2b_qp(text.replace(b"=", b"%3D").replace(b"%", b"="))
    return text.decode()


class StrictParser(MultiPartParser):
    """Takes UTF-8 only, where the original falls back to Latin-1, and no form without an end."""

    _has_ended = False

    async def parse(self) -> FormData:
        """The form. BadBody for what is none."""
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
