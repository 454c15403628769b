"""Hosts, linkifiers, emoticons and emoji: found in the text that no other markup took."""

from collections.abc import Callable, Sequence
from typing import Final

from markdown_it.token import Token

from tertulia.markup import emoji, linkifiers, links
from tertulia.markup.render_context import RenderContext

Finder = Callable[[RenderContext, str], list[Token | str] | None]
"""Splits a text into text and tokens of HTML; None where it finds nothing."""

_EVERYWHERE: Final[Sequence[Finder]] = (emoji.characters,)
_OUTSIDE_OF_LINKS: Final[Sequence[Finder]] = (
    links.hosts,
    linkifiers.with_linkifiers,
    emoji.emoticons,
    emoji.characters,
)


def with_links_and_emoji(context: RenderContext, tokens: Sequence[Token]) -> list[Token]:
    """The tokens of an inline text, with those of plain text split by the finders."""
    found: list[Token] = []
    in_link = 0
    for token in tokens:
        if token.type == "text":
            finders = _EVERYWHERE if in_link else _OUTSIDE_OF_LINKS
            found.extend(_applied(context, [token], finders))
            continue
        in_link += token.nesting if token.tag == "a" else 0
        found.append(token)
    return found


def _applied(context: RenderContext, tokens: list[Token], finders: Sequence[Finder]) -> list[Token]:
    for find in finders:
        after: list[Token] = []
        for token in tokens:
            parts = find(context, token.content) if token.type == "text" else None
            if parts is None:
                after.append(token)
            else:
                after.extend(_token(part) for part in parts if part != "")
        tokens = after
    return tokens


def _token(part: Token | str) -> Token:
    if isinstance(part, Token):
        return part
    token = Token("text", "", 0)
    token.content = part
    return token
