"""Reading payloads, which may contain anything, and writing Markdown."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote as percent

_MENTION: Final = re.compile(r"@(?!\u200b|_?[^\W_])")
"""Also matches at the end of a text, where the following text could complete a mention."""
_INVISIBLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FENCE: Final = re.compile(r"^\s*(~{3,}|`{3,})", re.MULTILINE)
_TICKS: Final = re.compile(r"`+")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]+)\}")
_TEMPLATE_ITEM: Final = re.compile(
    r"<<(?P<optional>.+?)>>"
    r"|\[(?P<text>[^\]]+)\]\((?P<url>[^)]+)\)"
    r"|`(?P<code>\{[^{}]+\})`"
    rf"|{_PLACEHOLDER.pattern}"
)
MAX_QUOTE: Final = 2000
"""Longest quote, in characters."""


def harmless(text: str) -> str:
    """Return the text without mentions, whatever text follows it."""
    return _MENTION.sub("@\N{ZERO WIDTH SPACE}", _INVISIBLE.sub("", text))


def address(text: str) -> str:
    """Return the URL, escaped for a link; empty if it isn't a web address."""
    text = text.strip()
    if not text.lower().startswith(("http://", "https://")) or len(text) > 2000:
        return ""
    return percent(text, safe="%/:=&?~#+!$,;'@*[]")


def link(text: str, url: str) -> str:
    """Return a link, or only the text if the URL isn't a web address."""
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
    """Return the text, truncated to `longest` characters."""
    text = text.strip()
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def quote(text: str) -> str:
    """Return a quote block; empty for an empty text."""
    return fenced(text, "quote")


def fenced(text: str, kind: str = "") -> str:
    """Return a fenced block with a language or another kind; empty for an empty text."""
    text = short(text.replace("\r\n", "\n"), MAX_QUOTE)
    if not text:
        return ""
    longest = max((len(fence) for fence in _FENCE.findall(text)), default=2)
    fence = "~" * max(3, longest + 1)
    return f"{fence} {kind}".rstrip() + f"\n{text}\n{fence}"


