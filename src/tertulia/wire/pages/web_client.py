"""The web client: its page, and the files that belong to it, as `web/build.py` made them."""

from collections.abc import Iterable
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.service import gifs
from tertulia.service.config import Config
from tertulia.wire.pages.built_files import BuiltFiles
from tertulia.wire.pages.public import packaged, static

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
    services = gifs.offered(config)
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
