"""The ASGI application of a node."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from tertulia.store import reading
from tertulia.wire import pages_api
from tertulia.wire.call import Node
from tertulia.wire.client import client_files
from tertulia.wire.external_pages import external_pages
from tertulia.wire.file_pages import file_pages
from tertulia.wire.http import assembled
from tertulia.wire.installing import installing_pages
from tertulia.wire.pages import public_pages
from tertulia.wire.pages_door import door_pages
from tertulia.wire.pages_join import joining_pages
from tertulia.wire.routes import ROUTES
from tertulia.wire.tus import tus_pages


def application(node: Node) -> ASGIApp:
    """Everything that the node answers."""

    async def health(_: Request) -> Response:
        """The process is alive."""
        return JSONResponse({"status": "alive"})

    async def ready(_: Request) -> Response:
        """The database answers, and the organization is there."""
        try:
            await node.store.read(reading.head)
        except Exception:  # Not ready, for whatever reason.
            return JSONResponse({"status": "the database does not answer"}, status_code=503)
        if node.state.is_empty:
            return JSONResponse({"status": "there is no organization yet"}, status_code=503)
        return JSONResponse({"status": "ready", "jobs": dict(node.failing_jobs())})

    pages: list[BaseRoute] = [Route("/health", health), Route("/ready", ready)]
    return assembled(
        node,
        ROUTES,
        [
            *pages,
            *pages_api.PAGES,
            *client_files(),
            *installing_pages(node),
            *public_pages(node),
            *file_pages(node),
            *external_pages(node),
            *tus_pages(node),
            *joining_pages(node),
            *door_pages(node),
        ],
    )
