"""Formulas rendered by KaTeX in an embedded JavaScript engine, or else as MathML.

The script is part of the web client (`tertulia/web/katex.min.js`). Without it or the engine,
`formula` raises KatexMissing. KaTeX's output is parsed, and only the elements and attributes listed
here are kept.
"""

import html
import json
import logging
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final
from xml.etree.ElementTree import Element

from tertulia.markup.elements import element, escaped, open_tag

if TYPE_CHECKING:
    import quickjs  # type: ignore[import-untyped]  # it comes without types
    from lxml import etree  # type: ignore[import-untyped]  # as above

logger = logging.getLogger("tertulia.markup")

MAX_SECONDS: Final = 0.3
"""CPU time per formula. A usual formula takes a thousandth of it."""
_MAX_BYTES: Final = 128 * 1024 * 1024
_MAX_STACK: Final = 2 * 1024 * 1024
"""The stack of KaTeX, in bytes. The stack of the engine's thread is four times as large."""

# The result is JSON: the engine returns long strings in pieces, which its wrapper doesn't join.
_SHOW: Final = """
function show(tex, display) {
  try {
    return JSON.stringify(katex.renderToString(tex, {
      displayMode: display, trust: false, strict: "ignore", throwOnError: true,
      maxExpand: 1000, maxSize: 30,
    }));
  } catch (error) {
    return "null";
  }
}
"""

_MATHML: Final = "http://www.w3.org/1998/Math/MathML"
_SVG: Final = "http://www.w3.org/2000/svg"
NAMESPACES: Final[Mapping[str, str]] = {"math": _MATHML, "svg": _SVG}
_CLASSES: Final = re.compile(r"[\w -]{1,200}")
_NUMBERS: Final = re.compile(r"[\w.%+ -]{0,60}")
_OUTLINE: Final = re.compile(r"[MmLlHhVvCcSsQqTtAaZz0-9., +\n-]*")
_TRUE: Final = re.compile("true")
_STYLE: Final = re.compile(
    r"(?:(?:background-color|border(?:-(?:top|right|bottom))?-(?:color|style|width)|border-color"
    r"|bottom|color|height|left|margin(?:-(?:left|right|top))?|min-width|padding-left|position"
    r"|text-shadow|top|vertical-align|width):[\w.%# -]{1,60};)*"
)
LAYOUT: Final[Mapping[str, Mapping[str, re.Pattern[str]]]] = {
    "span": {"aria-hidden": _TRUE, "class": _CLASSES, "style": _STYLE},
    "svg": {
        "height": _NUMBERS,
        "preserveAspectRatio": _NUMBERS,
        "viewBox": _NUMBERS,
        "width": _NUMBERS,
    },
    "path": {"d": _OUTLINE},
    "line": dict.fromkeys(("stroke-width", "x1", "x2", "y1", "y2"), _NUMBERS),
}
"""Allowed elements of the layout, and patterns of their attributes."""
_WORD: Final = re.compile(r"[^<>\"'&\x00-\x1f]{0,60}")
MATHML: Final[Mapping[str, Mapping[str, re.Pattern[str]]]] = dict.fromkeys(
    (
        *("math", "semantics", "annotation", "menclose", "mfrac", "mi", "mn", "mo", "mover"),
        *("mpadded", "mphantom", "mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup"),
        *("msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover"),
    ),
    dict.fromkeys(
        (
            *("accent", "accentunder", "columnalign", "columnlines", "columnspacing", "depth"),
            *("display", "displaystyle", "encoding", "fence", "height", "largeop", "linebreak"),
            *("linethickness", "lspace", "mathbackground", "mathcolor", "mathsize"),
            *("mathvariant", "maxsize", "minsize", "notation", "rowlines", "rowspacing", "rspace"),
            *("scriptlevel", "separator", "stretchy", "valign", "voffset", "width"),
        ),
        _WORD,
    ),
)
"""Allowed elements of the MathML for screen readers."""


class KatexMissing(Exception):
    """KaTeX isn't installed."""


def formula(tex: str, *, display: bool) -> str | None:
    """Render the formula, or return None if it is invalid or takes too much time or memory.
    Raises KatexMissing."""
    show = _engine()
    if show is None:
        raise KatexMissing
    try:
        result = json.loads(show(tex, display, run_gc=False))
    except Exception as error:
        # The engine has one error class for exceeded time, exceeded memory, and everything else.
        logger.info("rendering a formula failed: %s", str(error).partition("\n")[0])
        return None
    return None if result is None else _cleaned(result)


