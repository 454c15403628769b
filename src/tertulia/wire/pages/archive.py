"""The public archive: web-public channels as plain HTML, for people without scripts and for search
engines.

Each request checks what spectators can read now. A page is identified by the message before it
instead of a number, so that it takes the same time in a topic of any length.
"""

import asyncio
import math
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote
from xml.sax.saxutils import escape

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.domain import channel_access
from tertulia.markup import addresses
from tertulia.model.channels import Channel, Topic, topic_key
from tertulia.model.errors import Conflict, Unavailable
from tertulia.model.messages import Message
from tertulia.outbound.archive_pages import ArchivedMessage, archived, safe, styles
from tertulia.service.messages.reading import read_unchanged, readable
from tertulia.store import message_details, queries, topics
from tertulia.store.database import Connection
from tertulia.store.message_details import NO_DETAILS, MessageDetails
from tertulia.texts import Texts, language_of, texts
from tertulia.wire.http.errors import TooManyRequests
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.rate_limits import read_for
from tertulia.wire.http.responses import unless_known
from tertulia.wire.pages.html import SPEECHES, page_from_template
from tertulia.wire.pages.public import static

ARCHIVE: Final = "/archive"
SITEMAP: Final = "/sitemap.xml"
ROBOTS: Final = "/robots.txt"
STYLES: Final = "/static/archive.css"
PAGE: Final = 50
"""Messages per page."""
PAGE_BYTES: Final = 256 * 1024
"""The most bytes of messages per page, counting content and HTML. A page has at least one
message."""
TOPICS_PAGE: Final = 200
SITEMAP_PAGE: Final = 5000
"""Topics per part of the site map."""
MAX_PARTS: Final = 50_000
"""The most parts of a site map (sitemaps.org)."""
MAX_CONCURRENT: Final = 2
"""Pages that a node makes concurrently."""
MAX_WAITING: Final = 50
"""The most pages that wait to be made. Further requests get status 503."""
BUSY_SECONDS: Final = 5

_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'{origins}; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
_NARROW: Final = ("#narrow/", "/#narrow/")


def serves_archive(node: HttpNode) -> bool:
    """Whether the organization has a public archive."""
    return node.admits_spectators and node.state.realm.public_archive != "off"


def is_indexed(node: HttpNode) -> bool:
    """Whether search engines may index the archive."""
    return serves_archive(node) and node.state.realm.public_archive == "indexed"


class _Link(Struct, frozen=True, kw_only=True):
    name: str
    address: str
    count: int = 0
    about: Any = ""


class _TopicPage(Struct, frozen=True, kw_only=True):
    messages: Sequence[Message]
    details: dict[int, MessageDetails]
    previous: int | None
    """The message that the previous page starts after; None if this is the first page."""
    is_last: bool


