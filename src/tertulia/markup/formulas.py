"""Formulas in TeX: finding them in a message."""

import re
from typing import Final

from markdown_it.rules_inline import StateInline

from tertulia.markup.context import add_html, context_of
from tertulia.markup.elements import element, escaped
from tertulia.markup.worker_rendering import ExpensiveParts

MAX_SOURCE: Final = 4000
"""Characters of one formula; a longer one is shown as text."""
_INLINE: Final = re.compile(r"\$\$(?P<tex>[^\n_$](?:\\\$|[^\n$])*)\$\$(?!\$)")


def inline(state: StateInline, silent: bool) -> bool:
    """`$$formula$$`."""
    if not state.src.startswith("$$", state.pos):
        return False
    if state.pos and state.src[state.pos - 1] == "$":
        return False
    match = _INLINE.match(state.src, state.pos, state.posMax)
    if match is None or context_of(state).is_plain:
        return False
    if not silent:
        tex = match["tex"]
        shown = _formula(tex, context_of(state).expensive, display=False)
        add_html(state, _wrong(f"$${tex}$$") if shown is None else shown)
    state.pos = match.end()
    return True


def block(source: str, expensive: ExpensiveParts) -> str:
    """A block of formulas, which are separated by empty lines."""
    shown: list[str] = []
    for tex in _parts(source):
        found = _formula(tex, expensive, display=True)
        shown.append(
            _wrong(tex) if found is None else element("span", {"class": "katex-display"}, found)
        )
    return element("p", {}, "\n".join(shown))


def _parts(source: str) -> list[str]:
    parts = re.split(r"\n\s*\n", source.strip("\n"))
    return [part.strip() for part in parts if part.strip()]


def _formula(tex: str, expensive: ExpensiveParts, *, display: bool) -> str | None:
    return None if len(tex) > MAX_SOURCE else expensive.formula(tex, display=display)


def _wrong(text: str) -> str:
    return element("span", {"class": "tex-error"}, escaped(text))
