"""A formula as it is shown: by KaTeX, or as MathML where that is missing.

What is here runs in a worker: there is no bound to what a formula takes.
"""

from typing import Final

from tertulia.markup import katex, mathml
from tertulia.markup.elements import open_tag

_DISPLAY: Final = open_tag("span", {"class": "katex-display"})


def typeset(tex: str, display: bool) -> str | None:
    """The formula without the frame that sets a block apart; None where it is wrong."""
    try:
        found = katex.formula(tex, display=display)
    except katex.Missing:
        return mathml.formula(tex, display=display)
    if found is not None and display:
        found = found.removeprefix(_DISPLAY).removesuffix("</span>")
    return found


def load(_tex: str, _display: bool) -> None:
    """Load what lays formulas out."""
    if not katex.is_installed():
        mathml.formula("x", display=False)