def code(text: str) -> str:
    """Return inline code."""
    text = " ".join(text.split())
    if not text:
        return ""
    ticks = "`" * (1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{ticks} {text} {ticks}" if "`" in text else f"{ticks}{text}{ticks}"


def listed(names: list[str]) -> str:
    """Join names as `a`, `a and b`, or `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def with_quote(what: str, body: str = "") -> str:
    """Return a sentence, followed by a quote."""
    quoted = quote(body)
    return f"{what}:\n\n{quoted}" if quoted else f"{what}."


def paragraphs(*parts: str) -> str:
    """Join the non-empty parts, each on a separate line."""
    return "\n".join(part for part in parts if part)


def facts(**values: str) -> list[str]:
    """Return list items `* Name: value` for the values that aren't empty."""
    return [f"* {title_case(name)}: {value}" for name, value in values.items() if value]


def title_case(text: str) -> str:
    """Return `under_maintenance` as `Under maintenance`."""
    words = text.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


class Malformed(Exception):
    """The payload isn't valid for the service. `str(error)` says why, without a period."""


MAX_TEXT: Final = 20_000
"""The most characters of a text that are read. A message has at most half of that."""
_MISSING: Final = object()
_SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True)
class Part:
    """A payload or a part of it. A path consists of names and positions with dots (`a.b.0`). Texts
    are harmless: they mention nobody."""

    value: Any
    path: str = ""

    def find(self, path: str) -> "Part | None":
        """Return the value at the path; None if it's missing or null."""
        value = self._at(path)
        return None if value is None or value is _MISSING else Part(value, self._named(path))

    def part(self, path: str) -> "Part":
        """Return the value at the path. Raises Malformed if it's missing."""
        part = self.find(path)
        if part is None:
            raise Malformed(f"'{self._named(path)}' is missing")
        return part

    def parts(self, path: str = "") -> list["Part"]:
        """Return the items of a list; empty if it's missing. Raises Malformed if it isn't a
        list."""
        part = self.find(path) if path else self
        if part is None:
            return []
        if not isinstance(part.value, list):
            raise Malformed(f"'{part.path}' isn't a list")
        return [Part(value, f"{part.path}[{n}]") for n, value in enumerate(part.value)]

    def items(self) -> Iterator[tuple[str, "Part"]]:
        """Yield the names and values of an object. Raises Malformed if it isn't an object."""
        if not isinstance(self.value, dict):
            raise Malformed(f"'{self.path}' isn't an object" if self.path else "it isn't an object")
        for name, value in self.value.items():
            yield harmless(str(name)), Part(value, self._named(str(name)))

    def fields(self, path: str) -> dict[str, "Part"]:
        """Return the names and values of an object at the path; empty if it's missing."""
        part = self.find(path)
        return dict(part.items()) if part else {}

    def first(self, *paths: str, default: str = "Someone") -> str:
        """Return the first of these lines that isn't empty."""
        return next(filter(None, (self.line(path, "") for path in paths)), default)

    def text(self, path: str = "", default: str | None = None) -> str:
        """Return a text, or a number as text. Without a default, raises Malformed if it's
        missing."""
        part = self.find(path) if path else self
        if part is None or isinstance(part.value, dict | list):
            if default is None:
                raise Malformed(f"'{self._named(path)}' is missing or isn't text")
            return default
        if isinstance(part.value, bool):
            return "true" if part.value else "false"
        return harmless(str(part.value)[:MAX_TEXT])

    def line(self, path: str = "", default: str | None = None) -> str:
        """Return a text like `text`, on one line."""
        return _SPACE.sub(" ", self.text(path, default)).strip()

    def word(self, path: str = "", default: str | None = None) -> str:
        """Return the unescaped text, for comparisons only."""
        part = self.find(path) if path else self
        if part is None or not isinstance(part.value, str):
            if default is None:
                raise Malformed(f"'{self._named(path)}' is missing or isn't text")
            return default
        return part.value

    def url(self, path: str) -> str:
        """Return a web address; empty if it's missing."""
        return address(self.word(path, ""))

    def fill(self, template: str, values: Mapping[str, "str | Part"] | None = None) -> str:
        """A sentence made of lines of the payload. Raises Malformed if one is missing.

        - `{a.b}` is the line at a path, or one of the values; a path can begin in a value.
        - `{a.b|c}` is the first that isn't empty. The last alternative is text.
        - `{a.b:11}` is its first 11 characters.
        - `` `{a.b}` `` is inline code, and `[{a.b}]({c.d})` a link if `c.d` is a web address.
        - `<< to {a.b|}>>` is left out if a line in it is empty.
        """
        known = values or {}

        def line(placeholder: str) -> str:
            paths, _, longest = placeholder.partition(":")
            *alternatives, last = paths.split("|")
            if not alternatives:
                text = self._value(last, known)
            else:
                texts = (self._value(path, known, "") for path in alternatives)
                text = next(filter(None, texts), last)
            return text[: int(longest)] if longest else text

        def url(template: str) -> str:
            first, *_ = _PLACEHOLDER.findall(template)
            base = next(filter(None, (self._url(path, known) for path in first.split("|"))), "")
            return base and base + fill(template.partition("}")[2])

        def item(match: re.Match[str]) -> str:
            if optional := match["optional"]:
                return fill(optional) if all(map(line, _PLACEHOLDER.findall(optional))) else ""
            if match["url"]:
                return link(fill(match["text"]), url(match["url"]))
            return code(fill(match["code"])) if match["code"] else line(match[5])

        def fill(template: str) -> str:
            return _TEMPLATE_ITEM.sub(item, template)

        return fill(template)

    def source(self, path: str, values: Mapping[str, "str | Part"]) -> tuple["Part", str]:
        """Return the part that a path begins in, and the rest of the path."""
        name, _, rest = path.partition(".")
        value = values.get(name)
        return (value, rest) if isinstance(value, Part) else (self, path)

    def _value(
        self, path: str, values: Mapping[str, "str | Part"], default: str | None = None
    ) -> str:
        value = values.get(path)
        if isinstance(value, str):
            return value
        part, path = self.source(path, values)
        return part.line(path, default)

    def _url(self, path: str, values: Mapping[str, "str | Part"]) -> str:
        value = values.get(path)
        if isinstance(value, str):
            return value
        part, path = self.source(path, values)
        return part.url(path) if path else ""

    def flag(self, path: str) -> bool:
        """Whether the value is true."""
        return self._at(path) is True

    def number(self, path: str, default: float | None = None) -> float:
        """Return a number. Without a default, raises Malformed if it's missing."""
        value = self._at(path)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        if default is None:
            raise Malformed(f"'{self._named(path)}' is missing or isn't a number")
        return default

    def _at(self, path: str) -> Any:
        value = self.value
        for name in path.split("."):
            if isinstance(value, list) and name.isdecimal():
                value = next(iter(value[int(name[:3]) :]), _MISSING)
            elif isinstance(value, dict):
                value = value.get(name, _MISSING)
            else:
                return _MISSING
        return value

    def _named(self, path: str) -> str:
        return f"{self.path}.{path}" if self.path and path else self.path or path
