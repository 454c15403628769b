"""Blocks of code, coloured by their language.

Colouring (`coloured`) runs in a worker: a grammar can be made to try two to the power of what it
reads within one word.
"""

import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tertulia.markup.elements import escaped, open_tag

# Pygments is loaded where the first block of code is: reading it takes a moment.
if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]  # it comes without types

MAX_SECONDS: Final = 0.2
"""Of the processor, for one block: what takes longer, a word being as long as it may, gives up by
itself, and its process goes on."""
_PLAIN: Final = frozenset({"", "text", "none"})
"""Words after a fence that are no language."""
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
        *("Protocol Buffer", "Python", "Python Traceback", "Python console session", "S", "Racket"),
        *("Ruby", "Rust", "SCSS", "SQL", "Sass", "Scala", "Scheme", "Smalltalk", "Solidity"),
        *("Swift", "TOML", "Tcl", "TeX", "Terraform", "TypeScript", "vhdl", "VimL", "Vue", "XML"),
        *("YAML", "Zig", "systemverilog", "verilog"),
    }
)
"""The languages that are coloured: those that many use. Every other grammar is one more that could
take its time with code that was written to make it do so."""


def block(source: str, language: str, default: str, highlight: Callable[[str, str], str]) -> str:
    """A block of code. `default` is the language where none is named, and `colour` makes HTML of
    the code by the name of a language that is coloured."""
    word = language or default
    if word.lower() in _PLAIN:
        return _block(None, escaped(source))
    name = _names().get("tex" if word.lower() in _TEX else word.lower(), word)
    return _block(
        name, highlight(source, name) if source and name in HIGHLIGHTED else escaped(source)
    )


def _block(name: str | None, html: str) -> str:
    attributes = {"class": "codehilite", "data-code-language": name}
    return (
        f"{open_tag('div', attributes)}{open_tag('pre')}{open_tag('span')}</span>"
        f"{open_tag('code')}{html}</code></pre></div>"
    )


@cache
def _names() -> Mapping[str, str]:
    """What each language is called, by each of its aliases."""
    from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]  # as above

    return {
        alias.lower(): name
        for name, aliases, _, _ in get_all_lexers(plugins=False)
        for alias in (*aliases, name)
    }


@cache
def _lexer(name: str) -> "Lexer | None":
    from pygments.lexers import find_lexer_class

    found = find_lexer_class(name) if name in HIGHLIGHTED else None
    return None if found is None else found(stripnl=False, ensurenl=True)


def load(_source: str, name: str) -> None:
    """Read the language's grammar."""
    _lexer(name)


def highlighted(source: str, name: str) -> str:
    """The code with elements for its colours, if that does not take too long."""
    lexer = _lexer(name)
    if lexer is None:
        return escaped(source)
    until = time.thread_time() + MAX_SECONDS
    parts: list[str] = []
    # Neighbours of one colour are one element, and no element goes on in the next line.
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
    """The short name of a kind of word, or of the kind that it is one of."""
    from pygments.token import STANDARD_TYPES  # type: ignore[import-untyped]  # as above

    while token not in STANDARD_TYPES:
        token = token.parent
    name: str = STANDARD_TYPES[token]
    return name
