"""Parsing feeds, in a worker process, because they are untrusted and often invalid."""

import calendar
import hashlib
import io
from collections.abc import Callable
from typing import Any, Final

from tertulia.outbound.feeds import MAX_ENTRIES, MAX_TEXT, MAX_TITLE, FeedDocument, FeedEntry
from tertulia.outbound.html_markdown import markdown, plain

_LATEST: Final = 4102444800.0
"""The year 2100. Later times are ignored."""


def load(*_: object) -> None:
    """Load the parsers."""
    import feedparser  # type: ignore[import-untyped]  # noqa: F401 (it comes without types)

    markdown("<p>x</p>", 1)


def parsed(document: bytes, url: str, content_type: str) -> FeedDocument | None:
    """Parse the document; None if it isn't a feed."""
    import feedparser

    headers = {"content-location": url}
    if content_type:
        headers["content-type"] = content_type
    # A stream, because the parser would open a text that looks like an address or path.
    parsed: Any = feedparser.parse(
        io.BytesIO(document), response_headers=headers, sanitize_html=False
    )
    if not parsed.get("version"):
        return None
    entries = [_entry(entry) for entry in parsed.entries[:MAX_ENTRIES]]
    # Drop duplicates.
    unique = {entry.mark: entry for entry in reversed(entries)}
    return FeedDocument(
        title=plain(_text(parsed.feed, "title"), MAX_TITLE), entries=list(reversed(unique.values()))
    )


def _entry(value: Any) -> FeedEntry:
    title, link = plain(_text(value, "title"), MAX_TITLE), _address(_text(value, "link"))
    html = _text(value, "summary")
    contents = value.get("content") or ()
    if not html and contents:
        html = str(contents[0].get("value") or "")
    identity = _text(value, "id") or link or f"{title}\n{html}"
    text = markdown(html, MAX_TEXT)
    return FeedEntry(
        mark=hashlib.blake2b(identity.encode("utf-8", "replace"), digest_size=8).hexdigest(),
        title=title,
        url=link,
        # Some repeat the title as text.
        text="" if text == title else text,
        at=_time(value),
    )


def _text(item: Any, name: str) -> str:
    value = item.get(name)
    return value.strip() if isinstance(value, str) else ""


def _address(text: str) -> str:
    fits = text.lower().startswith(("http://", "https://")) and text.isprintable()
    return text if fits and len(text) <= 2000 and " " not in text else ""


def _time(item: Any) -> float | None:
    read: Callable[[Any], int] = calendar.timegm
    for name in ("published_parsed", "updated_parsed"):
        # For missing keys, the parser warns or returns another one's value.
        if name in item and (value := item[name]):
            try:
                at = float(read(value))
            except (ValueError, OverflowError, TypeError):
                continue
            if 0 < at < _LATEST:
                return at
    return None
