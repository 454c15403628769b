"""Converting a message's HTML for email programs and pages without scripts, which have no style
sheets, and to plain text."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from msgspec import Struct

if TYPE_CHECKING:
    from lxml import etree  # type: ignore[import-untyped]  # it comes without types

HIDDEN: Final = "…"
"""Replaces spoilers."""
_STYLES: Final[Mapping[str, str]] = {
    "blockquote": "margin:0 0 8px;padding-left:12px;border-left:3px solid #e7ddcf",
    "pre": "margin:0 0 8px;padding:8px 12px;border-radius:6px;background:#f3ece1;color:#33302b;"
    "font-size:14px;white-space:pre-wrap;overflow-wrap:anywhere",
    "code": "font-size:14px",
    "p": "margin:0 0 8px",
    "ul": "margin:0 0 8px;padding-left:24px",
    "ol": "margin:0 0 8px;padding-left:24px",
    "table": "border-collapse:collapse;margin:0 0 8px",
    "th": "padding:2px 8px;border:1px solid #e7ddcf;text-align:left",
    "td": "padding:2px 8px;border:1px solid #e7ddcf",
    "a": "color:#a04f22",
    "img": "max-width:100%;height:auto;border-radius:6px",
}
_KEPT: Final = frozenset({"href", "src", "alt", "start"})
_BLOCKS: Final = frozenset(
    {"p", "div", "ul", "ol", "li", "blockquote", "pre", "table", "tr", "hr"}
    | {f"h{level}" for level in range(1, 7)}
)
_OF_ITS_OWN_DIRECTION: Final = frozenset({"p", "li", "th", "td", *(f"h{n}" for n in range(1, 7))})
"""Elements with automatic text direction."""
_EMOJI: Final = re.compile(r"\bemoji-([0-9a-f]{2,6}(?:-[0-9a-f]{2,6})*)\b")
_THUMBNAIL: Final = re.compile(r"/user_uploads/thumbnail/(.+)/[^/]+")
_BLANK: Final = re.compile(r"\n{3,}")


class ReadableMessage(Struct, frozen=True, kw_only=True):
    """A message in an email."""

    html: str
    text: str


def pictures_in(html: str) -> list[str]:
    """Return the paths of uploaded images that the message shows outside of spoilers."""
    images = (value for value in _parsed(html).iter("img") if not _is_hidden(value))
    result = (_THUMBNAIL.fullmatch(image.get("src") or "") for image in images)
    return list(dict.fromkeys(unquote(match[1]) for match in result if match))


def _is_hidden(element: "etree._Element") -> bool:
    around = element.iterancestors("div")
    return any("spoiler-content" in (value.get("class") or "").split() for value in around)


def readable(html: str, site: str, pictures: Mapping[str, str]) -> ReadableMessage:
    """Convert a message's HTML. `site` is the base of relative URLs. `pictures` has the
    `Content-ID` of attached images by path; other images become text."""
    from lxml import etree

    root = _parsed(html)
    for element in list(root.iter(etree.Element)):
        if element is not root and element.getparent() is not None:
            _simplify(element, pictures)
    for element in root.iter(etree.Element):
        _clean(element, site)
    text = _BLANK.sub("\n\n", _text(root)).strip()
    return ReadableMessage(html=_inner(root), text=text)


def page_html(html: str, addressed: Callable[[str], str | None]) -> str:
    """Convert a message's HTML for pages without scripts. `addressed` returns the URL that replaces
    one of the message, or None to leave it out: a link becomes text, and a picture its name."""
    from lxml import etree

    root = _parsed(html)
    for element in list(root.iter(etree.Element)):
        if element is root or element.getparent() is None:
            continue
        names = (element.get("class") or "").split()
        source = addressed(element.get("src") or "") if element.tag == "img" else None
        if source is not None and "emoji" not in names:
            element.set("src", source)
            element.set("alt", _name_of(element))
        elif "spoiler-content" not in names:
            _simplify(element, {})
    for element in root.iter(etree.Element):
        address = addressed(element.get("href") or "") if element.tag == "a" else None
        kept = {name: element.get(name) for name in _KEPT if element.get(name) is not None}
        element.attrib.clear()
        for name in kept.keys() - {"href"}:
            element.set(name, kept[name])
        if address is not None:
            element.set("href", address)
            if not address.startswith((".", "#")):
                element.set("rel", "nofollow noreferrer")
        if element.tag in _OF_ITS_OWN_DIRECTION:
            element.set("dir", "auto")
    return _inner(root)


def _inner(root: "etree._Element") -> str:
    from lxml import etree

    inner = (root.text or "") and _escaped(root.text)
    return inner + "".join(
        etree.tostring(value, encoding="unicode", method="html") for value in root
    )


def _parsed(html: str) -> "etree._Element":
    from lxml import html as lxml_html  # Only where there are mails.

    return lxml_html.fragment_fromstring(html, create_parent="div")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _simplify(element: "etree._Element", pictures: Mapping[str, str]) -> None:
    """Replace elements that need style sheets or scripts."""
    names = (element.get("class") or "").split()
    if "katex" in names:
        source = element.find(".//{*}annotation")
        _become(element, "code", "" if source is None else source.text or "")
    elif "emoji" in names:
        _become(element, "span", _emoji(element))
    elif "spoiler-content" in names:
        _become(element, "p", HIDDEN)
    elif element.tag == "img":
        match = _THUMBNAIL.fullmatch(element.get("src") or "")
        content_id = pictures.get(unquote(match[1])) if match else None
        if content_id is not None:
            element.set("src", f"cid:{content_id}")
            element.set("alt", _name_of(element))
        else:
            _become(element, "span", f"[{_name_of(element)}]")
    elif element.tag in {"video", "audio", "iframe"}:
        _become(element, "span", f"[{_name_of(element)}]")
    elif element.tag in {"script", "style", "button", "input"}:
        _become(element, "span", "")


def _become(element: "etree._Element", tag: str, text: str) -> None:
    tail = element.tail
    element.clear()
    element.tag, element.text, element.tail = tag, text, tail


def _emoji(element: "etree._Element") -> str:
    match = _EMOJI.search(element.get("class") or "")
    if element.tag == "img" or match is None:
        return element.get("alt") or element.text or ""
    try:
        return "".join(chr(int(code, 16)) for code in match[1].split("-"))
    except (ValueError, OverflowError):
        return element.text or ""


def _name_of(element: "etree._Element") -> str:
    """Return the name of an image or video, from its link."""
    link = element.getparent()
    title = link.get("title") if link is not None and link.tag == "a" else None
    return element.get("alt") or title or unquote((element.get("src") or "").rpartition("/")[2])


def _clean(element: "etree._Element", site: str) -> None:
    """Keep only the attributes that emails need, with absolute URLs."""
    for name in list(element.attrib):
        if name not in _KEPT:
            del element.attrib[name]
    for name in ("href", "src"):
        address = element.get(name)
        if address is None:
            continue
        if address.startswith("/") and not address.startswith("//"):
            element.set(name, site.rstrip("/") + address)
        elif address.startswith("#"):
            element.set(name, f"{site.rstrip('/')}/{address}")
        elif not re.match(r"(?:https?|mailto|cid|tel):", address):
            del element.attrib[name]
    if element.tag in _OF_ITS_OWN_DIRECTION:
        element.set("dir", "auto")
    style = _STYLES.get(str(element.tag))
    if style:
        element.set("style", style)


# Plain text


def _text(root: "etree._Element") -> str:
    """Return the plain text of a simplified element."""
    return "".join(_inside(root))


def _inside(element: "etree._Element") -> list[str]:
    parts = [element.text or ""]
    for child in element:
        parts += _around(child)
        parts.append(child.tail or "")
    return parts


def _around(element: "etree._Element") -> list[str]:
    tag = str(element.tag)
    if tag == "br":
        return ["\n"]
    if tag == "hr":
        return ["\n---\n"]
    if tag == "img":
        return [f"[{element.get('alt') or ''}]"]
    inner = "".join(_inside(element))
    if tag == "a":
        address = element.get("href") or ""
        said = inner.strip()
        return [inner] if not address or said == address else [f"{said} ({address})"]
    if tag == "li":
        return [f"\n- {inner.strip()}"]
    if tag == "blockquote":
        return ["\n", _each_line(inner.strip(), lambda line: f"> {line}"), "\n"]
    if tag == "td" or tag == "th":
        return [inner.strip(), "  "]
    if tag in _BLOCKS:
        return ["\n", inner.strip("\n"), "\n"]
    return [inner]


def _each_line(text: str, change: Callable[[str], str]) -> str:
    return "\n".join(map(change, text.splitlines()))
