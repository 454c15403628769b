"""Marking in messages what a search found."""

import html
import re
from collections.abc import Iterable, Sequence

from tertulia.model.narrow import Term, phrases_in
from tertulia.model.words import Phrase, places
from tertulia.wire.api.objects.messages import MessageObject

_PIECES = re.compile(r"<[^>]*>|&#?\w+;|[^<&]+|&")
"""The HTML's tags, characters that are written as names, and stretches of text."""
_INLINE = re.compile(r"</?(?:a|code|del|em|span|strong|time)\b")
"""Elements inside of which a word may go on, as it may in the source between asterisks."""
_INSIDE, _BETWEEN = "*", "\n"
_OPENING, _CLOSING = '<span class="highlight">', "</span>"


def highlight(shown: Iterable[MessageObject], terms: Iterable[Term]) -> None:
    """Add content and topic with what a search found in them marked, where the terms search."""
    phrases = phrases_in(terms)
    if not phrases:
        return
    subjects: dict[str, str] = {}
    for message in shown:
        is_html = message.content_type == "text/html"
        content = message.content if is_html else html.escape(message.content)
        message.match_content = marked(content, phrases)
        subject = message.subject
        if subject not in subjects:
            subjects[subject] = marked(html.escape(subject), phrases)
        message.match_subject = subjects[subject]


def marked(text: str, phrases: Sequence[Phrase]) -> str:
    """HTML with the phrases in its text marked. A phrase that reaches into another element is
    marked in each of them."""
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
