"""Images, videos, and pages of other servers that a message links.

Readers never contact those servers: images and videos have a URL of this server
(`ExternalMedia.proxy_address`), which fetches them on demand. Pages are fetched after the message
was sent, and it's then rendered again with `ExternalMedia.previews`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final
from urllib.parse import parse_qs, urlsplit

from tertulia.markup.elements import element, escaped
from tertulia.model.messages import LinkPreview

MAX_PAGES: Final = 5
"""The most linked pages of a message that have previews: the first ones."""
MAX_ADDRESS: Final = 2000
"""The longest link with a preview, in characters."""
_PICTURES: Final = (".bmp", ".gif", ".jpe", ".jpeg", ".jpg", ".png", ".webp")
_VIDEOS: Final = (".mp4", ".webm")
_YOUTUBE: Final = frozenset(
    {"youtube.com", "www.youtube.com", "m.youtube.com", "music.youtube.com"}
    | {"youtube-nocookie.com", "www.youtube-nocookie.com"}
)
_YOUTUBE_ID: Final = re.compile(r"[\w-]{11}", re.ASCII)
_VIMEO: Final = re.compile(r"/(?:video/|channels/[\w-]+/)?(?P<id>[0-9]{5,12})/?", re.ASCII)


@dataclass(frozen=True)
class ExternalMedia:
    """The external media that may be shown."""

    proxy_address: Callable[[str], str] | None = None
    """Returns this server's URL for an external file. Without it, external files aren't shown."""
    fetches_pages: bool = False
    """Whether the server fetches linked pages if the organization wants previews."""
    previews: Mapping[str, LinkPreview | None] = field(default_factory=dict)
    """Fetched pages by URL, or None for a page without a preview."""


class Kind(Enum):
    """The ways in which a link is shown."""

    PICTURE = auto()
    VIDEO = auto()
    YOUTUBE = auto()
    VIMEO = auto()
    PAGE = auto()


def kind_of(href: str) -> Kind | None:
    """Return how the link is shown, or None if it isn't a web link."""
    if not href.startswith(("http://", "https://")) or len(href) > MAX_ADDRESS:
        return None
    parts = urlsplit(href)
    if not parts.hostname or parts.username is not None:
        return None
    path = parts.path.lower()
    if path.endswith(_PICTURES):
        return Kind.PICTURE
    if path.endswith(_VIDEOS):
        return Kind.VIDEO
    if _youtube_id(href) is not None:
        return Kind.YOUTUBE
    if _vimeo_id(href) is not None:
        return Kind.VIMEO
    return Kind.PAGE


def picture(media: ExternalMedia, href: str, title: str | None) -> str:
    shown = element("img", {"src": _address(media, href)})
    return _box("message_inline_image", {"href": href, "title": title}, shown)


def video(media: ExternalMedia, href: str, title: str | None) -> str:
    player = element(
        "video",
        {
            "data-video-original-url": href,
            "preload": "metadata",
            "src": _address(media, href),
        },
    )
    kind = "message_inline_image message_inline_video"
    return _box(kind, {"href": href, "title": title}, player)


def youtube(media: ExternalMedia, href: str) -> str:
    """Return a YouTube video with its thumbnail, whose URL follows from the video's."""
    video_id = _youtube_id(href)
    shown = element(
        "img", {"src": _address(media, f"https://i.ytimg.com/vi/{video_id}/mqdefault.jpg")}
    )
    return _box("youtube-video message_inline_image", {"data-id": video_id, "href": href}, shown)


def vimeo(media: ExternalMedia, href: str, preview: LinkPreview) -> str | None:
    """Return a Vimeo video in its player, or None without an image."""
    if not preview.image:
        return None
    player = (
        f'<iframe src="https://player.vimeo.com/video/{_vimeo_id(href)}" width="640" height="360"'
        ' frameborder="0" allow="autoplay; fullscreen" allowfullscreen></iframe>'
    )
    shown = element("img", {"src": _address(media, preview.image)})
    attributes = {"data-id": player, "href": href, "title": preview.title or None}
    return _box("embed-video message_inline_image", attributes, shown)


def page_preview(media: ExternalMedia, href: str, preview: LinkPreview) -> str | None:
    """Return a page with title, description, and image, or None without an image."""
    if not preview.image:
        return None
    address = _address(media, preview.image)
    shown = element(
        "a",
        {
            "class": "message_embed_image",
            "href": href,
            "style": f'background-image: url("{address}")',
        },
    )
    said = ""
    if preview.title:
        link = element("a", {"href": href, "title": preview.title}, escaped(preview.title))
        said += element("div", {"class": "message_embed_title"}, link)
    if preview.description:
        said += element("div", {"class": "message_embed_description"}, escaped(preview.description))
    return element(
        "div",
        {"class": "message_embed"},
        shown + element("div", {"class": "data-container"}, said),
    )


def _address(media: ExternalMedia, href: str) -> str:
    if media.proxy_address is None:
        raise ValueError("nothing is shown of other servers")
    return media.proxy_address(href)


def _box(kind: str, attributes: Mapping[str, str | None], inner: str) -> str:
    return element("div", {"class": kind}, element("a", attributes, inner))


def _youtube_id(href: str) -> str | None:
    parts = urlsplit(href)
    host, path = (parts.hostname or "").lower(), parts.path
    result = ""
    if host == "youtu.be":
        result = path[1:].rstrip("/")
    elif host in _YOUTUBE:
        first, _, rest = path[1:].partition("/")
        if first == "watch":
            result = parse_qs(parts.query, max_num_fields=20).get("v", [""])[0] if not rest else ""
        elif first in {"embed", "v", "shorts", "live"}:
            result = rest.rstrip("/")
    return result if _YOUTUBE_ID.fullmatch(result) else None


def _vimeo_id(href: str) -> str | None:
    parts = urlsplit(href)
    if (parts.hostname or "").lower() not in {"vimeo.com", "www.vimeo.com", "player.vimeo.com"}:
        return None
    match = _VIMEO.fullmatch(parts.path)
    return match["id"] if match else None
