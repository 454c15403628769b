"""Blocks of code, and their syntax highlighting.

`highlighted` runs in a worker: code can be written so that a grammar takes exponential time.
"""

import re
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tertulia.markup.elements import escaped, open_tag

# Pygments is imported with the first block of code: it takes a moment.
if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]  # it comes without types

MAX_SECONDS: Final = 0.2
"""CPU time for one block. It is checked between tokens, so that most slow code gives up here, and
its worker lives on."""
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
        *("PHP", "Perl", "PostgreSQL SQL dialect", "PowerShell", "Prolog", "Properties"),
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
"""The languages that are highlighted: common ones. Every further grammar is one more that could be
made slow."""


def is_language(word: str) -> bool:
    """Whether it is the name of a language of code."""
    return word.lower() in _PLAIN | _TEX or word.lower() in _names()


def block(source: str, language: str, default: str, highlight: Callable[[str, str], str]) -> str:
    """A block of code as HTML. `default` is the language where none is named; `highlight` takes
    code and the name of one of the `HIGHLIGHTED` languages. Empty lines around it are left out."""
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
    """The language of a program that says in its first line what runs it, if it is highlighted."""
    found = _SHEBANG.match(source)
    name = _names().get(found[1].lower()) if found else None
    return name if name in HIGHLIGHTED else None


def _block(name: str | None, html: str) -> str:
    attributes = {"class": "codehilite", "data-code-language": name}
    return (
        f"{open_tag('div', attributes)}{open_tag('pre')}{open_tag('span')}</span>"
        f"{open_tag('code')}{html}</code></pre></div>"
    )


@cache
def _names() -> Mapping[str, str]:
    """The names of all languages, by their aliases in lower case."""
    from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]  # as above

    return {
        alias.lower(): name
        for name, aliases, _, _ in get_all_lexers(plugins=False)
        for alias in (*aliases, name)
    }


@cache
def _lexer(name: str, **options: bool) -> "Lexer | None":
    from pygments.lexers import find_lexer_class

    found = find_lexer_class(name) if name in HIGHLIGHTED else None
    return None if found is None else found(stripnl=False, ensurenl=True, **options)


def load(_source: str, name: str) -> None:
    """Load the language's grammar, before the time of the code is counted."""
    _lexer(name)


def highlighted(source: str, name: str) -> str:
    """The code with elements for highlighting; plain if that takes longer than `MAX_SECONDS`."""
    # PHP begins with its mark, or with PHP.
    lexer = _lexer(name, startinline=True) if name == "PHP" and "<?" not in source else _lexer(name)
    if lexer is None:
        return escaped(source)
    until = time.thread_time() + MAX_SECONDS
    parts: list[str] = []
    # Neighbouring tokens of one class share an element, and no element spans lines.
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
    """The CSS class of a token's type, or of the nearest type above it that has one."""
    from pygments.token import STANDARD_TYPES  # type: ignore[import-untyped]  # as above

    while token not in STANDARD_TYPES:
        token = token.parent
    name: str = STANDARD_TYPES[token]
    return name
