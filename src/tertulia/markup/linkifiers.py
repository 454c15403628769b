"""Linkifiers: patterns of the organization whose matches become links, like `#123` to a ticket."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from markdown_it.token import Token

from tertulia.domain.organization.linkifiers import options
from tertulia.markup.addresses import safe
from tertulia.markup.links import Match, addresses, bare
from tertulia.markup.render_context import RenderContext
from tertulia.model.organization import Linkifier
from tertulia.state.organization import State

MAX_LINKS: Final = 200
"""Links that linkifiers make in one piece of text."""
MAX_MATCHES: Final = 1000
"""Matches that are tried in one piece of text, overlapping ones included."""


@dataclass(frozen=True)
class CompiledLinkifiers:
    """An organization's linkifiers with their compiled patterns: `any_pattern` finds which of them
    match at all, and `patterns` where."""

    defined: tuple[Linkifier, ...]
    any_pattern: Any
    patterns: tuple[Any, ...]


_last_compiled: dict[tuple[Linkifier, ...], CompiledLinkifiers] = {}
"""A cache of one: linkifiers change seldom."""


def compiled_linkifiers(state: State) -> CompiledLinkifiers | None:
    """The organization's linkifiers, compiled; None where it has none."""
    if not len(state.linkifiers):
        return None
    defined = tuple(state.linkifiers_in_order)
    found = _last_compiled.get(defined)
    if found is None:
        _last_compiled.clear()
        found = _last_compiled[defined] = _compiled(defined)
    return found


def _compiled(defined: Sequence[Linkifier]) -> CompiledLinkifiers:
    import re2  # type: ignore[import-untyped]  # it comes without types

    quiet = options()
    every = re2.Set.SearchSet(quiet)
    for linkifier in defined:
        every.Add(linkifier.pattern)
    every.Compile()
    # A match must not be part of a word. The first group is the match itself.
    patterns = tuple(
        re2.compile(rf"(?:^|[^\pL\pN])({linkifier.pattern})(?:$|[^\pL\pN])", quiet)
        for linkifier in defined
    )
    return CompiledLinkifiers(tuple(defined), every, patterns)


def matches(state: State, text: str) -> list[Match]:
    """The links that the linkifiers make of the text, by position. Where two overlap, that of the
    earlier linkifier wins."""
    linkifiers = compiled_linkifiers(state)
    if linkifiers is None:
        return []
    found: list[Match] = []
    left = MAX_MATCHES
    for index in sorted(linkifiers.any_pattern.Match(text) or ()):
        for match in islice(_of_one(linkifiers, index, text), left):
            left -= 1
            if len(found) >= MAX_LINKS:
                break
            begin, end = match.span(1)
            if any(begin < other.end and other.begin < end for other in found):
                continue
            url = _url(linkifiers.defined[index].url_template, match)
            if url is not None:
                found.append(Match(begin, end, url))
    return sorted(found, key=lambda match: match.begin)


def _of_one(linkifiers: CompiledLinkifiers, index: int, text: str) -> Iterator[Any]:
    """The matches of one linkifier in the text."""
    pattern = linkifiers.patterns[index]
    position = 0
    while position <= len(text):
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
