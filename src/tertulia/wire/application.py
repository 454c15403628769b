"""The ASGI application of a node."""

from functools import partial

from starlette.types import ASGIApp

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
from tertulia.wire.readiness import fresh_only, readiness_pages
from tertulia.wire.routes import ROUTES
from tertulia.wire.tus import tus_pages


def application(node: Node) -> ASGIApp:
    """Everything that the node answers."""

    return assembled(
        node,
        ROUTES,
        [
            *readiness_pages(node),
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
        partial(fresh_only, node),
    )
