"""Formulas in TeX, laid out by KaTeX.

Where KaTeX is missing, and for what goes beyond a message's budget, MathML that browsers show by
themselves stands in the same structure, with the source in the place of KaTeX's layout.
"""

import html
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Final
from xml.etree.ElementTree import Element

from markdown_it.rules_inline import StateInline

from tertulia.markup import katex
from tertulia.markup.elements import element, literal, opened
from tertulia.markup.page import Formula, Layout, made, page_of

logger = logging.getLogger("tertulia.markup")

NAMESPACE: Final = "http://www.w3.org/1998/Math/MathML"
MAX_SOURCE: Final = 4000
"""Characters of one formula; a longer one is shown as text."""
MAX_DEPTH: Final = 40
MAX_PREPARING_SECONDS: Final = 1.0
"""For the formulas of one message, in a thread."""
MAX_KEPT: Final = 16 * 1024 * 1024
"""Characters of layouts that are kept, for when the formula is shown again."""
_ATTRIBUTES: Final = frozenset(
    {
        *("accent", "accentunder", "close", "columnalign", "columnlines", "columnspacing", "depth"),
        *("display", "displaystyle", "fence", "form", "height", "largeop", "linethickness"),
        *("lspace", "mathbackground", "mathcolor", "mathsize", "mathvariant", "maxsize", "minsize"),
        *("movablelimits", "notation", "open", "rowlines", "rowspacing", "rspace", "scriptlevel"),
        *("separator", "stretchy", "voffset", "width"),
    }
)
ALLOWED: Final = frozenset(
    {
        *("menclose", "mfenced", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded"),
        *("mphantom", "mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup"),
        *("mtable", "mtd", "mtext", "mtr", "munder", "munderover", "none", "mprescripts"),
    }
)
"""The elements that a formula is made of, beside `math`, `semantics` and `annotation`."""
_VALUE: Final = re.compile(r"[\w.,+\-#% ()\[\]{}|/\\<>\u2016\u2308-\u230b\u27e8\u27e9]{0,60}")
_INLINE: Final = re.compile(r"\$\$(?P<tex>[^\n_$](?:\\\$|[^\n$])*)\$\$(?!\$)")
_DEFINES: Final = re.compile(r"\\(?:(?:re)?newcommand|def|let|gdef|edef|href|class|style|verb)\b")


def inline(state: StateInline, silent: bool) -> bool:
    """`$$formula$$`."""
    if not state.src.startswith("$$", state.pos):
        return False
    if state.pos and state.src[state.pos - 1] == "$":
        return False
    match = _INLINE.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        tex = match["tex"]
        shown = formula(tex, page_of(state).layout, display=False)
        made(state, _wrong(f"$${tex}$$") if shown is None else shown)
    state.pos = match.end()
    return True


def block(source: str, budget: Layout) -> str:
    """A block of formulas: empty lines part them."""
    shown: list[str] = []
    for tex in _parts(source):
        found = formula(tex, budget, display=True)
        shown.append(
            _wrong(tex) if found is None else element("span", {"class": "katex-display"}, found)
        )
    return element("p", {}, "\n".join(shown))


def _parts(source: str) -> list[str]:
    parts = re.split(r"\n\s*\n", source.strip("\n"))
    return [part.strip() for part in parts if part.strip()]


def _wrong(text: str) -> str:
    return element("span", {"class": "tex-error"}, literal(text))


def lay_out(wanted: Sequence[Formula]) -> None:
    """Lay these formulas out, so that rendering a message finds them. For a thread."""
    budget = Layout(seconds=MAX_PREPARING_SECONDS)
    for tex, display in wanted:
        formula(tex, budget, display=display)


def formula(tex: str, budget: Layout, *, display: bool) -> str | None:
    """The formula; None where it is wrong, or too long or too deep to be shown."""
    if len(tex) > MAX_SOURCE:
        return None
    if budget.wanted is not None:
        if (tex, display) not in _layouts and katex.is_installed():
            budget.wanted.append((tex, display))
        return None
    if not budget.is_spent():
        begun = time.monotonic()
        try:
            found = _layouts.shown(tex, display)
        except katex.Missing:
            pass
        else:
            budget.spend(time.monotonic() - begun, len(found or ""))
            return found
    return _by_itself(tex, display)


class _Layouts:
    """Formulas as KaTeX shows them. Threads may ask at once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Formula, str | None] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def __contains__(self, key: Formula) -> bool:
        return key in self._kept

    def shown(self, tex: str, display: bool) -> str | None:
        """The formula without the frame that sets a block apart. Raises katex.Missing."""
        key = (tex, display)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = katex.formula(tex, display=display)
        if found is not None and display:
            found = found.removeprefix(_DISPLAY).removesuffix("</span>")
        with self._lock:
            if key not in self._kept:
                self._kept[key] = found
                self._size += _size(tex, found)
            while self._size > MAX_KEPT:
                (old, _), gone = self._kept.popitem(last=False)
                self._size -= _size(old, gone)
        return found


def _size(tex: str, found: str | None) -> int:
    return len(tex) + len(found or "") + 100


_DISPLAY: Final = opened("span", {"class": "katex-display"})
_layouts: Final = _Layouts()


@lru_cache(maxsize=500)
def _by_itself(tex: str, display: bool) -> str | None:
    """The formula without KaTeX."""
    mathml = _mathml(tex, display)
    if mathml is None:
        return None
    attributes = f' xmlns="{NAMESPACE}"' + (' display="block"' if display else "")
    source = literal(tex)
    math = (
        f"<math{attributes}><semantics>{mathml}"
        f'<annotation encoding="application/x-tex">{source}</annotation></semantics></math>'
    )
    visible = element("span", {"class": "katex-html", "aria-hidden": "true"}, source)
    return element(
        "span",
        {"class": "katex"},
        element("span", {"class": "katex-mathml"}, math) + visible,
    )


def _mathml(tex: str, display: bool) -> str | None:
    from latex2mathml.converter import Converter  # Reading its symbols takes a moment.

    if _DEFINES.search(tex) or not _is_balanced(tex):
        return None
    try:
        found = Converter(display="block" if display else "inline").convert_to_element(tex)
        return "".join(_shown(child, 0) for child in found)
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration, RuntimeError):
        return None
    except Exception as error:
        # Its own errors, one for each kind of wrong formula, have nothing else in common.
        if not type(error).__module__.startswith("latex2mathml"):
            logger.exception("a formula could not be read")
        return None


def _is_balanced(tex: str) -> bool:
    """Whether the braces are, and are not too deep."""
    depth = 0
    for sign in re.findall(r"\\.|[{}]", tex, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if not 0 <= depth <= MAX_DEPTH:
            return False
    return depth == 0


def _shown(node: Element, depth: int) -> str:
    if node.tag not in ALLOWED or depth > MAX_DEPTH * 3:
        raise ValueError("a formula has an element that is not allowed")
    attributes = "".join(
        f' {name}="{literal(value)}"'
        for name, value in node.attrib.items()
        if name in _ATTRIBUTES and _VALUE.fullmatch(value)
    )
    text = html.unescape(node.text or "")
    if not len(node) and text.startswith("\\"):
        raise ValueError("a formula has a command that is not known")
    inner = literal(text) + "".join(_shown(child, depth + 1) for child in node)
    return f"<{node.tag}{attributes}>{inner}</{node.tag}>"
