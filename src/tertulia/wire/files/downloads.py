"""Downloads of uploaded files, outside of the API's paths."""

import html
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cache
from importlib import resources
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from tertulia.domain.accounts.access_keys import NOTHING
from tertulia.model.attachments import ADDRESS, SHOWN, Attachment
from tertulia.model.errors import FilesUnavailable, MayNotOpen, Refused, Unavailable, WrongApiKey
from tertulia.model.users import BotKind, User
from tertulia.pictures import BadPicture
from tertulia.service import links
from tertulia.service.files.uploads import may_open, thumbnail
from tertulia.store.files import StoredFile
from tertulia.wire.api.attachments import TICKET
from tertulia.wire.api.exports import TICKET as EXPORT_TICKET
from tertulia.wire.http.authentication import (
    authenticated,
    owner_of_key,
    record_refused_key,
    within_reach,
)
from tertulia.wire.http.errors import error_response
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.rate_limits import read_for
from tertulia.wire.http.request_head import POSITION

EXPORT_TYPE: Final = "application/zip"
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


async def stored_file(
    node: HttpNode, request: Request, file: StoredFile, media_type: str, headers: dict[str, str]
) -> Response:
    """Respond with a stored file, or with the byte range that the request asks for.

    The caller must have been authorized. `headers` must have `Content-Disposition` and `ETag`.
    Raises FileNotFoundError if the file was deleted in the meantime.
    """
    if file.local_path is not None:
        return FileResponse(
            file.local_path, media_type=media_type, headers=headers, stat_result=file.status
        )
    if node.config.file_downloads == "redirect" and request.method != "HEAD":
        disposition = headers["Content-Disposition"]
        # The bucket sends neither our content security policy nor `nosniff`. Downloads get a type
        # that browsers don't display, and no displayed type can run scripts.
        inline = disposition.startswith("inline")
        address = await file.files.signed(
            file,
            media_type=media_type if inline else "application/octet-stream",
            disposition=disposition,
            now=node.clock(),
        )
        if address is not None:
            return RedirectResponse(address, 302, {**headers, "Cache-Control": "no-store"})
    changed = datetime.fromtimestamp(int(file.modified), UTC)
    headers = {
        **headers,
        "Accept-Ranges": "bytes",
        "Last-Modified": format_datetime(changed, usegmt=True),
    }
    byte_range = _byte_range(request, file.size, headers)
    if byte_range is None:
        return Response(
            status_code=416, headers={**headers, "Content-Range": f"bytes */{file.size}"}
        )
    start, end = byte_range
    status = 200
    if end - start < file.size:
        status = 206
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
    headers["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=media_type)
    chunks = file.files.chunks(file.path, start, end)
    # Read before the response begins: the file may be gone, or the bucket unavailable.
    first = await anext(chunks, b"")
    content = _checked(first, chunks, end - start)
    return StreamingResponse(content, status, headers, media_type)


async def _checked(first: bytes, rest: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """Yield the whole file. Raises FilesUnavailable, which aborts the response, if its size is
    wrong."""
    remaining = size - len(first)
    yield first
    async for chunk in rest:
        remaining -= len(chunk)
        if remaining < 0:
            break
        yield chunk
    if remaining:
        raise FilesUnavailable("A stored file has the wrong size.")


def _byte_range(request: Request, size: int, headers: dict[str, str]) -> tuple[int, int] | None:
    """Return the requested byte range as (start, end), with `end` excluded.

    Without a single valid range in the request, it's the whole file. Return None for a range beyond
    the end of the file.
    """
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


_POLICY: Final = (
    "default-src 'none'; img-src 'self'; media-src 'self'; object-src 'self';"
    " style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
SANDBOX: Final = f"{_POLICY}; sandbox"
"""For all types except PDF, which browsers don't display in a sandbox."""

FOREIGN: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": f"Authorization, Range, {POSITION}",
    "Access-Control-Expose-Headers": "Accept-Ranges, Content-Disposition, Content-Range, ETag",
}
"""CORS headers for web clients on other origins, which send their own credentials."""


class Gone(Refused):
    """The file doesn't exist or was deleted."""

    def __init__(self) -> None:
        super().__init__("This file doesn't exist or has been deleted.")


def file_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """Return the routes to uploaded files."""

    async def show(request: Request) -> Response:
        attachment = await _authorized(node, request, request.path_params["path"])
        return await _file(node, request, attachment, download=False)

    async def download(request: Request) -> Response:
        attachment = await _authorized(node, request, request.path_params["path"])
        return await _file(node, request, attachment, download=True)

    async def temporary(request: Request) -> Response:
        path = node.vault.text_of(TICKET, request.path_params["ticket"], node.clock())
        attachment = None if path is None else node.state.uploads.at_path(path)
        if attachment is None:
            raise Gone
        return await _file(node, request, attachment, download=False)

    async def export(request: Request) -> Response:
        number = node.vault.text_of(EXPORT_TICKET, request.path_params["ticket"], node.clock())
        export = None if number is None else node.state.data_exports.get(int(number))
        if export is None or not export.path or not node.state.users[export.user_id].is_active:
            raise Gone
        file = await node.files.found(export.path)
        if file is None:
            raise Gone
        headers = {
            **_headers(EXPORT_TYPE),
            "Content-Disposition": disposition("attachment", request.path_params["name"]),
            "ETag": f'"{export.path}"',
        }
        return await stored_file(node, request, file, EXPORT_TYPE, headers)

    async def show_thumbnail(request: Request) -> Response:
        attachment = await _authorized(node, request, request.path_params["path"])
        file = await thumbnail(node, attachment, request.path_params["form"])
        tag = f'"{attachment.key}-{file.path.rpartition("/")[2]}"'
        headers = {**_headers("image/webp"), "Content-Disposition": "inline", "ETag": tag}
        if _is_cached(request, tag):
            return Response(status_code=304, headers=headers)
        return await stored_file(node, request, file, "image/webp", headers)

    return (
        page(node, links.TEMPORARY + "{ticket}/{name}", temporary),
        page(node, links.EXPORT + "{ticket}/{name}", export),
        page(node, ADDRESS + "thumbnail/{path:path}/{form}", show_thumbnail, shows_picture=True),
        page(node, ADDRESS + "download/{path:path}", download),
        page(node, ADDRESS + "{path:path}", show),
    )


def page(
    node: HttpNode,
    path: str,
    respond: Callable[[Request], Awaitable[Response]],
    *,
    shows_picture: bool = False,
) -> Route:
    """Return a route that responds with a file, or with an error as HTML or as a placeholder
    image."""

    async def get(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=FOREIGN)
        try:
            response = await respond(request)
        except (Refused, Unavailable, BadPicture) as error:
            return _refusal(request, error, shows_picture=shows_picture)
        except FileNotFoundError:  # Deleted in the meantime.
            return _refusal(request, Gone(), shows_picture=shows_picture)
        # The response must not contain changes that aren't on disk yet.
        await node.log.durability.settled()
        return response

    return Route(path, get, methods=["GET", "HEAD", "OPTIONS"])


def _refusal(request: Request, error: Exception, *, shows_picture: bool) -> Response:
    status, body, headers = error_response(error)
    if isinstance(error, Gone | BadPicture):
        status = 404
    # Without WWW-Authenticate, so that images don't make browsers ask for a password.
    headers = {name: value for name, value in headers.items() if name == "Retry-After"}
    headers |= {"Cache-Control": "no-store", "Content-Security-Policy": SANDBOX}
    accepted = request.headers.get("accept", "")
    expects_image = request.headers.get("sec-fetch-dest") == "image" or (
        "image/" in accepted and "text/html" not in accepted
    )
    if expects_image or shows_picture:
        return Response(_no_picture(), status, headers, "image/svg+xml")
    return Response(f"<p>{html.escape(body['msg'])}</p>", status, headers, "text/html")


@cache
def _no_picture() -> bytes:
    return resources.files("tertulia.wire").joinpath("assets/no-picture.svg").read_bytes()


async def _authorized(node: HttpNode, request: Request, path: str) -> Attachment:
    """Authorize the caller to open the file. Raises Gone or MayNotOpen, or an authentication
    error."""
    user = _caller(node, request)
    request.state.user = user
    read_for(request, user)
    if user is None:
        node.request_limits.count(request, None)
    attachment = node.state.uploads.at_path(path)
    if attachment is None:
        raise Gone
    if user is None and not node.admits_spectators:
        raise MayNotOpen
    if user is not None and user.bot is not None and user.bot.kind is BotKind.INCOMING_WEBHOOK:
        raise MayNotOpen
    if not await may_open(node, user, attachment):
        raise MayNotOpen
    return attachment


def _caller(node: HttpNode, request: Request) -> User | None:
    """Authenticate by the Authorization header, by an API key in the URL (only for files), or by
    the session cookie."""
    api_key = request.query_params.get("api_key")
    try:
        if api_key is None or "authorization" in request.headers:
            user = authenticated(node, request, NOTHING)
        else:
            user = owner_of_key(node, request, api_key, NOTHING)
    except WrongApiKey:
        record_refused_key(node, request)
        raise
    return within_reach(request, user)


async def _file(
    node: HttpNode, request: Request, attachment: Attachment, *, download: bool
) -> Response:
    tag = f'"{attachment.key}"'
    displayed = attachment.media_type in SHOWN and not download
    headers = {
        **_headers(attachment.media_type),
        "Content-Disposition": disposition(
            "inline" if displayed else "attachment", attachment.name
        ),
        "ETag": tag,
    }
    if _is_cached(request, tag):
        return Response(status_code=304, headers=headers)
    file = await node.uploads.found(attachment.path)
    if file is None:
        raise Gone
    return await stored_file(node, request, file, attachment.media_type, headers)


def _headers(media_type: str) -> dict[str, str]:
    return {
        # Files never change, but permissions do.
        "Cache-Control": "private, no-cache",
        "Vary": "Authorization, Cookie",
        "Content-Security-Policy": _POLICY if media_type == "application/pdf" else SANDBOX,
        "Referrer-Policy": "no-referrer",
        **FOREIGN,
    }


def _is_cached(request: Request, tag: str) -> bool:
    tags = {
        text.strip().removeprefix("W/")
        for text in request.headers.get("if-none-match", "").split(",")
    }
    return tag in tags or "*" in tags


def disposition(kind: str, name: str) -> str:
    """Return a Content-Disposition header (RFC 6266) with the name, and an ASCII fallback for older
    clients."""
    plain = re.sub(r'[^ -~]|["\\%]', "_", name)
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
