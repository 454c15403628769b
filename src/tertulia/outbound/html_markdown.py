"""Converting HTML to Markdown: text, links, and lists."""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

_LEFT_OUT: Final = (
    *("script", "style", "template", "noscript", "iframe", "object", "svg", "math", "button"),
    *("form", "head", "title", "meta", "link"),
)
_WEB: Final = re.compile(r"https?://[^\s<>()]+", re.IGNORECASE)
_BLANK: Final = re.compile(r"\n(?:[ \t]*\n)+")
_FENCED: Final = re.compile(r"^[ \t]*(?:```+|~~~+)", re.MULTILINE)
_PARSED: Final = 200_000
"""The most characters of HTML that are parsed."""


def soup_of(html: str) -> "BeautifulSoup":
    """Parse HTML, and remove elements without text."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html[:_PARSED], "lxml")
    for element in soup.find_all(_LEFT_OUT):
        element.decompose()
    return soup


def plain(html: str, limit: int) -> str:
    """Return the text in one line of at most `limit` characters."""
    text = soup_of(html).get_text()
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def markdown(html: str, limit: int) -> str:
    """Convert HTML to at most `limit` characters of Markdown: whole blocks, or the text of the
    first one."""
    text = whole_markdown(soup_of(html))
    blocks = [block.strip("\n") for block in _BLANK.split(text) if block.strip()]
    kept: list[str] = []
    size = 0
    for block in _whole(blocks):
        size += len(block) + 2
        if size > limit:
            break
        kept.append(block)
    else:
        return "\n\n".join(kept)
    return "\n\n".join([*kept, "…"]) if kept else plain(html, limit)


def whole_markdown(soup: "BeautifulSoup") -> str:
    """Convert the whole document, or only its text if it's nested too deeply."""
    try:
        result = str(_converter().convert_soup(soup))
    except RecursionError:
        result = soup.get_text("\n")
    return "\n".join(line.rstrip() for line in result.split("\n")).strip()


def _whole(blocks: list[str]) -> Iterator[str]:
    """Join the parts of fenced blocks."""
    open_: list[str] = []
    for block in blocks:
        open_.append(block)
        if sum(len(_FENCED.findall(part)) for part in open_) % 2 == 0:
            yield "\n\n".join(open_)
            open_ = []
    yield from open_


@cache
def _converter() -> "MarkdownConverter":
    from markdownify import MarkdownConverter

    class Converter(MarkdownConverter):
        """Converts to Tertulia's Markdown, with links instead of images."""

        def convert_a(self, element: Any, text: str, parent_tags: Any) -> str:
            return _link(text, element.get("href") or "")

        def convert_img(self, element: Any, text: str, parent_tags: Any) -> str:
            return _link(element.get("alt") or "", element.get("src") or "")

        # The library looks for it by this name.
        def convert_hN(self, n: int, element: Any, text: str, parent_tags: Any) -> str:  # noqa: N802 (its name)
            """Headings become bold text."""
            words = " ".join(text.split())
            return f"\n\n**{words}**\n\n" if words and "*" not in words else f"\n\n{words}\n\n"

        def convert_pre(self, element: Any, text: str, parent_tags: Any) -> str:
            code = element.get_text().strip("\n").expandtabs(4).rstrip()
            code = _FENCED.sub("", code).rstrip()
            return f"\n\n~~~\n{code}\n~~~\n\n" if code.strip() else ""

    return Converter(
        bullets="*", escape_underscores=False, escape_misc=False, escape_asterisks=False
    )


def _link(inner: str, address: str) -> str:
    text, address = " ".join(inner.split()), address.strip()
    if not _WEB.fullmatch(address) or not text or "](" in text:
        return inner
    if text == address:
        return address
    return f"[{text.replace('[', '(').replace(']', ')')}]({address})"
