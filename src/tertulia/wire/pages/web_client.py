"""The web client's page and files, as built by `web/build.py`."""

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

from tertulia.service import gifs
from tertulia.service.config import Config
from tertulia.wire.http.compression import accepts
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.responses import NOTHING, unless_known
from tertulia.wire.pages.public import packaged, static

_MIN_COMPRESSED: Final = 1024
_COMPRESSED_TYPES: Final = (".woff2", ".png", ".webp")
_BROTLI: Final = ".br"
"""The suffix of files that the build compressed with Brotli."""


class BuiltFile(Struct, frozen=True):
    """A file, with its compressed versions."""

    content: bytes
    compressed: Mapping[str, bytes]
    """The compressed contents by encoding, smallest first."""
    media_type: str

    def encoded(self, request: Request) -> tuple[bytes, dict[str, str]]:
        """Return the best version that the client accepts, and its headers."""
        accepted = request.headers.get("accept-encoding", "")
        for encoding, compressed in self.compressed.items():
            if accepts(encoding, accepted):
                return compressed, {"Vary": "Accept-Encoding", "Content-Encoding": encoding}
        return self.content, {"Vary": "Accept-Encoding"}


class BuiltFiles:
    """The files in a directory of the package, which may be missing. Files are cached in memory on
    first use."""

    def __init__(self, folder: str) -> None:
        """`folder` is a path within the package, with slashes."""
        self.folder = folder
        self._cache: dict[str, BuiltFile] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the paths of all files, with slashes; empty if the directory wasn't built."""
        if not self._folder.is_dir():
            return frozenset()
        return frozenset(name for name in _names(self._folder, "") if not name.endswith(_BROTLI))

    def file(self, name: str) -> BuiltFile | None:
        """Return the file at a path, or None."""
        file = self._cache.get(name)
        if file is None and name in self.names:
            try:
                file = self._cache[name] = _read(self._at(name), self._at(name + _BROTLI))
            except FileNotFoundError:
                return None  # A new release was installed, and the server is about to restart.
        return file

    def _at(self, name: str) -> Traversable:
        return self._folder.joinpath(*name.split("/"))

    @property
    def _folder(self) -> Traversable:
        return resources.files("tertulia").joinpath(*self.folder.split("/"))


def _names(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _names(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name


def _read(file: Traversable, brotli: Traversable) -> BuiltFile:
    content = file.read_bytes()
    compressed: dict[str, bytes] = {}
    if brotli.is_file():
        compressed["br"] = brotli.read_bytes()
    if len(content) > _MIN_COMPRESSED and not file.name.endswith(_COMPRESSED_TYPES):
        compressed["gzip"] = gzip.compress(content, 9, mtime=0)
    return BuiltFile(content=content, compressed=compressed, media_type=_media_type(file.name))


def _media_type(name: str) -> str:
    if name.endswith(".js"):
        return "text/javascript"
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


CLIENT_PATH: Final = "/app/"
TOKENS: Final = "/static/tokens.css"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self' data: blob:{pictures}; media-src 'self' blob:{files};"
    " frame-src 'self'{files}; font-src 'self';"
    " connect-src 'self'{connect}; manifest-src 'self'; worker-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'self'"
)
_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    # The microphone is for voice messages. The browser asks for permission.
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(self), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    "Vary": "Cookie",
}
_YEAR: Final = "public, max-age=31536000, immutable"
_ASSETS: Final = BuiltFiles("web/assets")


def client_page(config: Config, archive: str = "") -> Response:
    """Return the page that the web client runs in, or instructions if it wasn't built.

    Its content security policy also allows images, videos, and PDFs from the bucket that this
    server redirects downloads to, and images from the configured GIF services. `archive` is the
    path of the public archive for browsers without scripts, or empty.
    """
    page = _built().joinpath("index.html")
    if not page.is_file():
        return HTMLResponse(_NOT_BUILT, status_code=503)
    services = gifs.gif_services(config)
    policy = _POLICY.format(
        files=_origins(config.file_origins),
        pictures=_origins(
            [*config.file_origins, *(o for service in services for o in service.pictures)]
        ),
        connect=_origins(service.asked for service in services),
    )
    headers = {**_HEADERS, "Content-Security-Policy": policy}
    content = page.read_bytes()
    if archive:
        goes_on = f'<noscript><meta http-equiv="refresh" content="0; url={archive}"></noscript>'
        link = f'<noscript><a href="{archive}">{archive}</a></noscript>'
        content = content.replace(b"</head>", goes_on.encode() + b"</head>", 1)
        content = content.replace(b"</body>", link.encode() + b"</body>", 1)
    return HTMLResponse(content, headers=headers)


def _origins(origins: Iterable[str]) -> str:
    return "".join(f" {origin}" for origin in origins)


@cache
def worker_script() -> bytes | None:
    """Return the service worker's script, or None if the client wasn't built."""
    script = _built().joinpath("worker.js")
    return script.read_bytes() if script.is_file() else None


@cache
def client_files() -> tuple[BaseRoute, ...]:
    """The routes to the client's files. Their names contain hashes, so they can be cached
    forever."""

    async def asset(request: Request) -> Response:
        file = _ASSETS.file(request.path_params["name"])
        if file is None:
            raise HTTPException(404)
        content, headers = file.encoded(request)
        headers["Cache-Control"] = _YEAR
        return Response(content, media_type=file.media_type, headers=headers)

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
"""The path of the service worker, which is at the root because it controls only URLs below its
own."""
_BACKGROUND, _THEME = "#fbf8f3", "#f3ece2"
"""The light --paper and --sunken of tokens.css: a manifest has no colors for dark mode."""
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
    """The routes to the web app manifest and the service worker. They need no credentials."""

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
        """Return the client's page without sign-in, which the service worker caches."""
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
        "background_color": _BACKGROUND,
        "theme_color": _THEME,
        "categories": ["social", "productivity"],
        "icons": [
            _icon("icon.svg", "any", "image/svg+xml"),
            _icon("icon-192.png", "192x192"),
            _icon("icon-512.png", "512x512"),
            {**_icon("icon-maskable-512.png", "512x512"), "purpose": "maskable"},
        ],
        "shortcuts": [{"name": name, "url": f"/#{fragment}"} for name, fragment in _SHORTCUTS],
    }


def _icon(name: str, sizes: str, media_type: str = "image/png") -> dict[str, str]:
    return {"src": f"/static/{name}", "sizes": sizes, "type": media_type}
