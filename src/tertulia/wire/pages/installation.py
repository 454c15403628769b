"""What a browser needs to install the web client as an application: its manifest and its worker."""

from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tertulia.wire.http.caching import unless_known
from tertulia.wire.http.content_policies import NOTHING
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.web_client import CLIENT_PATH, client_page, worker_script

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
