"""Help pages: the manual if the package includes it, and short pages for clients' links to Zulip's
help center."""

from collections.abc import Mapping
from functools import cache
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.responses import unless_known
from tertulia.wire.pages.form_flow import Link, note_page
from tertulia.wire.pages.html import ENGLISH
from tertulia.wire.pages.public import packaged
from tertulia.wire.pages.web_client import BuiltFiles

HELP: Final = "/help"
_MANUAL: Final = BuiltFiles("manual")
_FIRST: Final = "index.html"
_HEADERS: Final = {
    # File names don't change between releases.
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
}
_DISPLAYED_TYPES: Final = ("text/html", "text/css", "text/javascript", "image/")


def is_built() -> bool:
    """Whether the package includes the manual."""
    return _FIRST in _MANUAL.names


def manual_response(request: Request, name: str) -> Response | None:
    """Return the manual's page or file at a path below `/help/`, or None if it doesn't exist."""
    if not is_built():
        return None
    if not name:
        if request.url.path == HELP:  # Links on the page are relative to the directory.
            return RedirectResponse(f"{HELP}/", status_code=302)
        name = _FIRST
    if (file := _MANUAL.file(name)) is not None:
        content, headers = file.encoded(request)
        is_displayed = file.media_type.startswith(_DISPLAYED_TYPES)
        media_type = file.media_type if is_displayed else "text/plain"
        return unless_known(request, content, media_type, {**headers, **_HEADERS})
    if f"{name}.html" in _MANUAL.names:
        return RedirectResponse(f"{HELP}/{name}.html", status_code=302)
    return None


class HelpTopic(Struct, frozen=True):
    """A help page's content."""

    title: str
    words: tuple[str, ...]
    paragraphs: tuple[str, ...]


@cache
def help_topics() -> Mapping[str, HelpTopic]:
    """The short help pages by name."""
    return msgspec.toml.decode(packaged("help.toml")(), type=dict[str, HelpTopic])


def topic_for(name: str) -> HelpTopic:
    """Return the best page for a name that a client links to."""
    topics = help_topics()
    if name in topics:
        return topics[name]
    matches = (topic for topic in topics.values() if any(word in name for word in topic.words))
    return next(matches, topics["general"])


def help_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes to the help pages."""

    async def page(request: Request) -> Response:
        name = str(request.path_params.get("name", "")).rstrip("/")
        if (response := manual_response(request, name)) is not None:
            return response
        topic = topic_for(name.strip("/").lower())
        links = {
            help_topic.title: f"{HELP}/{name}"
            for name, help_topic in sorted(help_topics().items(), key=lambda item: item[1].title)
            if help_topic is not topic
        }
        if is_built():
            links = {"Full manual": f"{HELP}/", **links}
        return note_page(
            node,
            ENGLISH,
            topic.title,
            *topic.paragraphs,
            status=200,
            links=links,
            back=Link(path="/", words="Back to Tertulia"),
        )

    return (Route(HELP, page), Route(HELP + "/{name:path}", page))
