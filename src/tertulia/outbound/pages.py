"""Metadata of web pages, for link previews."""

import logging
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from tertulia.model.messages import LinkPreview
from tertulia.workers import FILES, TaskBudget, TaskFailed, TaskUnavailable, WorkerTask

logger = logging.getLogger("tertulia.previews")

if TYPE_CHECKING:
    from lxml import etree  # type: ignore[import-untyped]  # it comes without types

MAX_TITLE: Final = 300
MAX_DESCRIPTION: Final = 1000
MAX_ADDRESS: Final = 2000
MEDIA_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_TITLE: Final = ("og:title", "twitter:title")
_DESCRIPTION: Final = ("og:description", "twitter:description", "description")
_IMAGE: Final = ("og:image:secure_url", "og:image", "og:image:url", "twitter:image")


MAX_SECONDS: Final = 3.0
"""The most processor seconds for one page. A typical one takes a hundredth."""
PATIENCE: Final = 30.0
DESCRIBED: Final[WorkerTask[LinkPreview]] = WorkerTask(
    "tertulia.outbound.pages:described", LinkPreview, load="tertulia.outbound.pages:load"
)


async def preview(page: bytes, url: str, content_type: str) -> LinkPreview | None:
    """Return the metadata of a page, extracted by a worker; None if that fails or takes too
    long."""
    try:
        return await FILES.call(
            DESCRIBED, page, url, content_type, allowance=TaskBudget(MAX_SECONDS, PATIENCE)
        )
    except (TaskUnavailable, TaskFailed) as error:
        logger.info("could not read a page: %s", error)
        return None


def load(*_: object) -> None:
    """Load the parser."""
    _parsed(b"<p>", "")


def described(page: bytes, url: str, content_type: str = "") -> LinkPreview:
    """Return the metadata of a page, which may be truncated. `url` is its address, and
    `content_type` its header."""
    root = _parsed(page, content_type)
    if root is None:
        return LinkPreview()
    said: dict[str, str] = {}
    for meta in root.iter("meta"):
        name = (meta.get("property") or meta.get("name") or "").strip().lower()
        text = (meta.get("content") or "").strip()
        if name and text:
            said.setdefault(name, text)
    title = _first(said, _TITLE) or next(
        (text for value in root.iter("title") if (text := "".join(value.itertext()))), ""
    )
    image = _first(said, _IMAGE) or next(
        (value.get("href") or "" for value in root.iter("link") if value.get("rel") == "image_src"),
        "",
    )
    return LinkPreview(
        title=_plain(title, MAX_TITLE),
        description=_plain(_first(said, _DESCRIPTION), MAX_DESCRIPTION),
        image=_address(url, image),
    )


def _parsed(page: bytes, content_type: str) -> "etree._Element | None":
    from lxml import etree  # Only where there are pages.

    match = _CHARSET.search(content_type)
    encoding = match[1] if match else None
    if encoding is None and b"charset" not in page[:2048].lower():
        encoding = "utf-8"
    try:
        parser = etree.HTMLParser(encoding=encoding, no_network=True, huge_tree=False)
    except LookupError:  # The encoding is unknown.
        parser = etree.HTMLParser(no_network=True, huge_tree=False)
    try:
        return etree.fromstring(page, parser)
    except (etree.LxmlError, ValueError):
        return None


def _first(said: dict[str, str], names: Iterable[str]) -> str:
    return next((said[name] for name in names if name in said), "")


def _plain(text: str, limit: int) -> str:
    """Return the text in one line, without invisible characters, truncated."""
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _address(page: str, address: str) -> str:
    if not address:
        return ""
    try:
        url = urljoin(page, address.strip())
        parts = urlsplit(url)
    except ValueError:
        return ""
    fitting = parts.scheme in {"http", "https"} and parts.netloc and len(url) <= MAX_ADDRESS
    return url if fitting and " " not in url else ""
