"""Highlighting search matches in messages."""

import asyncio
import html
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from tertulia.model.narrow import Term, phrases_in
from tertulia.model.tokenizer import MAX_LENGTH, Phrase, places

_PIECES = re.compile(r"<[^>]*>|&#?\w+;|[^<&]+|&")
"""Tags, character references, and text between them."""
_INLINE = re.compile(r"</?(?:a|code|del|em|span|strong|time)\b")
"""Elements that can end in the middle of a word, as asterisks can in the Markdown source."""
_INSIDE, _BETWEEN = "*", "\n"
_OPENING, _CLOSING = '<span class="highlight">', "</span>"

_ODD = re.compile(r"&(?!(?:amp|lt|gt|quot|#x27|#39);)")
"""A character reference that may be part of a word."""


@lru_cache(maxsize=200)
def _single_words(phrases: tuple[Phrase, ...]) -> re.Pattern[str] | None:
    """Return a pattern that matches tags, character references, and, as group 1, the phrases in
    ASCII HTML whose references are only separators, as most messages are. Return None if a phrase
    has several words or there are no phrases."""
    patterns: list[str] = []
    for phrase in phrases:
        word = phrase.words[0]
        if len(phrase.words) > 1 or not word.isascii() or len(word) >= MAX_LENGTH:
            return None
        patterns.append(f"{re.escape(word)}{'' if phrase.is_open else _NO_LETTER}")
    if not patterns:
        return None
    either = "|".join(patterns)
    return re.compile(rf"<[^>]*>|&#?\w+;|(?<![a-z0-9])((?:{either})[a-z0-9]*)", re.IGNORECASE)


_NO_LETTER = "(?![a-z0-9])"


def _mark(match: re.Match[str]) -> str:
    word = match[1]
    return match[0] if word is None else f"{_OPENING}{word}{_CLOSING}"


MAX_WORDS: Final = 50
"""The most highlighted words of a search: more don't make a page easier to read."""
PAGE_WORK: Final = 10_000_000
"""The most work per page: the number of ASCII characters times phrases, or a twentieth of it in
other alphabets. Messages beyond it aren't highlighted."""
STEP_WORK: Final = 200_000
"""The most work per turn of the event loop: about 10 ms."""
_OTHER_ALPHABETS: Final = 20
"""The factor by which characters outside ASCII are slower: they can have several forms, or be words
by themselves."""


class Highlighter:
    """Highlights the search terms of a narrow in the messages of a page. True if the narrow has
    any."""

    def __init__(self, terms: Iterable[Term]) -> None:
        phrases, words = list[Phrase](), 0
        for phrase in phrases_in(terms):
            words += len(phrase.words)
            if words <= MAX_WORDS:
                phrases.append(phrase)
        self._phrases = phrases
        self._is_search = bool(words)
        self._topics: dict[str, str] = {}
        self._done = self._done_in_turn = 0

    def __bool__(self) -> bool:
        return self._is_search

    async def content(self, content: str, *, is_html: bool) -> str:
        """Return a message's content as HTML with highlighted matches."""
        return await self._marked(content if is_html else html.escape(content))

    async def topic(self, name: str) -> str:
        """Return a topic as HTML with highlighted matches."""
        if name not in self._topics:
            self._topics[name] = await self._marked(html.escape(name))
        return self._topics[name]

    async def _marked(self, text: str) -> str:
        of_character = len(self._phrases) + (0 if text.isascii() else _OTHER_ALPHABETS)
        work = len(text) * of_character
        if self._done + work > PAGE_WORK:
            return text
        if self._done_in_turn and self._done_in_turn + work > STEP_WORK:
            self._done_in_turn = 0
            await asyncio.sleep(0)
        self._done += work
        self._done_in_turn += work
        return marked(text, self._phrases)


def marked(text: str, phrases: Sequence[Phrase]) -> str:
    """Return HTML with the phrases in its text highlighted. A phrase that spans several elements is
    highlighted in each of them."""
    if text.isascii() and (pattern := _single_words(tuple(phrases))) and not _ODD.search(text):
        return pattern.sub(_mark, text)
    pieces = [
        (piece, _seen(piece) if piece[0] in "<&" else piece) for piece in _PIECES.findall(text)
    ]
    plain = "".join(seen for _, seen in pieces)
    matches = places(plain, phrases)
    if not matches:
        return text
    made: list[str] = []
    at, is_open = 0, False
    remaining = iter([*matches, (len(plain) + 1, len(plain) + 1)])
    start, end = next(remaining)
    for piece, seen in pieces:
        if piece[0] == "<":
            if is_open:
                made.append(_CLOSING)
                is_open = False
            made.append(piece)
            at += len(seen)
            continue
        begin, stop = at, at + len(seen)
        while at < stop:
            if at >= end:
                if is_open:
                    made.append(_CLOSING)
                    is_open = False
                while at >= end:
                    start, end = next(remaining)
            if at >= start and not is_open:
                made.append(_OPENING)
                is_open = True
            until = min(end if is_open else start, stop)
            if piece[0] == "&":
                until = stop
            made.append(piece if until - at == len(seen) else seen[at - begin : until - begin])
            at = until
    if is_open:
        made.append(_CLOSING)
    return "".join(made)


def _seen(piece: str) -> str:
    """Return the text that a reader sees in place of a tag or character reference."""
    if piece[0] == "<":
        return _INSIDE if _INLINE.match(piece) else _BETWEEN
    return html.unescape(piece)
