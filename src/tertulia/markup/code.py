"""Blocks of code, coloured by their language."""

import time
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tertulia.markup.elements import literal, opened

# Pygments is loaded where the first block of code is: reading it takes a moment.
if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]  # it comes without types

MAX_SECONDS: Final = 0.2
"""Of the processor, for colouring the code of one message; a usual block takes a two-hundredth of
that. Some grammars take the square of what they read, where it was written to make them do so: such
code is shown without colours."""
_PLAIN: Final = frozenset({"", "text", "none"})
"""Words after a fence that are no language."""
_TEX: Final = frozenset({"latex", "tex"})
COLOURED: Final = frozenset(
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


class Budget:
    """How long the code of one message may take."""

    def __init__(self) -> None:
        self._until: float | None = None

    def is_spent(self) -> bool:
        """Whether no more is to be coloured. It begins when this is first asked."""
        now = time.thread_time()
        if self._until is None:
            self._until = now + MAX_SECONDS
        return now > self._until


def block(source: str, language: str, default: str, budget: Budget) -> str:
    """A block of code. `default` is the language where none is named."""
    word = language or default
    if word.lower() in _PLAIN:
        return _block(None, literal(source))
    name = _names().get("tex" if word.lower() in _TEX else word.lower(), word)
    return _block(name, _coloured(source, name, budget))


def _block(name: str | None, html: str) -> str:
    attributes = {"class": "codehilite", "data-code-language": name}
    return (
        f"{opened('div', attributes)}{opened('pre')}{opened('span')}</span>"
        f"{opened('code')}{html}</code></pre></div>"
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

    found = find_lexer_class(name) if name in COLOURED else None
    return None if found is None else found(stripnl=False, ensurenl=True)


def _coloured(source: str, name: str, budget: Budget) -> str:
    lexer = _lexer(name) if name in COLOURED else None
    if lexer is None or not source:
        return literal(source)
    parts: list[str] = []
    # Neighbours of one colour are one element, and no element goes on in the next line.
    kind, text = "", ""
    for token, value in lexer.get_tokens(source):
        if budget.is_spent():
            return literal(source)
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
        return literal(text)
    tag = opened("span", {"class": kind})
    return "\n".join(f"{tag}{literal(piece)}</span>" if piece else "" for piece in text.split("\n"))


def _class(token: Any) -> str:
    """The short name of a kind of word, or of the kind that it is one of."""
    from pygments.token import STANDARD_TYPES  # type: ignore[import-untyped]  # as above

    while token not in STANDARD_TYPES:
        token = token.parent
    name: str = STANDARD_TYPES[token]
    return name
