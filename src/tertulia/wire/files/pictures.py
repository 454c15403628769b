"""Avatars, custom emoji, and the proxy for images and videos on other websites."""

import asyncio
import logging
import re
from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia import pictures
from tertulia.domain.accounts.avatars import AVATARS_PATH, DRAWN_PATH
from tertulia.model.errors import MayNotOpen, Unavailable
from tertulia.outbound.http_responses import NotFetched
from tertulia.service.files import pictures as custom_emoji
from tertulia.service.files.pictures import AVATAR_SIZE, MEDIUM_SIZE
from tertulia.service.links import EXTERNAL
from tertulia.service.tasks import SingleFlight
from tertulia.store.url_cache import UrlCache
from tertulia.wire.files.downloads import FOREIGN, SANDBOX, Gone, page
from tertulia.wire.http.errors import NotFound
from tertulia.wire.http.forms import MIB
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.responses import PICTURE, failure, unless_known

_IMMUTABLE: Final = "public, max-age=31536000, immutable"
_HEADERS: Final = {"Content-Security-Policy": PICTURE, "Access-Control-Allow-Origin": "*"}


def avatar_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes to avatars. They need no credentials."""

    async def uploaded(request: Request) -> Response:
        """An uploaded avatar. Each image has its own name, so it can be cached forever."""
        name = request.path_params["name"]
        if not re.fullmatch(r"[0-9a-f]{40}(-medium)?", name):
            return failure(NotFound())
        content = await node.files.read(f"avatars/{name}.png")
        if content is None:
            return failure(NotFound())
        return _picture(request, content, _IMMUTABLE)

    async def drawn(request: Request) -> Response:
        """A default avatar, generated from its URL."""
        match = re.fullmatch(
            r"(\d{1,16})(?:-([A-Z0-9]{1,2}))?(-medium)?", request.path_params["name"]
        )
        if match is None:
            return failure(NotFound())
        size = MEDIUM_SIZE if match[3] else AVATAR_SIZE
        content = await asyncio.to_thread(pictures.drawn, int(match[1]), match[2] or "", size)
        return _picture(request, content, "public, max-age=86400")

    return (
        Route(AVATARS_PATH + "/{name}.png", uploaded),
        Route(DRAWN_PATH + "/{name}.png", drawn),
    )


def _picture(request: Request, content: bytes, cache_control: str) -> Response:
    return unless_known(request, content, "image/png", {**_HEADERS, "Cache-Control": cache_control})


_MEDIA_TYPES: Final = {"png": "image/png", "gif": "image/gif"}
_FILE: Final = re.compile(r"[0-9a-f]{32}\.(png|gif)")


def emoji_pages(node: HttpNode) -> tuple[Route, ...]:
    """The routes to custom emoji. Their names can't be guessed, so they need no credentials."""
    headers = {**_HEADERS, "Cache-Control": _IMMUTABLE}

    async def picture(request: Request) -> Response:
        file: str = request.path_params["file"]
        content = None
        if _FILE.fullmatch(file) and request.path_params["realm_id"] == node.state.realm.id:
            content = await node.files.read(custom_emoji.emoji_path(file))
        if content is None:
            return Response("This emoji doesn't exist.\n", 404, media_type="text/plain")
        return unless_known(request, content, _MEDIA_TYPES[file.rpartition(".")[2]], headers)

    return (Route("/user_avatars/{realm_id:int}/emoji/images/{file}", picture),)


logger = logging.getLogger("tertulia.http")

MAX_BYTES: Final = 20 * MIB
"""Largest image or video, in bytes. Larger ones aren't shown."""
SECONDS: Final = 20.0
MAX_CONCURRENT: Final = 8
"""Concurrent fetches. Each holds its content in memory."""
WAITING: Final = 100
"""The most URLs that wait to be fetched. Further requests get status 503."""
MISSING_SECONDS: Final = 300.0
"""How long a URL that couldn't be fetched isn't retried."""
_MAX_MISSING: Final = 1000
_TYPES: Final = "image/avif,image/webp,image/*;q=0.9,video/mp4;q=0.8,video/webm;q=0.8"
_MP4_BRANDS: Final = frozenset(
    {b"avc1", b"dash", b"iso2", b"iso4", b"iso5", b"iso6", b"isom", b"mp41", b"mp42", b"M4V "}
)


