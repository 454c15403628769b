"""Marking in messages what a search found."""

import html
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from tertulia.model.narrow import Term, phrases_in
from tertulia.model.tokenizer import MAX_LENGTH, Phrase, places

_PIECES = re.compile(r"<[^>]*>|&#?\w+;|[^<&]+|&")
"""The HTML's tags, characters that are written as names, and stretches of text."""
_INLINE = re.compile(r"</?(?:a|code|del|em|span|strong|time)\b")
"""Elements inside of which a word may go on, as it may in the source between asterisks."""
_INSIDE, _BETWEEN = "*", "\n"
_OPENING, _CLOSING = '<span class="highlight">', "</span>"

_ODD = re.compile(r"&(?!(?:amp|lt|gt|quot|#x27|#39);)")
"""A character that may be written by the name of a letter."""


@lru_cache(maxsize=200)
def _single_words(phrases: tuple[Phrase, ...]) -> re.Pattern[str] | None:
    """What finds tags, named characters and, as group 1, the phrases, in HTML of ASCII where names
    stand for separators alone: most of what people write. None where a phrase has several words,
    or there is none."""
    found: list[str] = []
    for phrase in phrases:
        word = phrase.words[0]
        if len(phrase.words) > 1 or not word.isascii() or len(word) >= MAX_LENGTH:
            return None
        found.append(f"{re.escape(word)}{'' if phrase.is_open else _NO_LETTER}")
    if not found:
        return None
    either = "|".join(found)
    return re.compile(rf"<[^>]*>|&#?\w+;|(?<![a-z0-9])((?:{either})[a-z0-9]*)", re.IGNORECASE)


_NO_LETTER = "(?![a-z0-9])"


def _mark(match: re.Match[str]) -> str:
    word = match[1]
    return match[0] if word is None else f"{_OPENING}{word}{_CLOSING}"


class Highlighter:
    """Marks what a narrow's terms search for: true where they search for anything."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self._phrases = phrases_in(terms)
        self._topics: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._phrases)

    def content(self, content: str, *, is_html: bool) -> str:
        """HTML of a message's content with what is found in it marked."""
        return marked(content if is_html else html.escape(content), self._phrases)

    def topic(self, name: str) -> str:
        """The same of a topic's name."""
        if name not in self._topics:
            self._topics[name] = marked(html.escape(name), self._phrases)
        return self._topics[name]


def marked(text: str, phrases: Sequence[Phrase]) -> str:
    """HTML with the phrases in its text marked. A phrase that reaches into another element is
    marked in each of them."""
    if text.isascii() and (pattern := _single_words(tuple(phrases))) and not _ODD.search(text):
        return pattern.sub(_mark, text)
    pieces = [
        (piece, _seen(piece) if piece[0] in "<&" else piece) for piece in _PIECES.findall(text)
    ]
    plain = "".join(seen for _, seen in pieces)
    found = places(plain, phrases)
    if not found:
        return text
    made: list[str] = []
    at, is_open = 0, False
    remaining = iter([*found, (len(plain) + 1, len(plain) + 1)])
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
    """What a tag, or a character that is written as a name, is to a reader."""
    if piece[0] == "<":
        return _INSIDE if _INLINE.match(piece) else _BETWEEN
    return html.unescape(piece)
