"""The HTML elements of messages.

`element`, `open_tag`, and the escaping functions make all HTML of a message, so nothing outside
`ALLOWED` can be in one.
"""

import re
from collections.abc import Mapping
from typing import Final

_ANYWHERE: Final[frozenset[str]] = frozenset()
ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("p", "br", "hr", "em", "strong", "del", "code", "pre"), _ANYWHERE),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _ANYWHERE),
    **dict.fromkeys(("blockquote", "ul", "li", "table", "thead", "tbody", "tr"), _ANYWHERE),
    "ol": frozenset({"start"}),
    "th": frozenset({"style"}),
    "td": frozenset({"style"}),
    "a": frozenset({"class", "data-id", "data-stream-id", "href", "style", "title"}),
    "span": frozenset(
        {
            *("aria-hidden", "aria-label", "class", "data-user-group-id", "data-user-id"),
            *("role", "title"),
        }
    ),
    "div": frozenset({"aria-hidden", "class", "data-code-language"}),
    "time": frozenset({"datetime"}),
    "img": frozenset(
        {
            *("alt", "class", "data-animated", "data-original-content-type"),
            *("data-original-dimensions", "data-original-src", "data-transcoded-image"),
            *("src", "title"),
        }
    ),
    "video": frozenset({"data-video-original-url", "preload", "src"}),
    "audio": frozenset({"controls", "preload", "src", "title"}),
}
"""Elements and their attributes. `katex` has those of formulas."""
VOID: Final = frozenset({"br", "hr", "img"})

_ENTITY: Final = re.compile(r"&(?!#[0-9]{1,7};|#[xX][0-9a-fA-F]{1,6};|[a-zA-Z][a-zA-Z0-9]{1,31};)")


def escaped_text(text: str) -> str:
    """Escape text between elements. Typed entities stay entities."""
    if "&" in text:
        text = _ENTITY.sub("&amp;", text)
    return text.replace("<", "&lt;").replace(">", "&gt;")


def escaped(text: str) -> str:
    """Escape text in code and attributes, including entities."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


def open_tag(name: str, attributes: Mapping[str, str | None] | None = None) -> str:
    """Return an opening tag. Attributes that are None are left out, and `controls` has no value."""
    allowed = ALLOWED[name]
    if not attributes:
        return f"<{name}>"
    parts = [name]
    for key, value in attributes.items():
        if key not in allowed:
            raise ValueError(f"<{name}> has no attribute {key} in a message")
        if value is not None:
            parts.append(key if key == "controls" else f'{key}="{escaped(value)}"')
    return f"<{' '.join(parts)}>"


def element(name: str, attributes: Mapping[str, str | None], inner: str = "") -> str:
    """Return an element around finished HTML (`inner`)."""
    tag = open_tag(name, attributes)
    return tag if name in VOID else f"{tag}{inner}</{name}>"