def media_type(first: bytes) -> str | None:
    """Return the media type for the first bytes; None for unsupported types."""
    if first.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if first.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if first.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if first[:4] == b"RIFF" and first[8:12] == b"WEBP":
        return "image/webp"
    if first.startswith(b"BM") and first[6:10] == b"\0\0\0\0":
        return "image/bmp"
    if first[4:8] == b"ftyp":
        brand = first[8:12]
        if brand in {b"avif", b"avis"}:
            return "image/avif"
        return "video/mp4" if brand in _MP4_BRANDS else None
    if first.startswith(b"\x1a\x45\xdf\xa3") and b"webm" in first[:64]:
        return "video/webm"
    return None


class _ExternalContent:
    """One node's cache of external images and videos."""

    def __init__(self, node: HttpNode) -> None:
        self._node = node
        self._cache = UrlCache(node.disk, node.config.external_content_cache_mib * MIB)
        self._fetches = SingleFlight(
            "The server is loading too many external images and videos. Try again."
        )
        self._missing: OrderedDict[str, float] = OrderedDict()
        self._free = asyncio.Semaphore(MAX_CONCURRENT)

    async def path(self, url: str) -> Path:
        """Return the path of the cached content. Raises Gone if the URL has no content that can be
        shown, and Unavailable if too many fetches are waiting."""
        if (path := await self._cached(url)) is not None:
            return path
        if self._node.log.elapsed() < self._missing.get(url, 0):
            raise Gone
        await self._fetches.do(url, partial(self._fetch, url), WAITING)
        if (path := await self._cached(url)) is None:
            raise Gone
        return path

    async def _cached(self, url: str) -> Path | None:
        return await asyncio.to_thread(self._cache.found, url, self._node.clock())

    async def _fetch(self, url: str) -> None:
        async with self._free:
            try:
                async with self._node.web.opened(url, accept=_TYPES, seconds=SECONDS) as answer:
                    content = await answer.content(MAX_BYTES)
                if media_type(content[:64]) is None:
                    raise NotFetched("not an image or video")
            except NotFetched as error:
                # The URL is not logged, for privacy.
                logger.info("could not fetch linked content: %s", error)
                self._miss(url)
                return
            try:
                await self._cache.keep(url, content)
                await asyncio.to_thread(self._cache.make_room, len(content))
            except OSError as error:
                logger.exception("could not store linked content")
                raise Unavailable("The server couldn't save the file. Try again later.") from error

    def _miss(self, url: str) -> None:
        self._missing[url] = self._node.log.elapsed() + MISSING_SECONDS
        self._missing.move_to_end(url)
        while len(self._missing) > _MAX_MISSING:
            self._missing.popitem(last=False)


def external_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The route to external images and videos."""
    external = _ExternalContent(node)

    async def show(request: Request) -> Response:
        """The content at the URL in the path, whose signature proves that this server created the
        path."""
        url = node.links.external_url(request.path_params["proof"], request.path_params["url"])
        if url is None or not node.config.external_content:
            raise MayNotOpen
        path = await external.path(url)
        first_bytes = await asyncio.to_thread(_first_bytes, path)
        return FileResponse(
            path,
            media_type=media_type(first_bytes) or "application/octet-stream",
            headers={
                "Cache-Control": "private, max-age=86400",
                "Content-Disposition": "inline",
                "Content-Security-Policy": SANDBOX,
                "Cross-Origin-Resource-Policy": "cross-origin",
                "Referrer-Policy": "no-referrer",
                **FOREIGN,
            },
        )

    return (page(node, EXTERNAL + "{proof}/{url}", show, shows_picture=True),)


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(64)
    except FileNotFoundError:  # Evicted in the meantime.
        raise Gone from None
