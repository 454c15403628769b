"""Converting the Markdown of other servers without changing code in it."""

import re
from collections.abc import Callable
from typing import Final

from tertulia.domain import names

MAX_TEXT: Final = 40_000
"""Longest text that is converted, in characters. Messages are shorter."""
LONGEST: Final = names.MAX_MESSAGE - 500
"""Longest message, in characters, before mentions get their final form."""
BEFORE_MENTION: Final = r"(?<![^\s'\"({\[/<])"
"""The text that can precede a mention here."""
_FENCE: Final = re.compile(r"(`{3,}|~{3,})([^`\n]*)")
_SPAN: Final = re.compile(r"(?<!`)(`+)(?!`)(?:.+?)(?<!`)\1(?!`)", re.DOTALL)
_LATEX: Final = frozenset({"latex", "tex"})


def convert(text: str, converted: Callable[[str], str]) -> str:
    """Return the text, with everything except code converted by `converted`. Blocks of LaTeX become
    math blocks."""
    if "```" not in text and "~~~" not in text:
        return _outside_spans(text[:MAX_TEXT], converted)
    written: list[str] = []
    plain: list[str] = []
    fence = ""

    def end_plain() -> None:
        if plain:
            written.append(_outside_spans("\n".join(plain), converted))
            plain.clear()

    for line in text[:MAX_TEXT].split("\n"):
        match = _FENCE.match(line.strip())
        if fence:
            is_end = match is not None and match[1].startswith(fence) and not match[2].strip()
            written.append(line)
            fence = "" if is_end else fence
        elif match is not None and match.end() == len(line.strip()):
            end_plain()
            fence = match[1]
            is_math = match[2].strip().lower() in _LATEX
            written.append(f"{fence}math" if is_math else line)
        else:
            plain.append(line)
    end_plain()
    return "\n".join(written)


def _outside_spans(text: str, converted: Callable[[str], str]) -> str:
    if "`" not in text:
        return converted(text)
    written, end = [], 0
    for match in _SPAN.finditer(text):
        written += [converted(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*written, converted(text[end:])])


def in_link(name: str) -> str:
    """Return a file's name, escaped as the text of a link."""
    return re.sub(r"[\[\]\\`]", "", " ".join(name.split())) or "file"


def quoted(text: str) -> str:
    """Return a block that quotes the text."""
    longest = max((len(value) for value in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}quote\n{text.strip()}\n{fence}"


def parts_of(text: str, longest: int = LONGEST) -> list[str]:
    """Split a text at lines or spaces into parts of at most `longest` characters. A code block that
    is split continues as a code block."""
    results: list[str] = []
    rest = text
    while len(rest) > longest:
        kept = rest[:longest]
        for mark in ("\n", " "):
            end = kept.rfind(mark)
            if end > longest // 2:
                kept = kept[:end]
                break
        if kept.rfind("\x02") > kept.rfind("\x03"):  # Don't cut a reference.
            kept = kept[: kept.rfind("\x02")] or kept
        rest = rest[len(kept) :].lstrip("\n")
        fence = _open_fence(kept)
        if fence:
            kept += f"\n{fence.strip().rstrip(_INFO)}"
            rest = f"{fence}\n{rest}"
        results.append(kept)
    return [*results, rest]


_INFO: Final = "".join(chr(code) for code in range(33, 127) if chr(code) not in "`~") + " "
"""Characters allowed in a language after a fence."""


def _open_fence(text: str) -> str:
    """Return the line that begins the block of code where the text ends; empty outside code."""
    opened = ""
    for line in text.split("\n"):
        match = _FENCE.match(line.strip())
        if match is None:
            continue
        if not opened and match.end() == len(line.strip()):
            opened = line.strip()[:80]
        elif opened and line.strip().startswith(opened[:3]) and not match[2].strip():
            opened = ""
    return opened
