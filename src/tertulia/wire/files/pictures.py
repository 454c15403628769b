"""Pictures of accounts, as browsers and apps fetch them."""

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
from tertulia.model.errors import MayNotOpen, Unavailable
from tertulia.outbound.http_client import NotFetched
from tertulia.service.files import pictures as custom_emoji
from tertulia.service.files.pictures import AVATAR_SIZE, MEDIUM_SIZE
from tertulia.service.links import EXTERNAL
from tertulia.service.tasks import SingleFlight
from tertulia.store.url_cache import UrlCache
from tertulia.wire.api.users.objects import AVATARS_PATH, DRAWN_PATH
from tertulia.wire.files.downloads import FOREIGN, SANDBOX, Gone, page
from tertulia.wire.http.errors import NotFound
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.responses import PICTURE, failure, unless_known

_YEAR_SECONDS: Final = 31_536_000
_HEADERS: Final = {
    "Content-Security-Policy": PICTURE,
    "Access-Control-Allow-Origin": "*",
}


def avatar_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """Where the pictures are. Whoever knows an address may see its picture."""

    async def uploaded(request: Request) -> Response:
        """An uploaded picture. Another picture has another name."""
        name = request.path_params["name"]
        if not re.fullmatch(r"[0-9a-f]{40}(-medium)?", name):
            return failure(NotFound())
        content = await node.files.read(f"avatars/{name}.png")
        if content is None:
            return failure(NotFound())
        return _picture(request, content, f"public, max-age={_YEAR_SECONDS}, immutable")

    async def drawn(request: Request) -> Response:
        """The default picture, drawn from its address alone."""
        found = re.fullmatch(
            r"(\d{1,16})(?:-([A-Z0-9]{1,2}))?(-medium)?", request.path_params["name"]
        )
        if found is None:
            return failure(NotFound())
        size = MEDIUM_SIZE if found[3] else AVATAR_SIZE
        content = await asyncio.to_thread(pictures.drawn, int(found[1]), found[2] or "", size)
        return _picture(request, content, "public, max-age=86400")

    return (
        Route(AVATARS_PATH + "/{name}.png", uploaded),
        Route(DRAWN_PATH + "/{name}.png", drawn),
    )


def _picture(request: Request, content: bytes, cache_control: str) -> Response:
    return unless_known(request, content, "image/png", {**_HEADERS, "Cache-Control": cache_control})


_MEDIA_TYPES: Final = {"png": "image/png", "gif": "image/gif"}
_FILE: Final = re.compile(r"[0-9a-f]{32}\.(png|gif)")
_YEAR_SECONDS_OF_EMOJI: Final = 365 * 86400


def emoji_pages(node: HttpNode) -> tuple[Route, ...]:
    """The routes to pictures of emoji. Names cannot be guessed, and no credentials are needed."""
    headers = {
        "Cache-Control": f"public, max-age={_YEAR_SECONDS_OF_EMOJI}, immutable",
        "Content-Security-Policy": PICTURE,
        "Access-Control-Allow-Origin": "*",
    }

    async def picture(request: Request) -> Response:
        file: str = request.path_params["file"]
        content = None
        if _FILE.fullmatch(file) and request.path_params["realm_id"] == node.state.realm.id:
            content = await node.files.read(custom_emoji.emoji_place(file))
        if content is None:
            return Response("This emoji doesn't exist.\n", 404, media_type="text/plain")
        return unless_known(request, content, _MEDIA_TYPES[file.rpartition(".")[2]], headers)

    return (Route("/user_avatars/{realm_id:int}/emoji/images/{file}", picture),)


logger = logging.getLogger("tertulia.http")

