"""Reading what a service sent, which may be anything."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
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


class Malformed(Exception):
    """The payload isn't what the service sends. `str(error)` says why, without a period."""


MAX_TEXT: Final = 20_000
"""Characters of a text that are read: a message takes half of that."""
_MISSING: Final = object()
_SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True)
class Part:
    """A part of a payload, or all of it. Paths are names with dots between (`a.b.c`).

    Texts mention nobody: what others wrote elsewhere must not wake people here.
    """

    value: Any
    path: str = ""

    def find(self, path: str) -> "Part | None":
        """What is at the path; None where nothing is, or null."""
        value = self._at(path)
        return None if value is None or value is _MISSING else Part(value, self._named(path))

    def part(self, path: str) -> "Part":
        """The same. Malformed where nothing is there."""
        found = self.find(path)
        if found is None:
            raise Malformed(f"'{self._named(path)}' is missing")
        return found

    def parts(self, path: str = "") -> list["Part"]:
        """The items of a list. None where nothing is there; Malformed where something else is."""
        found = self.find(path) if path else self
        if found is None:
            return []
        if not isinstance(found.value, list):
            raise Malformed(f"'{found.path}' isn't a list")
        return [Part(one, f"{found.path}[{n}]") for n, one in enumerate(found.value)]

    def items(self) -> Iterator[tuple[str, "Part"]]:
        """The names and values of an object. Malformed where it is none."""
        if not isinstance(self.value, dict):
            raise Malformed(f"'{self.path}' isn't an object" if self.path else "it isn't an object")
        for name, value in self.value.items():
            yield harmless(str(name)), Part(value, self._named(str(name)))

    def text(self, path: str = "", default: str | None = None) -> str:
        """A text, or a number as text. Without a default Malformed where there is none."""
        found = self.find(path) if path else self
        if found is None or isinstance(found.value, dict | list):
            if default is None:
                raise Malformed(f"'{self._named(path)}' is missing or isn't text")
            return default
        if isinstance(found.value, bool):
            return "true" if found.value else "false"
        return harmless(str(found.value)[:MAX_TEXT])

    def line(self, path: str = "", default: str | None = None) -> str:
        """The same on one line."""
        return _SPACE.sub(" ", self.text(path, default)).strip()

    def word(self, path: str = "", default: str | None = None) -> str:
        """A text as it is, for comparing it; not for showing it."""
        found = self.find(path) if path else self
        if found is None or not isinstance(found.value, str):
            if default is None:
                raise Malformed(f"'{self._named(path)}' is missing or isn't text")
            return default
        return found.value

    def url(self, path: str) -> str:
        """An address on the web; empty where there is none."""
        return address(self.word(path, ""))

    def flag(self, path: str) -> bool:
        """Whether that is true."""
        return self._at(path) is True

    def number(self, path: str, default: float | None = None) -> float:
        """A number. Without a default Malformed where there is none."""
        value = self._at(path)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        if default is None:
            raise Malformed(f"'{self._named(path)}' is missing or isn't a number")
        return default

    def _at(self, path: str) -> Any:
        value = self.value
        for name in path.split("."):
            if not isinstance(value, dict):
                return _MISSING
            value = value.get(name, _MISSING)
        return value

    def _named(self, path: str) -> str:
        return f"{self.path}.{path}" if self.path and path else self.path or path
