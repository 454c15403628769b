"""The web client: its page, and the files that belong to it, as `web/build.py` made them."""

import gzip
import mimetypes
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.service import video_calls
from tertulia.service.config import Config
from tertulia.wire.http.compression import accepts
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.responses import NOTHING, unless_known
from tertulia.wire.pages.public import packaged, static

_WORTH_PACKING: Final = 1024
_PACKED_ALREADY: Final = (".woff2", ".png", ".webp")
_BROTLI: Final = ".br"
"""Beside a file: the same, packed by Brotli when it was built."""


class BuiltFile(Struct, frozen=True):
    """A file as it is, and packed where that is worth it."""

    content: bytes
    packed: Mapping[str, bytes]
    """By encoding, the smallest first."""
    media_type: str

    def encoded(self, request: Request) -> tuple[bytes, dict[str, str]]:
        """What is sent, packed if the client takes it so, with the headers that say so."""
        accepted = request.headers.get("accept-encoding", "")
        for encoding, packed in self.packed.items():
            if accepts(encoding, accepted):
                return packed, {"Vary": "Accept-Encoding", "Content-Encoding": encoding}
        return self.content, {"Vary": "Accept-Encoding"}


class BuiltFiles:
    """The files of a folder of the package, which may not be there. They are kept in memory from
    when they are first asked for."""

    def __init__(self, folder: str) -> None:
        """`folder` is a path within the package, with slashes."""
        self.folder = folder
        self._kept: dict[str, BuiltFile] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """The paths of all files in it, with slashes; empty where it was not built."""
        if not self._place.is_dir():
            return frozenset()
        return frozenset(name for name in _names(self._place, "") if not name.endswith(_BROTLI))

    def file(self, name: str) -> BuiltFile | None:
        """The file at that path; None where there is none."""
        found = self._kept.get(name)
        if found is None and name in self.names:
            try:
                found = self._kept[name] = _read(self._at(name), self._at(name + _BROTLI))
            except FileNotFoundError:
                return None  # Another release was installed, for which the server starts again.
        return found

    def _at(self, name: str) -> Traversable:
        return self._place.joinpath(*name.split("/"))

    @property
    def _place(self) -> Traversable:
        return resources.files("tertulia").joinpath(*self.folder.split("/"))


def _names(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _names(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name


def _read(file: Traversable, smaller: Traversable) -> BuiltFile:
    content = file.read_bytes()
    packed: dict[str, bytes] = {}
    if smaller.is_file():
        packed["br"] = smaller.read_bytes()
    if len(content) > _WORTH_PACKING and not file.name.endswith(_PACKED_ALREADY):
        packed["gzip"] = gzip.compress(content, 9, mtime=0)
    return BuiltFile(content=content, packed=packed, media_type=_media_type(file.name))


def _media_type(name: str) -> str:
    if name.endswith(".js"):
        return "text/javascript"
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


CLIENT_PATH: Final = "/app/"
TOKENS: Final = "/static/tokens.css"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self' data: blob:{pictures}; media-src 'self' blob:{files}; font-src 'self';"
    " connect-src 'self'{asked}; manifest-src 'self'; worker-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    # The microphone is for voice notes: the browser asks the person, each time or once.
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(self), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    "Vary": "Cookie",
}
_YEAR: Final = "public, max-age=31536000, immutable"
_ASSETS: Final = BuiltFiles("web/assets")


def client_page(config: Config) -> Response:
    """The page that the client runs in; what to do where it was never built. Pictures and films may
    come from where files are, if that is where this server sends browsers; pictures also from the
    services at which they are looked for, if the operator has a key for one."""
    page = _built().joinpath("index.html")
    if not page.is_file():
        return HTMLResponse(_NOT_BUILT, status_code=503)
    services = video_calls.gif_services(config)
    policy = _POLICY.format(
        files=_listed(config.file_origins),
        pictures=_listed([*config.file_origins, *(o for one in services for o in one.pictures)]),
        asked=_listed(one.asked for one in services),
    )
    headers = {**_HEADERS, "Content-Security-Policy": policy}
    return HTMLResponse(page.read_bytes(), headers=headers)


def _listed(origins: Iterable[str]) -> str:
    return "".join(f" {origin}" for origin in origins)


@cache
def worker_script() -> bytes | None:
    """What keeps the client's files in the browser."""
    script = _built().joinpath("worker.js")
    return script.read_bytes() if script.is_file() else None


@cache
def client_files() -> tuple[BaseRoute, ...]:
    """Where the client's files are. Their names tell versions apart, so they may be kept."""

    async def asset(request: Request) -> Response:
        found = _ASSETS.file(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        content, headers = found.encoded(request)
        headers["Cache-Control"] = _YEAR
        return Response(content, media_type=found.media_type, headers=headers)

    return (
        Route(CLIENT_PATH + "assets/{name}", asset),
        static(TOKENS, packaged("tokens.css"), "text/css"),
    )


def _built() -> Traversable:
    return resources.files("tertulia").joinpath("web")


_NOT_BUILT: Final = (
    "<!doctype html><title>Tertulia</title><p>The web client hasn't been built. In a clone,"
    " run <code>make client</code>. Released packages include it.</p>"
)

MANIFEST: Final = "/manifest.webmanifest"
WORKER: Final = "/worker.js"
"""At the root: a worker serves the addresses below its own."""
_GROUND, _SIDE = "#fbf8f3", "#f3ece2"
"""As --paper and --sunken in tokens.css: a manifest has one colour for light and dark. The page
itself names both."""
_SHORTCUTS: Final = (
    ("Inbox", "inbox"),
    ("Recent conversations", "recent"),
    ("Mentions", "narrow/is/mentioned"),
    ("Drafts", "drafts"),
)
_WORKER_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": f"{NOTHING}; connect-src 'self'",
}


def installing_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The pages of a node, which anybody may fetch."""

    async def manifest(request: Request) -> Response:
        content = msgspec.json.encode(_manifest(node))
        headers = {"Cache-Control": "no-cache"}
        return unless_known(request, content, "application/manifest+json", headers)

    async def worker(request: Request) -> Response:
        content = worker_script()
        if content is None:
            raise HTTPException(404)
        return unless_known(request, content, "text/javascript", _WORKER_HEADERS)

    async def page(_: Request) -> Response:
        """The client's page for anybody, as the worker keeps it: it shows nothing by itself."""
        return client_page(node.config)

    return (Route(MANIFEST, manifest), Route(WORKER, worker), Route(CLIENT_PATH, page))


def _manifest(node: HttpNode) -> dict[str, Any]:
    name = node.state.realm.name
    return {
        "id": "/",
        "name": name,
        "short_name": name,
        "description": f"Team chat for {name}",
        "lang": "en",
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": _GROUND,
        "theme_color": _SIDE,
        "categories": ["social", "productivity"],
        "icons": [
            _icon("icon.svg", "any", "image/svg+xml"),
            _icon("icon-192.png", "192x192"),
            _icon("icon-512.png", "512x512"),
            {**_icon("icon-maskable-512.png", "512x512"), "purpose": "maskable"},
        ],
        "shortcuts": [{"name": name, "url": f"/#{place}"} for name, place in _SHORTCUTS],
    }


def _icon(name: str, sizes: str, media_type: str = "image/png") -> dict[str, str]:
    return {"src": f"/static/{name}", "sizes": sizes, "type": media_type}
