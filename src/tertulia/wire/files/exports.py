"""Downloads of data exports, for administrators."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from tertulia.domain import permissions
from tertulia.domain.organization.exports import organization_exports
from tertulia.model.errors import MayNotOpen
from tertulia.service.links import REALM_EXPORT
from tertulia.store.files import EXPORTS
from tertulia.wire.files.downloads import Gone, disposition, page, stored_file
from tertulia.wire.http.authentication import authenticated
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.rate_limits import read_for

_TYPE = "application/gzip"


def export_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The route to exports."""

    async def download(request: Request) -> Response:
        user = authenticated(node, request)
        request.state.user = user
        read_for(request, user)
        if user is None:
            raise MayNotOpen
        permissions.require_administrator(node.state, user)
        path = f"{EXPORTS}/{request.path_params['name']}"
        export = next(
            (export for export in organization_exports(node.state) if export.path == path), None
        )
        file = None if export is None else await node.files.found(path)
        if export is None or file is None:
            raise Gone
        headers = {
            "Cache-Control": "no-store",
            "Content-Disposition": disposition("attachment", f"export-{export.id}.tar.gz"),
            "ETag": f'"{export.id}"',
            "Referrer-Policy": "no-referrer",
        }
        return await stored_file(node, request, file, _TYPE, headers)

    return (page(node, REALM_EXPORT + "{name}", download),)
