"""Linkifiers: patterns of the organization whose matches become links, like `#123` to a ticket."""

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from markdown_it.token import Token
from msgspec import Struct

from tertulia.domain.organization.linkifiers import between_words, options
from tertulia.markup.addresses import safe
from tertulia.markup.context import RenderContext
from tertulia.markup.links import LinkMatch, addresses, bare
from tertulia.model.organization import Linkifier
from tertulia.state.state import State

logger = logging.getLogger("tertulia.markup")

MAX_LINKS: Final = 200
"""Links that linkifiers make in one piece of text."""
MAX_MATCHES: Final = 1000
"""Matches that are tried in one piece of text, overlapping ones included."""


_SET_SIZE: Final = 50
"""Linkifiers that are tried on a text together. More would take too long to compile at once."""
_KEPT: Final = 1000
"""Patterns that stay compiled: a change of one linkifier leaves the others as they are."""


class _Linkifiers(Struct, frozen=True):
    """An organization's linkifiers in their order."""

    version: int
    """Of the table."""
    defined: tuple[Linkifier, ...]
    sets: tuple[tuple[str, ...], ...]
    """Their patterns, in groups of `_SET_SIZE`."""

    def found_in(self, text: str) -> Iterator[int]:
        """Yield the indexes of the linkifiers that match the text, regardless of what is around
        their matches."""
        for number, patterns in enumerate(self.sets):
            search = _search_set(patterns)
            found = range(len(patterns)) if search is None else sorted(search.Match(text) or ())
            yield from (number * _SET_SIZE + index for index in found)


_last: _Linkifiers | None = None
"""A cache of one: linkifiers change seldom."""


def _linkifiers(state: State) -> _Linkifiers:
    global _last
    if _last is None or _last.version != state.linkifiers.version:
        defined = tuple(state.linkifiers_in_order)
        patterns = [linkifier.pattern for linkifier in defined]
        begins = range(0, len(patterns), _SET_SIZE)
        sets = tuple(tuple(patterns[one : one + _SET_SIZE]) for one in begins)
        _last = _Linkifiers(state.linkifiers.version, defined, sets)
    return _last


@lru_cache(maxsize=_KEPT // _SET_SIZE)
def _search_set(patterns: tuple[str, ...]) -> Any:
    """What finds which of the patterns match a text; None if they are too complex together, so
    that each of them has to be tried."""
    import re2  # type: ignore[import-untyped]  # it comes without types

    search = re2.Set.SearchSet(options())
    try:
        for pattern in patterns:
            search.Add(pattern)
        search.Compile()
    except re2.error:
        return None
    return search


@lru_cache(maxsize=_KEPT)
def _between_words(pattern: str) -> Any:
    """What finds the pattern where it is not part of a word, as group 1; None if it is too
    complex, which `tertulia.domain.organization.linkifiers` refuses today."""
    import re2

    try:
        return re2.compile(between_words(pattern), options())
    except re2.error:
        logger.warning("a linkifier is ignored: its pattern is too complex: %s", pattern)
        return None


async def prepare(state: State, text: str) -> None:
    """Compile what `matches` needs for the text, each pattern in its own turn of the event loop:
    200 of them take 0.5 s."""
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
                pattern.search(text)  # RE2 compiles a part of it only for the first match.
            await asyncio.sleep(0)


def _compilations() -> int:
    """How many patterns and sets were compiled until now."""
    return _search_set.cache_info().misses + _between_words.cache_info().misses


def matches(state: State, text: str) -> list[LinkMatch]:
    """The links that the linkifiers make of the text, by position. Where two overlap, that of the
    earlier linkifier wins."""
    if not len(state.linkifiers):
        return []
    linkifiers = _linkifiers(state)
    found: list[LinkMatch] = []
    left = MAX_MATCHES
    for index in linkifiers.found_in(text):
        pattern = _between_words(linkifiers.defined[index].pattern)
        for match in islice(_of_one(pattern, text), left):
            left -= 1
            if len(found) >= MAX_LINKS:
                break
            begin, end = match.span(1)
            place = bisect_left(found, begin, key=lambda other: other.begin)
            if any(
                begin < other.end and other.begin < end
                for other in found[max(place - 1, 0) : place + 1]
            ):
                continue
            url = _url(linkifiers.defined[index].url_template, match)
            if url is not None:
                found.insert(place, LinkMatch(begin, end, url))
    return found


def _of_one(pattern: Any, text: str) -> Iterator[Any]:
    """The matches of one linkifier in the text."""
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
    import uritemplate  # Only where there are linkifiers.

    groups = {name: value or "" for name, value in match.groupdict().items()}
    return safe(uritemplate.expand(template, groups))


def with_linkifiers(context: RenderContext, text: str) -> list[Token | str] | None:
    """The text split at the links that linkifiers make; None without any."""
    linked = matches(context.state, text)
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


def in_topic(state: State, topic: str) -> list[tuple[str, str]]:
    """The links in the name of a topic, by position: each as its text and its URL."""
    linked = addresses(topic)
    linked.extend(
        match
        for match in matches(state, topic)
        if not any(match.begin < other.end and other.begin < match.end for other in linked)
    )
    linked.sort(key=lambda match: match.begin)
    return [(topic[match.begin : match.end], match.url) for match in linked]
