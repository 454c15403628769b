"""Putting texts of others into Markdown."""

import re
from typing import Final
from urllib.parse import quote as percent

_MENTION: Final = re.compile(r"@(?!\u200b|_?[^\W_])")
"""Also where what makes a mention of it would only come behind it: from another text."""
_INVISIBLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FENCE: Final = re.compile(r"^\s*(~{3,}|`{3,})", re.MULTILINE)
_TICKS: Final = re.compile(r"`+")
MAX_QUOTE: Final = 2000
"""Characters of a text that is quoted."""


def harmless(text: str) -> str:
    """The text, which mentions nobody, whatever is written behind it."""
    return _MENTION.sub("@\N{ZERO WIDTH SPACE}", _INVISIBLE.sub("", text))


def address(text: str) -> str:
    """The address, such that it can stand in a link; empty where it is none on the web."""
    text = text.strip()
    if not text.lower().startswith(("http://", "https://")) or len(text) > 2000:
        return ""
    return percent(text, safe="%/:=&?~#+!$,;'@*[]")


def link(text: str, url: str) -> str:
    """The text as a link; as it is where that is no address on the web."""
    url = address(url)
    if not url:
        return text
    if not _is_balanced(text):
        text = text.replace("[", "(").replace("]", ")")
    return f"[{text}]({url})"


def _is_balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if depth < 0:
            return False
    return depth == 0


def short(text: str, longest: int) -> str:
    """No more than so many characters of it."""
    text = text.strip()
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def quote(text: str) -> str:
    """The text as a block of its own that says so; empty where it is."""
    return fenced(text, "quote")


def fenced(text: str, kind: str = "") -> str:
    """The text as a fenced block of that kind, a language or none; empty where it is."""
    text = short(text.replace("\r\n", "\n"), MAX_QUOTE)
    if not text:
        return ""
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "~" * max(3, longest + 1)
    return f"{fence} {kind}".rstrip() + f"\n{text}\n{fence}"


def code(text: str) -> str:
    """A short text as it is, in the type of code."""
    text = " ".join(text.split())
    if not text:
        return ""
    ticks = "`" * (1 + max((len(found) for found in _TICKS.findall(text)), default=0))
    return f"{ticks} {text} {ticks}" if "`" in text else f"{ticks}{text}{ticks}"


def listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def paragraphs(*parts: str) -> str:
    """Those that are not empty, one below the other."""
    return "\n".join(part for part in parts if part)


def title_case(text: str) -> str:
    """`under_maintenance` as `Under maintenance`."""
    words = text.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]
