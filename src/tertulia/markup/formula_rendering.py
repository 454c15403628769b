"""Rendering one formula: by KaTeX, or as MathML where KaTeX is missing.

It runs in a worker, since a formula may take any time.
"""

from typing import Final

from tertulia.markup import katex, mathml
from tertulia.markup.elements import open_tag

_DISPLAY: Final = open_tag("span", {"class": "katex-display"})


def typeset(tex: str, display: bool) -> str | None:
    """The formula as HTML, without the element around a block; None where it is wrong."""
    try:
        found = katex.formula(tex, display=display)
    except katex.Missing:
        return mathml.formula(tex, display=display)
    if found is not None and display:
        found = found.removeprefix(_DISPLAY).removesuffix("</span>")
    return found


def load(_tex: str, _display: bool) -> None:
    """Load the renderer, before the time of a formula is counted."""
    if not katex.is_installed():
        mathml.formula("x", display=False)
