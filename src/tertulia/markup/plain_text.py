"""Hosts, linkifiers, emoticons and emoji: found in the text that no other markup took."""

from collections.abc import Callable, Sequence
from typing import Final

from markdown_it.token import Token

from tertulia.markup import emoji, linkifiers, links
from tertulia.markup.context import RenderContext

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
            _add_split(found, context, token, _EVERYWHERE if in_link else _OUTSIDE_OF_LINKS)
            continue
        in_link += token.nesting if token.tag == "a" else 0
        found.append(token)
    return found


def _add_split(
    found: list[Token], context: RenderContext, token: Token, finders: Sequence[Finder]
) -> None:
    """Add the token of plain text, or what the first finder that finds something makes of it, the
    text in which is for the finders after that one."""
    for number, find in enumerate(finders, start=1):
        parts = find(context, token.content)
        if parts is None:
            continue
        for part in parts:
            if isinstance(part, Token):
                found.append(part)
            elif part:
                _add_split(found, context, _text(part), finders[number:])
        return
    found.append(token)


def _text(content: str) -> Token:
    token = Token("text", "", 0)
    token.content = content
    return token