MAX_BYTES: Final = 20 * 1024 * 1024
"""Of a picture or a film; what is larger is not shown."""
SECONDS: Final = 20.0
AT_ONCE: Final = 8
"""Of those, so many are held in memory."""
WAITING: Final = 100
"""URLs that may wait to be fetched; beyond that, requests are answered with 503."""
MISSING_SECONDS: Final = 300.0
"""So long nothing is asked for that could not be had."""
_KNOWN_MISSING: Final = 1000
_TYPES: Final = "image/avif,image/webp,image/*;q=0.9,video/mp4;q=0.8,video/webm;q=0.8"
_FILMS: Final = frozenset(
    {b"avc1", b"dash", b"iso2", b"iso4", b"iso5", b"iso6", b"isom", b"mp41", b"mp42", b"M4V "}
)


def media_type(begins: bytes) -> str | None:
    """The media type, by the first bytes; None for what is not shown."""
    if begins.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if begins.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if begins.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if begins[:4] == b"RIFF" and begins[8:12] == b"WEBP":
        return "image/webp"
    if begins.startswith(b"BM") and begins[6:10] == b"\0\0\0\0":
        return "image/bmp"
    if begins[4:8] == b"ftyp":
        brand = begins[8:12]
        if brand in {b"avif", b"avis"}:
            return "image/avif"
        return "video/mp4" if brand in _FILMS else None
    if begins.startswith(b"\x1a\x45\xdf\xa3") and b"webm" in begins[:64]:
        return "video/webm"
    return None


class _ExternalContent:
    """One node's cache of external content."""

    def __init__(self, node: HttpNode) -> None:
        self._node = node
        room = node.config.external_content_cache_mib * 1024 * 1024
        self._kept = UrlCache(node.disk, room)
        self._fetches = SingleFlight(
            "The server is loading too many external images and videos. Try again."
        )
        self._missing: OrderedDict[str, float] = OrderedDict()
        self._free = asyncio.Semaphore(AT_ONCE)

    async def place(self, url: str) -> Path:
        """Where what lies at the URL is kept. Gone where there is nothing that is shown;
        Unavailable where too many wait."""
        found = await asyncio.to_thread(self._kept.found, url, self._node.clock())
        if found is not None:
            return found
        if self._node.log.elapsed() < self._missing.get(url, 0):
            raise Gone
        await self._fetches.do(url, partial(self._fetch, url), WAITING)
        found = await asyncio.to_thread(self._kept.found, url, self._node.clock())
        if found is None:
            raise Gone
        return found

    async def _fetch(self, url: str) -> None:
        async with self._free:
            try:
                async with self._node.web.opened(url, accept=_TYPES, seconds=SECONDS) as answer:
                    content = await answer.content(MAX_BYTES)
                if media_type(content[:64]) is None:
                    raise NotFetched("it is no picture and no film")
            except NotFetched as error:
                # Whom people link is not logged.
                logger.info("linked content was not fetched: %s", error)
                self._miss(url)
                return
            try:
                await self._kept.keep(url, content)
                await asyncio.to_thread(self._kept.make_room, len(content))
            except OSError as error:
                logger.exception("linked content could not be kept")
                raise Unavailable("The server couldn't save the file. Try again later.") from error

    def _miss(self, url: str) -> None:
        self._missing[url] = self._node.log.elapsed() + MISSING_SECONDS
        self._missing.move_to_end(url)
        while len(self._missing) > _KNOWN_MISSING:
            self._missing.popitem(last=False)


def external_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The route to external content."""
    external = _ExternalContent(node)

    async def show(request: Request) -> Response:
        """What lies at the URL in the address, which only this server can have made."""
        url = node.links.external_url(request.path_params["proof"], request.path_params["url"])
        if url is None or not node.config.external_content:
            raise MayNotOpen
        place = await external.place(url)
        begins = await asyncio.to_thread(_beginning, place)
        return FileResponse(
            place,
            media_type=media_type(begins) or "application/octet-stream",
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


def _beginning(place: Path) -> bytes:
    try:
        with place.open("rb") as file:
            return file.read(64)
    except FileNotFoundError:  # It has just given way to something newer.
        raise Gone from None
