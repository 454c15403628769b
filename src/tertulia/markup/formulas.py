"""Formulas in TeX, as MathML that browsers show by themselves.

The structure around it is that of KaTeX, which clients look for; in the part that KaTeX fills with
its own layout stands the source.
"""

import html
import logging
import re
from functools import lru_cache
from typing import Final
from xml.etree.ElementTree import Element

from markdown_it.rules_inline import StateInline

from tertulia.markup.elements import element, literal
from tertulia.markup.page import made

logger = logging.getLogger("tertulia.markup")

NAMESPACE: Final = "http://www.w3.org/1998/Math/MathML"
MAX_SOURCE: Final = 4000
"""Characters of one formula; a longer one is shown as text."""
MAX_DEPTH: Final = 40
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
        shown = formula(tex, display=False)
        made(state, _wrong(f"$${tex}$$") if shown is None else shown)
    state.pos = match.end()
    return True


def block(source: str) -> str:
    """A block of formulas: empty lines part them."""
    shown: list[str] = []
    for part in re.split(r"\n\s*\n", source.strip("\n")):
        tex = part.strip()
        if tex:
            found = formula(tex, display=True)
            shown.append(
                _wrong(tex) if found is None else element("span", {"class": "katex-display"}, found)
            )
    return element("p", {}, "\n".join(shown))


def _wrong(text: str) -> str:
    return element("span", {"class": "tex-error"}, literal(text))


@lru_cache(maxsize=2000)
def formula(tex: str, *, display: bool) -> str | None:
    """The formula; None where it is wrong, or too long or too deep to be shown."""
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

    if len(tex) > MAX_SOURCE or _DEFINES.search(tex) or not _is_balanced(tex):
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