def archive_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes to the archive, the site map, and `robots.txt`."""
    pages = _Archive(node)
    return (
        Route(ARCHIVE, pages.index),
        Route(ARCHIVE + "/{channel}", pages.channel),
        Route(ARCHIVE + "/{channel}/topic/{topic:path}", pages.topic),
        Route(SITEMAP, pages.sitemap),
        Route("/sitemap-{channel:int}-{part:int}.xml", pages.sitemap_part),
        Route(ROBOTS, pages.robots),
        static(STYLES, styles, "text/css"),
    )


class _Archive:
    def __init__(self, node: HttpNode) -> None:
        self._node = node
        self._turn = asyncio.Semaphore(MAX_CONCURRENT)
        self._waiting = 0

    async def index(self, request: Request) -> Response:
        """Show all channels."""
        self._admit(request)
        channels = await asyncio.to_thread(self._listed, self._channels())
        description = safe(self._node.state.realm.rendered_description, self._address)
        return await self._page(
            request,
            ARCHIVE,
            "archive_index.html",
            channels=channels,
            description=description,
            chat="/",
        )

    def _listed(self, channels: Sequence[Channel]) -> list[_Link]:
        return [
            _Link(
                name=channel.name,
                address=channel_path(channel),
                about=safe(channel.rendered_description, self._address),
            )
            for channel in channels
        ]

    async def channel(self, request: Request) -> Response:
        """Show a channel's topics, most recent first."""
        self._admit(request)
        channel = self._channel(request)
        if (moved := _moved(request, channel_path(channel))) is not None:
            return moved
        number = _number(request, "page", 1)
        every = self._node.state.topics.by_newest_message[channel.id]
        end = len(every) - (number - 1) * TOPICS_PAGE
        if end <= 0 and number > 1:
            raise HTTPException(404)
        topics = every[max(0, end - TOPICS_PAGE) : max(0, end)][::-1]
        path, say = channel_path(channel), self._say
        links = [
            _Link(
                name=topic.name or say("general"),
                address=topic_path(channel, topic.name),
                count=topic.message_count,
            )
            for topic in topics
        ]
        address = path if number == 1 else f"{path}?page={number}"
        return await self._page(
            request,
            address,
            "archive_channel.html",
            channel=channel,
            description=safe(channel.rendered_description, self._address),
            topics=links,
            previous=_page_path(path, number - 1) if number > 1 else "",
            next=_page_path(path, number + 1) if end > TOPICS_PAGE else "",
            chat=addresses.channel_address(channel),
        )

    async def topic(self, request: Request) -> Response:
        """Show a page of a topic, oldest message first."""
        self._admit(request)
        channel = self._channel(request)
        key = topic_key(topic_from(request.path_params["topic"]))
        topic = self._node.state.topics.of_channel[channel.id].get(key)
        if topic is None:
            raise HTTPException(404)
        path = topic_path(channel, topic.name)
        if (moved := _moved(request, path)) is not None:
            return moved
        after = _number(request, "after", 0)
        topic_page = await self._read(channel, topic, after)
        return await self._page(
            request,
            path if after == 0 else f"{path}?after={after}",
            "archive_topic.html",
            channel=channel,
            channel_path=channel_path(channel),
            topic=topic.name or self._say("general"),
            messages=await asyncio.to_thread(self._archived, topic_page),
            previous=(
                ""
                if after == 0
                else path
                if not topic_page.previous
                else f"{path}?after={topic_page.previous}"
            ),
            next="" if topic_page.is_last else f"{path}?after={topic_page.messages[-1].id}",
            chat=addresses.topic_address(channel, topic.name),
        )

    async def _read(self, channel: Channel, topic: Topic, after: int) -> _TopicPage:
        node = self._node

        def look(connection: Connection) -> _TopicPage:
            return _topic_page(connection, channel.id, topic.key, after)

        try:
            result = await read_unchanged(node, look, lambda page: page.messages)
        except (Conflict, Unavailable):
            raise HTTPException(503, headers={"Retry-After": str(BUSY_SECONDS)}) from None
        # The messages may have been moved or hidden since.
        place = (channel.id, topic.key, None)
        if (
            not serves_archive(node)
            or not result.messages
            or len(readable(node, None, result.messages)) < len(result.messages)
            or any(message.conversation != place for message in result.messages)
        ):
            raise HTTPException(404)
        return result

    def _archived(self, page: _TopicPage) -> list[ArchivedMessage]:
        users = self._node.state.users
        return [
            archived(
                message,
                users[message.sender_id].full_name,
                page.details.get(message.id, NO_DETAILS).reactions,
                self._address,
            )
            for message in page.messages
        ]

    # For search engines

    async def robots(self, request: Request) -> Response:
        """Return what search engines may fetch."""
        node = self._node
        lines = ["User-agent: *"]
        if is_indexed(node):
            shown = (ARCHIVE, "/static/", "/user_uploads/", SITEMAP, "/sitemap-")
            lines += [f"Allow: {path}" for path in shown]
        lines.append("Disallow: /")
        if is_indexed(node):
            lines += ["", f"Sitemap: {self._site}{SITEMAP}"]
        headers = {"Cache-Control": "no-cache"}
        return PlainTextResponse("\n".join(lines) + "\n", headers=headers)

    async def sitemap(self, request: Request) -> Response:
        """Return the index of the site map. Each of its parts has some topics of a channel."""
        self._admit(request, indexed=True)
        counts = self._node.state.topics.of_channel
        parts = (
            f"{self._site}/sitemap-{channel.id}-{part}.xml"
            for channel in self._channels()
            for part in range(len(counts[channel.id]) // SITEMAP_PAGE + 1)
        )
        return _xml(request, "sitemapindex", "sitemap", list(islice(parts, MAX_PARTS)))

    async def sitemap_part(self, request: Request) -> Response:
        self._admit(request, indexed=True)
        channel = self._channel(request)
        part = request.path_params["part"]
        every = self._node.state.topics.by_newest_message[channel.id]
        topics = every[part * SITEMAP_PAGE : (part + 1) * SITEMAP_PAGE]
        if not topics and part:
            raise HTTPException(404)
        paths = [topic_path(channel, topic.name) for topic in topics]
        if part == 0:
            paths.insert(0, channel_path(channel))
        return _xml(request, "urlset", "url", [self._site + path for path in paths])

    # Shared helpers

    def _admit(self, request: Request, *, indexed: bool = False) -> None:
        """Raise unless there is an archive, and the client's network may send more requests."""
        node = self._node
        if not (is_indexed(node) if indexed else serves_archive(node)):
            raise HTTPException(404)
        request.state.user = None
        read_for(request, None)
        try:
            node.request_limits.count(request, None)
        except TooManyRequests as refusal:
            wait = str(math.ceil(refusal.wait))
            raise HTTPException(429, headers={"Retry-After": wait}) from None

    def _channels(self) -> list[Channel]:
        result = filter(channel_access.open_to_spectators, self._node.state.channels)
        return sorted(result, key=lambda channel: (channel.name.casefold(), channel.id))

    def _channel(self, request: Request) -> Channel:
        given = str(request.path_params["channel"]).partition("-")[0]
        is_id = given.isascii() and given.isdigit() and len(given) < 16
        channel = self._node.state.channels.get(int(given)) if is_id else None
        if channel is None or not channel_access.open_to_spectators(channel):
            raise HTTPException(404)
        return channel

    @property
    def _site(self) -> str:
        return self._node.config.mail_site.rstrip("/")

    @property
    def _say(self) -> Texts:
        return texts(language_of(self._node.state.realm.default_language), "archive")

    def _address(self, address: str) -> str | None:
        """Return the URL on archive pages for a URL in a message, or None to leave it out."""
        if address.startswith(_NARROW):
            return self._conversation(address)
        is_here = address.startswith(("/user_uploads/", "/external_content/"))
        is_web = address.startswith(("https://", "http://", "mailto:"))
        return address if is_here or is_web else None

    def _conversation(self, address: str) -> str | None:
        """Return the archive's page for a link to a channel, topic, or message."""
        parts = address.partition("#narrow/")[2].split("/")
        if len(parts) < 2 or parts[0] not in {"channel", "stream"}:
            return None
        number = parts[1].partition("-")[0]
        is_id = number.isascii() and number.isdigit() and len(number) < 16
        channel = self._node.state.channels.get(int(number)) if is_id else None
        if channel is None or not channel_access.open_to_spectators(channel):
            return None
        if len(parts) < 4 or parts[2] not in {"topic", "subject"}:
            return channel_path(channel)
        return topic_path(channel, topic_from(parts[3]))

    async def _page(self, request: Request, address: str, template: str, **facts: Any) -> Response:
        if self._waiting >= MAX_WAITING:
            raise HTTPException(503, headers={"Retry-After": str(BUSY_SECONDS)})
        node = self._node
        self._waiting += 1
        try:
            async with self._turn:
                text = await asyncio.to_thread(
                    page_from_template,
                    template,
                    speech=SPEECHES[language_of(node.state.realm.default_language)],
                    words=self._say,
                    organization=node.state.realm.name,
                    canonical=self._site + address,
                    root=ARCHIVE,
                    sheet=STYLES,
                    oldest_first="messages" in facts,
                    **{"previous": "", "next": "", **facts},
                )
        finally:
            self._waiting -= 1
        await node.log.durability.settled()
        origins = "".join(f" {origin}" for origin in node.config.file_origins)
        headers = {
            # Permissions can change at any time.
            "Cache-Control": "no-cache",
            "Content-Security-Policy": _POLICY.format(origins=origins),
            "Referrer-Policy": "same-origin",
        }
        if not is_indexed(node):
            headers["X-Robots-Tag"] = "noindex"
        return unless_known(request, text.encode(), "text/html; charset=utf-8", headers)


def _topic_page(connection: Connection, channel_id: int, key: str, after: int) -> _TopicPage:
    ids = topics.ids_after(connection, channel_id, key, after, PAGE + 1)
    sizes = queries.text_sizes(connection, ids[:PAGE])
    shown: list[int] = []
    total = 0
    for message_id in ids[:PAGE]:
        total += sizes.get(message_id, 0)
        if shown and total > PAGE_BYTES:
            break
        shown.append(message_id)
    before = topics.ids_until(connection, channel_id, key, after, PAGE + 1) if after else []
    return _TopicPage(
        messages=queries.messages(connection, shown),
        details=message_details.details_of(connection, shown),
        previous=before[-1] if len(before) > PAGE else 0,
        is_last=len(shown) == len(ids),
    )


def channel_path(channel: Channel) -> str:
    return f"{ARCHIVE}/{channel.id}-{addresses.encoded(channel.name.replace(' ', '-'))}"


def topic_path(channel: Channel, topic: str) -> str:
    return f"{channel_path(channel)}/topic/{addresses.encoded(topic)}"


def topic_from(encoded: str) -> str:
    """Return the topic's name in a path that `addresses.encoded` wrote."""
    return unquote(encoded.replace(".", "%"), errors="replace")


def _page_path(path: str, number: int) -> str:
    return path if number == 1 else f"{path}?page={number}"


def _moved(request: Request, path: str) -> Response | None:
    """Return a redirect to the page's canonical URL, or None if the request has it. A channel or
    topic may have been renamed."""
    if request.url.path == path:
        return None
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(path + query, 301, {"Cache-Control": "no-cache"})


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    is_number = text.isascii() and text.isdigit() and len(text) < 16
    return max(int(text), default) if is_number else default


def _xml(request: Request, root: str, entry: str, addresses_: Sequence[str]) -> Response:
    lines = "".join(f"<{entry}><loc>{escape(address)}</loc></{entry}>\n" for address in addresses_)
    content = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{lines}</{root}>\n'
    )
    headers = {"Cache-Control": "no-cache"}
    return unless_known(request, content.encode(), "application/xml", headers)
