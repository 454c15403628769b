"""The answer with a stored file: from the disk, from a bucket through this server, or an address at
the bucket that is good for some minutes."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse

from tertulia.model.errors import FilesUnavailable
from tertulia.store.files import StoredFile
from tertulia.wire.http.node import HttpNode

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


async def stored_file(
    node: HttpNode, request: Request, found: StoredFile, media_type: str, headers: dict[str, str]
) -> Response:
    """The file with these headers, among them `Content-Disposition` and `ETag`; a part of it where
    the request asks for one. Who asks may open it. FileNotFoundError where it has gone since."""
    if found.place is not None:
        return FileResponse(
            found.place, media_type=media_type, headers=headers, stat_result=found.status
        )
    if node.config.file_downloads == "redirect" and request.method != "HEAD":
        disposition = headers["Content-Disposition"]
        # There it has neither our policy nor `nosniff`: what is to be saved has no type to be shown
        # by, and nothing that is shown can run.
        shown = media_type if disposition.startswith("inline") else "application/octet-stream"
        address = await found.files.signed(
            found, media_type=shown, disposition=disposition, now=node.clock()
        )
        if address is not None:
            return RedirectResponse(address, 302, {**headers, "Cache-Control": "no-store"})
    changed = datetime.fromtimestamp(int(found.modified), UTC)
    headers = {
        **headers,
        "Accept-Ranges": "bytes",
        "Last-Modified": format_datetime(changed, usegmt=True),
    }
    wanted = _wanted(request, found.size, headers)
    if wanted is None:
        refused = {**headers, "Content-Range": f"bytes */{found.size}"}
        return Response(status_code=416, headers=refused)
    start, end = wanted
    status = 200
    if end - start < found.size:
        status = 206
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{found.size}"
    headers["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=media_type)
    coming = found.files.chunks(found.path, start, end)
    # Before anything is answered: the file may be gone, or the bucket be away.
    first = await anext(coming, b"")
    content = _joined(first, coming, end - start)
    return StreamingResponse(content, status, headers, media_type)


async def _joined(first: bytes, rest: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """All of it. FilesUnavailable where it is not as long as was said: the answer breaks off."""
    left = size - len(first)
    yield first
    async for chunk in rest:
        left -= len(chunk)
        if left < 0:
            break
        yield chunk
    if left:
        raise FilesUnavailable("A stored file has the wrong size.")


def _wanted(request: Request, size: int, headers: dict[str, str]) -> tuple[int, int] | None:
    """From which byte up to which (excluded) the request wants the file: all of it, unless it asks
    for one part in a way that is understood. None for a part that there is not."""
    match = _RANGE.fullmatch(request.headers.get("range", "").replace(" ", ""))
    condition = request.headers.get("if-range")
    is_same = condition in {None, headers["ETag"], headers["Last-Modified"]}
    if match is None or not is_same or match[0] == "bytes=-":
        return 0, size
    if not match[1]:
        last = min(int(match[2]), size)
        return (size - last, size) if last else None
    start = int(match[1])
    end = min(int(match[2]) + 1, size) if match[2] else size
    if match[2] and int(match[2]) < start:
        return 0, size
    return (start, end) if start < size else None
