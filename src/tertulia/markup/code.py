"""Code blocks and syntax highlighting.

`highlighted` runs in a worker, because some grammars take exponential time for crafted code.
"""

import re
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tertulia.markup.elements import escaped, open_tag

# Pygments is imported with the first code block, because importing it takes a moment.
if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]  # it comes without types

MAX_SECONDS: Final = 0.2
"""CPU time per code block. It's checked between tokens, so that most slow code is stopped without
ending its worker."""
_PLAIN: Final = frozenset({"", "text", "none"})
"""Words after a fence that mean no language."""
_SHEBANG: Final = re.compile(r"(?:#! ?(?:/[\w./-]*/)?(?:env )?|:::+)([\w#.+-]+)")
_TEX: Final = frozenset({"latex", "tex"})
HIGHLIGHTED: Final = frozenset(
    {
        *("ActionScript", "Ada", "AppleScript", "Awk", "Bash", "Batchfile", "C"),
        *("C#", "C++", "CMake", "CSS", "Clojure", "CoffeeScript", "Common Lisp", "Cython", "D"),
        *("Dart", "Diff", "Docker", "Elixir", "Elm", "Erlang", "F#", "Fish", "Fortran", "GLSL"),
        *("Go", "GraphQL", "Groovy", "HTML", "HTTP", "Haskell", "INI", "JSON", "JSX", "Java"),
        *("JavaScript", "Julia", "Kotlin", "LessCss", "LLVM", "Lua", "Makefile", "Matlab"),
        *("MySQL", "NASM", "Nginx configuration file", "Nix", "Objective-C", "OCaml"),
        *(
            "PHP",
            "CSS+PHP",
            "HTML+PHP",
            "JavaScript+PHP",
            "XML+PHP",
            "Perl",
            "PostgreSQL SQL dialect",
            "PowerShell",
            "Prolog",
            "Properties",
        ),
        *(
            "Protocol Buffer",
            "Python",
            "Python 2.x",
            "Python Traceback",
            "Python console session",
            "S",
            "Racket",
        ),
        *("Ruby", "Rust", "SCSS", "SQL", "Sass", "Scala", "Scheme", "Smalltalk", "Solidity"),
        *("Swift", "TOML", "Tcl", "TeX", "Terraform", "TypeScript", "vhdl", "VimL", "Vue", "XML"),
        *("YAML", "Zig", "systemverilog", "verilog"),
    }
)
"""The languages that are highlighted. Only common ones, because crafted code could slow down each
grammar."""


def is_language(word: str) -> bool:
    return word.lower() in _PLAIN | _TEX or word.lower() in _names()


def block(source: str, language: str, default: str, highlight: Callable[[str, str], str]) -> str:
    """Return a code block as HTML. `highlight` takes code and the name of a `HIGHLIGHTED`
    language."""
    source = f"{within}\n" if (within := source.strip("\n")) else ""
    word = language or default
    if not word and (name := _interpreter(source)):
        return _block(None, highlight(source, name))
    if word.lower() in _PLAIN:
        return _block(None, escaped(source))
    name = _names().get("tex" if word.lower() in _TEX else word.lower(), word)
    return _block(
        name, highlight(source, name) if source and name in HIGHLIGHTED else escaped(source)
    )


def _interpreter(source: str) -> str | None:
    """Return the highlighted language that the first line's shebang names, or None."""
    match = _SHEBANG.match(source)
    name = _names().get(match[1].lower()) if match else None
    return name if name in HIGHLIGHTED else None


def _block(name: str | None, html: str) -> str:
    attributes = {"class": "codehilite", "data-code-language": name}
    return (
        f"{open_tag('div', attributes)}{open_tag('pre')}{open_tag('span')}</span>"
        f"{open_tag('code')}{html}</code></pre></div>"
    )


@cache
def _names() -> Mapping[str, str]:
    """Return all languages by lowercase alias."""
    from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]  # as above

    return {
        alias.lower(): name
        for name, aliases, _, _ in get_all_lexers(plugins=False)
        for alias in (*aliases, name)
    }


@cache
def _lexer(name: str, **options: bool) -> "Lexer | None":
    from pygments.lexers import find_lexer_class

    result = find_lexer_class(name) if name in HIGHLIGHTED else None
    return None if result is None else result(stripnl=False, ensurenl=True, **options)


def load(_source: str, name: str) -> None:
    """Load the grammar before the time limit of the code starts."""
    _lexer(name)


def highlighted(source: str, name: str) -> str:
    """Highlight the code, or only escape it if that takes longer than `MAX_SECONDS`."""
    # PHP code begins with its tag, or without it.
    lexer = _lexer(name, startinline=True) if name == "PHP" and "<?" not in source else _lexer(name)
    if lexer is None:
        return escaped(source)
    until = time.thread_time() + MAX_SECONDS
    parts: list[str] = []
    # Adjacent tokens of one class share an element, and no element spans several lines.
    kind, text = "", ""
    for token, value in lexer.get_tokens(source):
        if time.thread_time() > until:
            return escaped(source)
        following = _class(token)
        if following == kind:
            text += value
            continue
        parts.append(_spans(kind, text))
        kind, text = following, value
    parts.append(_spans(kind, text))
    return "".join(parts)


def _spans(kind: str, text: str) -> str:
    if not kind:
        return escaped(text)
    tag = open_tag("span", {"class": kind})
    return "\n".join(f"{tag}{escaped(piece)}</span>" if piece else "" for piece in text.split("\n"))


def _class(token: Any) -> str:
    """Return the CSS class of a token type, or of its nearest ancestor with one."""
    from pygments.token import STANDARD_TYPES  # type: ignore[import-untyped]  # as above

    while token not in STANDARD_TYPES:
        token = token.parent
    name: str = STANDARD_TYPES[token]
    return name
