"""Message attachments in Slack's format, which other servers adopted, as Markdown."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

MAX_PARTS: Final = 50
"""The most fields of an attachment, and the most attachments of a message."""
MAX_URL: Final = 2000
MAX_TEXT: Final = 20_000
"""Longest text, in characters."""


def text_in(part: Mapping[str, Any], name: str) -> str:
    """Return the text in this field; empty if it's missing or isn't a text."""
    value = part.get(name)
    if isinstance(value, bool | float | int):
        return str(value)
    return value[:MAX_TEXT] if isinstance(value, str) else ""


def parts_in(part: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects of the list in this field; empty if it's missing or isn't a list."""
    value = part.get(name)
    if not isinstance(value, list | tuple):
        return []
    return [item for item in value[:MAX_PARTS] if isinstance(item, dict)]


def link(text: str, url: str) -> str:
    """Return a Markdown link, or only the text if the URL isn't a web address."""
    if not url.lower().startswith(("http://", "https://")) or len(url) > MAX_URL:
        return text
    label = text.replace("[", "(").replace("]", ")")
    return f"[{label}]({quote(url, safe='%/:=&?~#+!$,;@')})" if label else url


def card(attachment: Mapping[str, Any], converted: Callable[[str], str]) -> str:
    """Return an attachment as Markdown. `converted` turns its texts into Markdown."""

    def line(name: str) -> str:
        return " ".join(text_in(attachment, name).split())

    author = link(line("author_name"), line("author_link"))
    title = link(line("title"), line("title_link"))
    fields = []
    for field in parts_in(attachment, "fields"):
        value = converted(text_in(field, "value")).replace("\n", "\n  ")
        heading = " ".join(text_in(field, "title").split())
        fields.append(f"* **{heading}**: {value}" if heading else f"* {value}")
    images = [link("image", line("image_url")), link("thumbnail", line("thumb_url"))]
    written = [
        converted(text_in(attachment, "pretext")),
        author,
        f"**{title}**" if title else "",
        converted(text_in(attachment, "text")),
        "\n".join(fields),
        *(image for image in images if image.startswith("[")),
        converted(line("footer")),
    ]
    result = "\n".join(text for text in written if text.strip())
    return result or converted(text_in(attachment, "fallback"))
