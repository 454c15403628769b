"""HTML of strangers as Markdown of ours: its words, links and lists. What a reader does not need to
understand it is left out."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lxml import etree  # type: ignore[import-untyped]  # it comes without types

_LEFT_OUT: Final = frozenset(
    {"script", "style", "template", "noscript", "iframe", "object", "svg", "math", "button", "form"}
)
_BLOCKS: Final = frozenset(
    {"p", "div", "section", "article", "header", "footer", "figure", "figcaption", "ul", "ol", "dl"}
    | {"table", "tr", "dt", "dd", "address", "main", "aside", "details", "summary", "hr"}
)
_HEADINGS: Final = frozenset(f"h{level}" for level in range(1, 7))
_SIGNS: Final = {"b": "**", "strong": "**", "i": "*", "em": "*", "del": "~~", "s": "~~"}
_SPACE: Final = re.compile(r"[ \t\r\f\v\n\u00a0]+")
_BLANK: Final = re.compile(r"\n(?:[ \t]*\n)+")
_FENCED: Final = re.compile(r"^[ \t]*(?:```+|~~~+)", re.MULTILINE)
_PARSED: Final = 200_000
"""Characters of HTML that are looked at: more is not shown in any case."""


def plain(html: str, limit: int) -> str:
    """The words in one line, no more than so many characters."""
    root = _parsed(html)
    text = html if root is None else "".join(root.itertext())
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def markdown(html: str, limit: int) -> str:
    """The HTML as Markdown, no more than so many characters: whole blocks of it, or the words of
    the first one."""
    root = _parsed(html)
    if root is None:
        return ""
    blocks = [block.strip("\n") for block in _BLANK.split(_inner(root).strip()) if block.strip()]
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


def _whole(blocks: list[str]) -> Iterator[str]:
    """The blocks; what is fenced is one, however many blank lines it has."""
    open_: list[str] = []
    for block in blocks:
        open_.append(block)
        if sum(len(_FENCED.findall(part)) for part in open_) % 2 == 0:
            yield "\n\n".join(open_)
            open_ = []
    yield from open_


def _parsed(html: str) -> "etree._Element | None":
    from lxml import etree
    from lxml import html as lxml_html

    if not html.strip():
        return None
    try:
        return lxml_html.fragment_fromstring(html[:_PARSED], create_parent="div")
    except (etree.LxmlError, ValueError):
        return None


def _inner(element: "etree._Element") -> str:
    parts = [_SPACE.sub(" ", element.text or "")]
    for child in element:
        parts.append(_one(child))
        parts.append(_SPACE.sub(" ", child.tail or ""))
    return "".join(parts)


def _one(element: "etree._Element") -> str:
    tag = element.tag if isinstance(element.tag, str) else ""
    if not tag or tag in _LEFT_OUT:
        return ""
    match tag:
        case "br":
            return "\n"
        case "img":
            return _picture(element)
        case "pre":
            return _code_block("".join(element.itertext()))
        case "code" | "kbd" | "samp" | "tt":
            return _code("".join(element.itertext()))
    inner = _inner(element)
    if tag == "a":
        return _link(inner, element.get("href") or "")
    if tag in _SIGNS:
        return _between(_SIGNS[tag], inner)
    if tag in _HEADINGS:
        return f"\n\n{_between('**', ' '.join(inner.split()))}\n\n"
    if tag == "li":
        lines = _BLANK.sub("\n", inner.strip()).split("\n")
        return "\n* " + "\n  ".join(line.strip() for line in lines)
    if tag == "blockquote":
        lines = _BLANK.sub("\n\n", inner.strip()).split("\n")
        return "\n\n" + "\n".join(f"> {line.strip()}".rstrip() for line in lines) + "\n\n"
    if tag in {"td", "th"}:
        return f"{inner.strip()} "
    return f"\n\n{inner.strip()}\n\n" if tag in _BLOCKS else inner


def _between(sign: str, inner: str) -> str:
    """The text between two signs, which must stand right beside it; as it is where it has several
    lines."""
    text = inner.strip()
    if not text or "\n" in text or text.startswith("*") or text.endswith("*"):
        return inner
    before, after = inner[: len(inner) - len(inner.lstrip())], inner[len(inner.rstrip()) :]
    return f"{before}{sign}{text}{sign}{after}"


def _link(inner: str, address: str) -> str:
    text = " ".join(inner.split())
    address = address.strip()
    if not re.match(r"https?://[^\s<>()]+$", address, re.IGNORECASE) or not text or "](" in text:
        return inner
    if text == address:
        return address
    return f"[{text.replace('[', '(').replace(']', ')')}]({address})"


def _picture(element: "etree._Element") -> str:
    return _link(" ".join((element.get("alt") or "").split()), element.get("src") or "")


def _code(text: str) -> str:
    text = " ".join(text.split())
    return f"`{text}`" if text and "`" not in text else text


def _code_block(text: str) -> str:
    text = text.strip("\n").expandtabs(4).rstrip()
    return f"\n\n~~~\n{_FENCED.sub('', text)}\n~~~\n\n" if text.strip() else ""