@cache
def _engine() -> "quickjs.Function | None":
    try:
        import quickjs
    except ImportError:  # The engine isn't available for every platform.
        return None
    script = resources.files("tertulia").joinpath("web/katex.min.js")
    if not script.is_file():
        return None
    show = quickjs.Function("show", script.read_text("utf-8") + _SHOW, own_executor=True)
    show.set_memory_limit(_MAX_BYTES)
    show.set_max_stack_size(_MAX_STACK)
    show.set_time_limit(MAX_SECONDS)
    return show


def is_installed() -> bool:
    return _engine() is not None


def _cleaned(html: str) -> str | None:
    """Keep only allowed elements and attributes. Returns None for HTML that is nested too
    deeply."""
    from lxml import etree  # Imported only if there are formulas.

    for namespace in NAMESPACES.values():
        html = html.replace(f' xmlns="{namespace}"', "")
    # The parser stops at 256 levels of elements.
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        root = etree.fromstring(html.encode(), parser)
    except etree.XMLSyntaxError:
        return None
    return _shown(root, LAYOUT)


def _shown(node: "etree._Element", allowed: Mapping[str, Mapping[str, re.Pattern[str]]]) -> str:
    name = str(node.tag)
    if name == "math":
        allowed = MATHML
    if name not in allowed:
        logger.error("KaTeX returned an unknown element: %s", name)
        return ""
    attributes = "".join(
        f' {key}="{escaped(value)}"'
        for key, value in node.attrib.items()
        if key in allowed[name] and allowed[name][key].fullmatch(value)
    )
    if name in NAMESPACES:
        attributes = f' xmlns="{NAMESPACES[name]}"{attributes}'
    inner = escaped(node.text or "") + "".join(
        _shown(child, allowed) + escaped(child.tail or "") for child in node
    )
    return f"<{name}{attributes}>{inner}</{name}>"


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
"""Allowed elements, besides `math`, `semantics`, and `annotation`."""
_VALUE: Final = re.compile(r"[\w.,+\-#% ()\[\]{}|/\\<>\u2016\u2308-\u230b\u27e8\u27e9]{0,60}")
_DEFINES: Final = re.compile(r"\\(?:(?:re)?newcommand|def|let|gdef|edef|href|class|style|verb)\b")


def mathml_formula(tex: str, *, display: bool) -> str | None:
    """Render the formula, or return None if it is invalid."""
    mathml = _mathml(tex, display)
    return None if mathml is None else _framed(tex, mathml, display=display)


def formula_source(tex: str, *, display: bool) -> str:
    """Return the formula's source in the elements of a rendered formula."""
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
        result = Converter(display="block" if display else "inline").convert_to_element(tex)
        return "".join(_shown_of_mathml(child, 0) for child in result)
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration, RuntimeError):
        return None
    except Exception as error:
        # Its errors for invalid formulas have no common base class.
        if not type(error).__module__.startswith("latex2mathml"):
            logger.exception("parsing a formula failed")
        return None


def _is_balanced(tex: str) -> bool:
    """Return whether braces are balanced and not nested too deeply."""
    depth = 0
    for sign in re.findall(r"\\.|[{}]", tex, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if not 0 <= depth <= MAX_DEPTH:
            return False
    return depth == 0


def _shown_of_mathml(node: Element, depth: int) -> str:
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
    inner = escaped(text) + "".join(_shown_of_mathml(child, depth + 1) for child in node)
    return f"<{node.tag}{attributes}>{inner}</{node.tag}>"


_DISPLAY: Final = open_tag("span", {"class": "katex-display"})


def typeset(tex: str, display: bool) -> str | None:
    """Render the formula without the element around a block, or return None if it is invalid."""
    try:
        result = formula(tex, display=display)
    except KatexMissing:
        return mathml_formula(tex, display=display)
    if result is not None and display:
        result = result.removeprefix(_DISPLAY).removesuffix("</span>")
    return result


def load(_tex: str, _display: bool) -> None:
    """Load the renderer before the time limit of the formula starts."""
    if not is_installed():
        mathml_formula("x", display=False)
