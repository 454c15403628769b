"""Uploaded files as browsers and apps fetch them, outside of the interface's paths."""

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

from tertulia.model.attachments import ADDRESS, SHOWN, Attachment
from tertulia.model.errors import FilesUnavailable, MayNotOpen, Refused, Unavailable
from tertulia.model.users import BotKind, User
from tertulia.pictures import BadPicture
from tertulia.service import links
from tertulia.service.files.uploads import may_open, thumbnail
from tertulia.store.files import StoredFile
from tertulia.wire.api.attachments import TICKET
from tertulia.wire.http.authentication import authenticated, owner_of_key
from tertulia.wire.http.errors import error_response
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.rate_limits import read_for
from tertulia.wire.http.request_head import POSITION

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


_POLICY: Final = (
    "default-src 'none'; img-src 'self'; media-src 'self'; object-src 'self';"
    " style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
SANDBOX: Final = f"{_POLICY}; sandbox"
"""For all but PDF, which browsers do not show in a sandbox."""


FOREIGN: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": f"Authorization, Range, {POSITION}",
    "Access-Control-Expose-Headers": "Accept-Ranges, Content-Disposition, Content-Range, ETag",
}
"""Web clients may come from another origin; they add their credentials themselves."""


class Gone(Refused):
    """There is no such file, or not any more."""

    def __init__(self) -> None:
        super().__init__("This file doesn't exist or has been deleted.")


def file_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes to uploaded files."""

    async def show(request: Request) -> Response:
        """A file, shown."""
        attachment = await _opened(node, request, request.path_params["path"])
        return await _file(node, request, attachment, download=False)

    async def download(request: Request) -> Response:
        """A file, to be saved."""
        attachment = await _opened(node, request, request.path_params["path"])
        return await _file(node, request, attachment, download=True)

    async def temporary(request: Request) -> Response:
        """A file, at an address that opens it without credentials for a minute."""
        path = node.vault.text_of(TICKET, request.path_params["ticket"], node.clock())
        attachment = None if path is None else node.state.uploads.at_path(path)
        if attachment is None:
            raise Gone
        return await _file(node, request, attachment, download=False)

    async def smaller(request: Request) -> Response:
        """A smaller picture of the file."""
        attachment = await _opened(node, request, request.path_params["path"])
        found = await thumbnail(node, attachment, request.path_params["form"])
        tag = f'"{attachment.key}-{found.path.rpartition("/")[2]}"'
        headers = {**_headers("image/webp"), "Content-Disposition": "inline", "ETag": tag}
        if _is_known(request, tag):
            return Response(status_code=304, headers=headers)
        return await stored_file(node, request, found, "image/webp", headers)

    return (
        page(node, links.TEMPORARY + "{ticket}/{name}", temporary),
        page(node, ADDRESS + "thumbnail/{path:path}/{form}", smaller, shows_picture=True),
        page(node, ADDRESS + "download/{path:path}", download),
        page(node, ADDRESS + "{path:path}", show),
    )


def page(
    node: HttpNode,
    path: str,
    answer: Callable[[Request], Awaitable[Response]],
    *,
    shows_picture: bool = False,
) -> Route:
    """A page on which a file is, or why it is not: as a picture where one is expected."""

    async def get(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=FOREIGN)
        try:
            response = await answer(request)
        except (Refused, Unavailable, BadPicture) as error:
            return _refusal(request, error, shows_picture=shows_picture)
        except FileNotFoundError:  # It has just been deleted.
            return _refusal(request, Gone(), shows_picture=shows_picture)
        # Nothing is shown that a crash could undo.
        await node.log.settled()
        return response

    return Route(path, get, methods=["GET", "HEAD", "OPTIONS"])


def _refusal(request: Request, error: Exception, *, shows_picture: bool) -> Response:
    """As a picture where one is expected, and else as a page of one sentence."""
    status, body, headers = error_response(error)
    if isinstance(error, Gone | BadPicture):
        status = 404
    # No browser shall ask for a password because of a picture.
    headers = {name: value for name, value in headers.items() if name == "Retry-After"}
    headers |= {"Cache-Control": "no-store", "Content-Security-Policy": SANDBOX}
    accepted = request.headers.get("accept", "")
    wanted = request.headers.get("sec-fetch-dest") == "image" or (
        "image/" in accepted and "text/html" not in accepted
    )
    if wanted or shows_picture:
        return Response(_no_picture(), status, headers, "image/svg+xml")
    return Response(f"<p>{html.escape(body['msg'])}</p>", status, headers, "text/html")


@cache
def _no_picture() -> bytes:
    return resources.files("tertulia.wire").joinpath("assets/no-picture.svg").read_bytes()


async def _opened(node: HttpNode, request: Request, path: str) -> Attachment:
    """The file, if the caller may open it. Gone, MayNotOpen; authentication may refuse."""
    user = _who(node, request)
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


def _who(node: HttpNode, request: Request) -> User | None:
    """By the header, by the key in the address, which is taken for files only, or by the cookie."""
    api_key = request.query_params.get("api_key")
    if api_key is None or "authorization" in request.headers:
        return authenticated(node, request)
    return owner_of_key(node, api_key)


async def _file(
    node: HttpNode, request: Request, attachment: Attachment, *, download: bool
) -> Response:
    tag = f'"{attachment.key}"'
    shown = attachment.media_type in SHOWN and not download
    headers = {
        **_headers(attachment.media_type),
        "Content-Disposition": disposition("inline" if shown else "attachment", attachment.name),
        "ETag": tag,
    }
    if _is_known(request, tag):
        return Response(status_code=304, headers=headers)
    found = await node.uploads.found(attachment.path)
    if found is None:
        raise Gone
    return await stored_file(node, request, found, attachment.media_type, headers)


def _headers(media_type: str) -> dict[str, str]:
    return {
        # A file never changes; but who may open it does.
        "Cache-Control": "private, no-cache",
        "Vary": "Authorization, Cookie",
        "Content-Security-Policy": _POLICY if media_type == "application/pdf" else SANDBOX,
        "Referrer-Policy": "no-referrer",
        **FOREIGN,
    }


def _is_known(request: Request, tag: str) -> bool:
    known = {
        one.strip().removeprefix("W/")
        for one in request.headers.get("if-none-match", "").split(",")
    }
    return tag in known or "*" in known


def disposition(kind: str, name: str) -> str:
    """What to do with a file of that name (RFC 6266): the name as it is, and, for programs that
    know no other, in plain ASCII."""
    plain = re.sub(r'[^ -~]|["\\%]', "_", name)
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
