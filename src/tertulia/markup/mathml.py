"""Formulas as MathML, which browsers can lay out: used where KaTeX is missing."""

import html
import logging
import re
from typing import Final
from xml.etree.ElementTree import Element

from tertulia.markup.elements import element, escaped

logger = logging.getLogger("tertulia.markup")

NAMESPACE: Final = "http://www.w3.org/1998/Math/MathML"
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
"""Allowed elements, beside `math`, `semantics` and `annotation`."""
_VALUE: Final = re.compile(r"[\w.,+\-#% ()\[\]{}|/\\<>\u2016\u2308-\u230b\u27e8\u27e9]{0,60}")
_DEFINES: Final = re.compile(r"\\(?:(?:re)?newcommand|def|let|gdef|edef|href|class|style|verb)\b")


def formula(tex: str, *, display: bool) -> str | None:
    """The formula as HTML; None where it is wrong."""
    mathml = _mathml(tex, display)
    return None if mathml is None else _framed(tex, mathml, display=display)


def source(tex: str, *, display: bool) -> str:
    """The formula's source, in the same elements as a rendered formula."""
    return _framed(tex, f"<mrow><mtext>{escaped(tex)}</mtext></mrow>", display=display)


def _framed(tex: str, mathml: str, *, display: bool) -> str:
    attributes = f' xmlns="{NAMESPACE}"' + (' display="block"' if display else "")
    written = escaped(tex)
    math = (
        f"<math{attributes}><semantics>{mathml}"
        f'<annotation encoding="application/x-tex">{written}</annotation></semantics></math>'
    )
    visible = element("span", {"class": "katex-html", "aria-hidden": "true"}, written)
    return element(
        "span",
        {"class": "katex"},
        element("span", {"class": "katex-mathml"}, math) + visible,
    )


def _mathml(tex: str, display: bool) -> str | None:
    from latex2mathml.converter import Converter  # The import takes a moment.

    if _DEFINES.search(tex) or not _is_balanced(tex):
        return None
    try:
        found = Converter(display="block" if display else "inline").convert_to_element(tex)
        return "".join(_shown(child, 0) for child in found)
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration, RuntimeError):
        return None
    except Exception as error:
        # Its own errors for wrong formulas have no common base class.
        if not type(error).__module__.startswith("latex2mathml"):
            logger.exception("a formula could not be read")
        return None


def _is_balanced(tex: str) -> bool:
    """Whether the braces are balanced, and not nested too deeply."""
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
        f' {name}="{escaped(value)}"'
        for name, value in node.attrib.items()
        if name in _ATTRIBUTES and _VALUE.fullmatch(value)
    )
    text = html.unescape(node.text or "")
    if not len(node) and text.startswith("\\"):
        raise ValueError("a formula has a command that is not known")
    inner = escaped(text) + "".join(_shown(child, depth + 1) for child in node)
    return f"<{node.tag}{attributes}>{inner}</{node.tag}>"
