"""Links: `[text](address)`, bare URLs, and the organization's linkifiers."""

import asyncio
import logging
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from linkify_it.tlds import TLDS  # type: ignore[import-untyped]  # it comes without types
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from msgspec import Struct

from tertulia.domain.organization.linkifiers import between_words, pattern_options
from tertulia.markup.addresses import safe
from tertulia.markup.context import RenderContext, add_html, context_of, delimiters_of
from tertulia.markup.elements import element, escaped
from tertulia.model.organization import Linkifier
from tertulia.state.state import State

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
"""The part of a link after its text: a URL with up to two levels of balanced parentheses, and an
optional title."""
_SCHEME: Final = re.compile(r"(?:^|(?<=[^A-Za-z0-9+.-]))(https?|ftp)$", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"(?<![A-Za-z0-9+.-])(?:https?|ftp)://[^\s<>]+", re.IGNORECASE)
_REST: Final = re.compile(r"://[^\s<>]+")
_NOT_TLDS: Final = frozenset({"py", "md"})
"""Top-level domains that are more common as file extensions."""
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
"""Matches in every host, but in few sentences."""
_PUNCTUATION: Final = frozenset(".,;:!?'\"*_~")
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}


def link(state: StateInline, silent: bool) -> bool:
    """Parse `[text](address)` and `[text](address "title")`."""
    if state.src[state.pos] != "[" or state.linkLevel:
        return False
    result = link_target(state, state.pos)
    if result is None:
        return False
    address, title, label_end, end = result
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
            add_html(state, escaped(address))  # Otherwise, the link would be invisible.
        state.linkLevel -= 1
        state.push("link_close", "a", -1)
        state.posMax = maximum
        context.has_link = True
    state.pos = end
    return True


def link_target(state: StateInline, bracket: int) -> tuple[str, str | None, int, int] | None:
    """Return the URL, the title, the end of the text, and the end of the link whose text begins at
    the bracket; None if there's no link."""
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
    """Parse a bare URL with a scheme. The rule runs at the colon, when the scheme is pending
    text."""
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
    """Return a link whose text is its URL."""
    context.has_link = True
    return element("a", {"href": href}, escaped(text))


def trimmed(text: str) -> str:
    """Remove a sentence's punctuation from a URL's end. Closing brackets stay if they're opened in
    the URL."""
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
    """A linked part of a text."""

    begin: int
    end: int
    url: str


def addresses(text: str) -> list[LinkMatch]:
    """Find URLs with a scheme."""
    link_matches: list[LinkMatch] = []
    for match in _ADDRESS.finditer(text):
        whole = trimmed(match[0])
        href = safe(whole)
        if href is not None:
            link_matches.append(LinkMatch(match.start(), match.start() + len(whole), href))
    return link_matches


def hosts(context: RenderContext, text: str) -> list[Token | str] | None:
    """Link hosts and email addresses in the text. Return None without links."""
    if _DOT_INSIDE.search(text) is None:
        return None
    parts: list[Token | str] = []
    done = 0
    for match in _HOST.finditer(text):
        if match["tld"].lower() not in _TLDS or (match["name"] and match["rest"][:1] in {"/"}):
            continue
        result = trimmed(match[0])
        href = f"mailto:{result}" if match["name"] else f"http://{result}"
        if safe(href) is None:
            continue
        parts.append(text[done : match.start()])
        token = Token("html", "", 0)
        token.content = bare(context, href, result)
        token.meta = {"bare": href}
        parts.append(token)
        done = match.start() + len(result)
    if not parts:
        return None
    parts.append(text[done:])
    return parts


logger = logging.getLogger("tertulia.markup")

MAX_LINKS: Final = 200
"""The most links by linkifiers in one piece of text."""
MAX_MATCHES: Final = 1000
"""The most matches that are tried in one piece of text, including overlapping ones."""


_SET_SIZE: Final = 50
"""Linkifiers that are searched together. More would take too long to compile in one step."""
_KEPT: Final = 1000
"""Compiled patterns in the cache. It's large so that changing one linkifier doesn't affect the
others."""


class _Linkifiers(Struct, frozen=True):
    """An organization's linkifiers in order."""

    version: int
    """The version of the table of linkifiers."""
    defined: tuple[Linkifier, ...]
    sets: tuple[tuple[str, ...], ...]
    """Patterns in groups of `_SET_SIZE`."""

    def found_in(self, text: str) -> Iterator[int]:
        """Yield the indexes of linkifiers that match somewhere, regardless of word boundaries."""
        for number, patterns in enumerate(self.sets):
            search = _search_set(patterns)
            result = range(len(patterns)) if search is None else sorted(search.Match(text) or ())
            yield from (number * _SET_SIZE + index for index in result)


_last: _Linkifiers | None = None
"""A cache of one, because linkifiers rarely change."""


