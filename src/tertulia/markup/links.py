"""Links: `[text](address)`, and bare addresses."""

import re
from dataclasses import dataclass
from typing import Final

from linkify_it.tlds import TLDS  # type: ignore[import-untyped]  # it comes without types
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from tertulia.markup.addresses import safe
from tertulia.markup.context import RenderContext, add_html, context_of, delimiters_of
from tertulia.markup.elements import element, escaped

_SPACE: Final = r"[ \t]*+(?:\n[ \t]*+)?+"
_TARGET: Final = re.compile(
    rf"""\({_SPACE}
    (?: <(?P<pointed>[^<>\n]*+)>
      | (?P<plain>
          (?: [^\s()\\]++ | \\[^\n] | \((?: [^\s()\\]++ | \\[^\n] | \([^\s()\\]*+\) )*+\) )*+
        )
    )
    (?: [ \t\n]++ (?: "(?P<double>[^"]*+)" | '(?P<single>[^']*+)' ) )?+
    {_SPACE}\)""",
    re.VERBOSE,
)
"""What follows the text of a link: an address, with up to two levels of balanced parentheses, and
an optional title."""
_SCHEME: Final = re.compile(r"(?:^|(?<=[^A-Za-z0-9+.-]))(https?|ftp)$", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"(?<![A-Za-z0-9+.-])(?:https?|ftp)://[^\s<>]+", re.IGNORECASE)
_REST: Final = re.compile(r"://[^\s<>]+")
_NOT_TLDS: Final = frozenset({"py", "md"})
"""Top-level domains that are more common as endings of file names."""
_TLDS: Final = frozenset(tld.lower() for tld in TLDS) - _NOT_TLDS
_HOST: Final = re.compile(
    r"""(?<![\w.@/:+-])
    (?: (?P<name>[\w.+-]+)@ )?
    (?P<host>(?: [\w] [\w-]* \. )+ (?P<tld>\w{2,30}))
    (?![\w@-])
    (?P<rest>(?: :[0-9]{1,5} )? (?: [/?#][^\s<>]* )?)""",
    re.VERBOSE,
)
_DOT_INSIDE: Final = re.compile(r"[\w-]\.\w")
"""What every host has, and most sentences do not."""
_PUNCTUATION: Final = frozenset(".,;:!?'\"*_~")
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}


def link(state: StateInline, silent: bool) -> bool:
    """`[text](address)` and `[text](address "title")`."""
    if state.src[state.pos] != "[" or state.linkLevel:
        return False
    found = target(state, state.pos)
    if found is None:
        return False
    address, title, label_end, end = found
    context = context_of(state)
    href = safe(address, context.site)
    if href is None:
        return False
    if not silent:
        maximum = state.posMax
        state.pos, state.posMax = state.pos + 1, label_end
        token = state.push("link_open", "a", 1)
        token.attrs = {"href": href} if title is None else {"href": href, "title": title}
        token.meta = {"text": state.src[state.pos : label_end]}
        state.linkLevel += 1
        if state.src[state.pos : label_end].strip():
            state.md.inline.tokenize(state)
        else:
            add_html(state, escaped(address))  # There would be nothing to see.
        state.linkLevel -= 1
        state.push("link_close", "a", -1)
        state.posMax = maximum
        context.has_link = True
    state.pos = end
    return True


def target(state: StateInline, bracket: int) -> tuple[str, str | None, int, int] | None:
    """Of the link whose text begins at this bracket: its address, its title, the end of its text,
    and its own end. None where there is no link."""
    label_end = delimiters_of(state).closing.get(bracket)
    if label_end is None or label_end >= state.posMax:
        return None
    match = _TARGET.match(state.src, label_end + 1, state.posMax)
    if match is None:
        return None
    pointed = match["pointed"]
    address = match["plain"] if pointed is None else pointed
    title = match["double"] if match["double"] is not None else match["single"]
    return re.sub(r"\\([()\\])", r"\1", address), title or None, label_end, match.end()


def address(state: StateInline, silent: bool) -> bool:
    """A bare address with a scheme. The rule runs at the colon: the scheme is pending text by
    then."""
    if silent or state.linkLevel or not state.src.startswith("://", state.pos):
        return False
    begin = max(0, state.pos - 6)
    scheme = _SCHEME.search(state.src[begin : state.pos])
    rest = _REST.match(state.src, state.pos, state.posMax)
    if scheme is None or rest is None or not state.pending.endswith(scheme[1]):
        return False
    text = scheme[1] + trimmed(rest[0])
    context = context_of(state)
    href = safe(text, context.site)
    if href is None:
        return False
    state.pending = state.pending[: -len(scheme[1])]
    add_html(state, bare(context, href, text), bare=href)
    state.pos += len(text) - len(scheme[1])
    return True


def bare(context: RenderContext, href: str, text: str) -> str:
    """A link whose text is its address."""
    context.has_link = True
    return element("a", {"href": href}, escaped(text))


def trimmed(text: str) -> str:
    """The address without the punctuation of the sentence around it. Closing brackets are part of
    it if they are opened in it."""
    surplus = {
        closing: text.count(closing) - text.count(opening) for closing, opening in _PAIRS.items()
    }
    end = len(text)
    while end:
        last = text[end - 1]
        if surplus.get(last, 0) > 0:
            surplus[last] -= 1
        elif last not in _PUNCTUATION:
            break
        end -= 1
    return text[:end]


@dataclass(frozen=True)
class LinkMatch:
    """A part of a text that is a link."""

    begin: int
    end: int
    url: str


def addresses(text: str) -> list[LinkMatch]:
    """The addresses with a scheme in a text."""
    found: list[LinkMatch] = []
    for match in _ADDRESS.finditer(text):
        whole = trimmed(match[0])
        href = safe(whole)
        if href is not None:
            found.append(LinkMatch(match.start(), match.start() + len(whole), href))
    return found


def hosts(context: RenderContext, text: str) -> list[Token | str] | None:
    """The text split at its hosts and mail addresses, which become links; None without any."""
    if _DOT_INSIDE.search(text) is None:
        return None
    parts: list[Token | str] = []
    done = 0
    for match in _HOST.finditer(text):
        if match["tld"].lower() not in _TLDS or (match["name"] and match["rest"][:1] in {"/"}):
            continue
        found = trimmed(match[0])
        href = f"mailto:{found}" if match["name"] else f"http://{found}"
        if safe(href) is None:
            continue
        parts.append(text[done : match.start()])
        token = Token("html", "", 0)
        token.content = bare(context, href, found)
        token.meta = {"bare": href}
        parts.append(token)
        done = match.start() + len(found)
    if not parts:
        return None
    parts.append(text[done:])
    return parts
