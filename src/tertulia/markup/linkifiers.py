"""Links that administrators defined by patterns: `#123` as the address of a ticket, say."""

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
"""That linkifiers make in one piece of text."""
MAX_MATCHES: Final = 1000
"""That are looked at in one piece of text, those among them that overlap others."""


@dataclass(frozen=True)
class CompiledLinkifiers:
    """An organization's linkifiers, ready to be matched: all at once to know whether there is
    anything, then one by one."""

    defined: tuple[Linkifier, ...]
    any_pattern: Any
    patterns: tuple[Any, ...]


_last_compiled: dict[tuple[Linkifier, ...], CompiledLinkifiers] = {}
"""The last ones that were used; they change seldom."""


def compiled_linkifiers(state: State) -> CompiledLinkifiers | None:
    """The organization's linkifiers; None where it has none."""
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
    # What is matched is no part of a word: the first group tells where it begins and ends.
    patterns = tuple(
        re2.compile(rf"(?:^|[^\pL\pN])({linkifier.pattern})(?:$|[^\pL\pN])", quiet)
        for linkifier in defined
    )
    return CompiledLinkifiers(tuple(defined), every, patterns)


def matches(state: State, text: str) -> list[Match]:
    """The links that the linkifiers make of the text, in its order. Where two overlap, that of the
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
    """Where the text has what one linkifier is for."""
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
        # What stands behind one match may stand before the next one.
        position = end


def _url(template: str, match: Any) -> str | None:
    import uritemplate  # Only where there are linkifiers.

    groups = {name: value or "" for name, value in match.groupdict().items()}
    return safe(uritemplate.expand(template, groups))


def with_linkifiers(context: RenderContext, text: str) -> list[Token | str] | None:
    """The text with the links in it; None where there are none."""
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
    """The links in the name of a topic, in its order: each as its text and its address."""
    if not len(state.linkifiers) and "://" not in topic:
        return []
    linked = addresses(topic)
    linked.extend(
        match
        for match in matches(state, topic)
        if not any(match.begin < other.end and other.begin < match.end for other in linked)
    )
    linked.sort(key=lambda match: match.begin)
    return [(topic[match.begin : match.end], match.url) for match in linked]