def _linkifiers(state: State) -> _Linkifiers:
    global _last
    if _last is None or _last.version != state.linkifiers.version:
        defined = tuple(state.linkifiers_in_order)
        patterns = [linkifier.pattern for linkifier in defined]
        begins = range(0, len(patterns), _SET_SIZE)
        sets = tuple(tuple(patterns[item : item + _SET_SIZE]) for item in begins)
        _last = _Linkifiers(state.linkifiers.version, defined, sets)
    return _last


@lru_cache(maxsize=_KEPT // _SET_SIZE)
def _search_set(patterns: tuple[str, ...]) -> Any:
    """Compile a search for any of the patterns, or return None if they're too complex together and
    must be tried individually."""
    import re2  # type: ignore[import-untyped]  # it comes without types

    search = re2.Set.SearchSet(pattern_options())
    try:
        for pattern in patterns:
            search.Add(pattern)
        search.Compile()
    except re2.error:
        return None
    return search


@lru_cache(maxsize=_KEPT)
def _between_words(pattern: str) -> Any:
    """Compile a search for the pattern outside of words, as group 1. Return None if it's too
    complex, which `domain.organization.linkifiers` now refuses."""
    import re2

    try:
        return re2.compile(between_words(pattern), pattern_options())
    except re2.error:
        logger.warning("ignoring a linkifier whose pattern is too complex: %s", pattern)
        return None


async def compile_linkifiers(state: State, text: str) -> None:
    """Compile the patterns that `linkifier_matches` needs for the text, each in one turn of the
    event loop, because 200 patterns take 0.5 s."""
    if not len(state.linkifiers):
        return
    linkifiers, misses = _linkifiers(state), _compilations()
    for patterns in linkifiers.sets:
        _search_set(patterns)
        if misses != (misses := _compilations()):
            await asyncio.sleep(0)
    for index in linkifiers.found_in(text):
        pattern = _between_words(linkifiers.defined[index].pattern)
        if misses != (misses := _compilations()):
            if pattern is not None:
                pattern.search(text)  # RE2 compiles a part of it only at the first match.
            await asyncio.sleep(0)


def _compilations() -> int:
    """The number of compilations so far."""
    return _search_set.cache_info().misses + _between_words.cache_info().misses


def linkifier_matches(state: State, text: str) -> list[LinkMatch]:
    """Return the links that linkifiers make, by position. If two overlap, the linkifier with higher
    precedence wins."""
    if not len(state.linkifiers):
        return []
    linkifiers = _linkifiers(state)
    link_matches: list[LinkMatch] = []
    left = MAX_MATCHES
    for index in linkifiers.found_in(text):
        pattern = _between_words(linkifiers.defined[index].pattern)
        for match in islice(_of_one(pattern, text), left):
            left -= 1
            if len(link_matches) >= MAX_LINKS:
                break
            begin, end = match.span(1)
            place = bisect_left(link_matches, begin, key=lambda other: other.begin)
            if any(
                begin < other.end and other.begin < end
                for other in link_matches[max(place - 1, 0) : place + 1]
            ):
                continue
            url = _url(linkifiers.defined[index].url_template, match)
            if url is not None:
                link_matches.insert(place, LinkMatch(begin, end, url))
    return link_matches


def _of_one(pattern: Any, text: str) -> Iterator[Any]:
    position = 0
    while pattern is not None and position <= len(text):
        match = pattern.search(text, position)
        if match is None:
            return
        begin, end = match.span(1)
        if begin == end:
            position = match.end() + 1
            continue
        yield match
        # The character after one match may be the one before the next.
        position = end


def _url(template: str, match: Any) -> str | None:
    import uritemplate  # Imported only if there are linkifiers.

    groups = {name: value or "" for name, value in match.groupdict().items()}
    return safe(uritemplate.expand(template, groups))


def with_linkifiers(context: RenderContext, text: str) -> list[Token | str] | None:
    """Link the texts that linkifiers match. Return None without matches."""
    linked = linkifier_matches(context.state, text)
    if not linked:
        return None
    parts: list[Token | str] = []
    done = 0
    for match in linked:
        token = Token("html", "", 0)
        token.content = bare(context, match.url, text[match.begin : match.end])
        parts.extend((text[done : match.begin], token))
        done = match.end
    parts.append(text[done:])
    return parts


def topic_links(state: State, topic: str) -> list[tuple[str, str]]:
    """Return the text and the URL of the links in a topic's name, by position."""
    linked = addresses(topic)
    linked.extend(
        match
        for match in linkifier_matches(state, topic)
        if not any(match.begin < other.end and other.begin < match.end for other in linked)
    )
    linked.sort(key=lambda match: match.begin)
    return [(topic[match.begin : match.end], match.url) for match in linked]
