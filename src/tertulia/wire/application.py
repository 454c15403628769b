"""The ASGI application of a node."""

from functools import cache, partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from tertulia.service import links
from tertulia.wire.api import documentation
from tertulia.wire.api.routes import ROUTES
from tertulia.wire.files.downloads import file_pages, page
from tertulia.wire.files.exports import export_pages
from tertulia.wire.files.pictures import external_pages
from tertulia.wire.files.tus import tus_pages
from tertulia.wire.http.dispatch import Methods, dispatcher, endpoints_by_path
from tertulia.wire.http.node import HttpNode, fresh_only, readiness_pages
from tertulia.wire.http.positions import at_position
from tertulia.wire.http.request_head import Paths
from tertulia.wire.mcp.page import agent_pages
from tertulia.wire.metrics.page import metrics_page
from tertulia.wire.pages.archive import archive_pages
from tertulia.wire.pages.calls import call_pages
from tertulia.wire.pages.common_urls import common_urls
from tertulia.wire.pages.form_flow import error_page
from tertulia.wire.pages.help import help_pages
from tertulia.wire.pages.join import join_pages
from tertulia.wire.pages.login import login_pages
from tertulia.wire.pages.mail_pages import mail_previews, unsubscribe_pages
from tertulia.wire.pages.public import public_pages
from tertulia.wire.pages.sign_in_steps import sign_in_step_pages
from tertulia.wire.pages.web_client import client_files, installing_pages


@cache
def _interface() -> Paths[Methods]:
    return endpoints_by_path(ROUTES)


def _optional_pages(node: HttpNode) -> list[BaseRoute]:
    """Return the pages of rarely configured features. Their modules are loaded only if the feature
    is configured."""
    pages: list[BaseRoute] = []
    if node.config.scim_token:
        from tertulia.wire.scim.page import scim_pages

        pages += scim_pages(node)
    kinds = {method.kind for method in node.config.sign_in}
    if "saml" in kinds:
        from tertulia.wire.pages.saml_sign_in import saml_pages

        pages += saml_pages(node)
    if "header" in kinds:
        from tertulia.wire.pages.header_sign_in import header_pages

        pages += header_pages(node)
    if any(method.IS_REDIRECTING for method in node.config.sign_in):
        from tertulia.wire.pages.providers import provider_pages

        pages += provider_pages(node)
    return pages


async def _audit_log(node: HttpNode, request: Request) -> Response:
    from tertulia.wire.files import audit_log  # Only if used.

    return await audit_log.download(node, request)


def application(node: HttpNode) -> ASGIApp:
    """Return the ASGI application that serves everything of the node."""

    def guard(app: ASGIApp) -> ASGIApp:
        return fresh_only(node, at_position(node.positions, app))

    return dispatcher(
        node,
        _interface(),
        [
            *readiness_pages(node),
            *metrics_page(node),
            *agent_pages(node),
            *_optional_pages(node),
            *documentation.PAGES,
            *client_files(),
            *installing_pages(node),
            *public_pages(node),
            *file_pages(node),
            page(node, links.AUDIT_LOG + "{ticket}/{name}", partial(_audit_log, node)),
            *export_pages(node),
            *external_pages(node),
            *tus_pages(node),
            *call_pages(node),
            *archive_pages(node),
            *join_pages(node),
            *login_pages(node),
            *sign_in_step_pages(node),
            *unsubscribe_pages(node),
            *(mail_previews(node) if node.config.dev else ()),
            *common_urls(),
            *help_pages(node),
        ],
        guard,
        lambda request, status: error_page(node, request, status),
    )
