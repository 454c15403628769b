"""Rendering tokens as HTML."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from markdown_it.token import Token

from tertulia.markup import code, inline
from tertulia.markup.context import RenderContext
from tertulia.markup.elements import escaped_text, open_tag

_BREAK: Final = open_tag("br") + "\n"
_INLINE: Final[Mapping[str, str]] = {
    "softbreak": _BREAK,
    "hardbreak": _BREAK,
    "em_open": open_tag("em"),
    "em_close": "</em>",
    "strong_open": open_tag("strong"),
    "strong_close": "</strong>",
    "s_open": open_tag("del"),
    "s_close": "</del>",
    "link_close": "</a>",
}
_BLOCKS: Final[Mapping[str, str]] = {
    "blockquote_open": open_tag("blockquote") + "\n",
    "blockquote_close": "</blockquote>\n",
    "bullet_list_open": open_tag("ul") + "\n",
    "bullet_list_close": "</ul>\n",
    "ordered_list_close": "</ol>\n",
    "list_item_close": "</li>\n",
    "hr": open_tag("hr") + "\n",
    "table_open": open_tag("table") + "\n",
    "table_close": "</table>\n",
    "thead_open": open_tag("thead") + "\n",
    "thead_close": "</thead>\n",
    "tbody_open": open_tag("tbody") + "\n",
    "tbody_close": "</tbody>\n",
    "tr_open": open_tag("tr") + "\n",
    "tr_close": "</tr>\n",
    "th_close": "</th>\n",
    "td_close": "</td>\n",
    "spoiler_open": (
        open_tag("div", {"class": "spoiler-block"})
        + open_tag("div", {"class": "spoiler-header"})
        + "\n"
    ),
    "spoiler_content": (
        "</div>" + open_tag("div", {"class": "spoiler-content", "aria-hidden": "true"}) + "\n"
    ),
    "spoiler_close": "</div></div>\n",
}
_ALIGNED: Final = frozenset({"left", "center", "right"})


def to_html(context: RenderContext, tokens: Sequence[Token]) -> str:
    parts: list[str] = []
    for index, token in enumerate(tokens):
        show = _BY_TYPE.get(token.type)
        if show is not None:
            parts.append(show(context, tokens, index))
        else:
            parts.append(_BLOCKS[token.type])
    return "".join(parts).rstrip("\n")


def _text(_context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    return "".join(map(_piece, tokens[index].children or ()))


def _piece(token: Token) -> str:
    match token.type:
        case "text":
            return escaped_text(token.content)
        case "html":
            return token.content
        case "link_open":
            return open_tag("a", {name: str(value) for name, value in token.attrs.items()})
        case kind:
            return _INLINE[kind]


def _paragraph_open(_context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    return "" if tokens[index].hidden else open_tag("p")


def _paragraph_close(_context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    return "" if tokens[index].hidden else "</p>\n"


def _heading_open(_context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    return open_tag(tokens[index].tag)


def _heading_close(_context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    return f"</{tokens[index].tag}>\n"


def _ordered_list(_context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    start = tokens[index].attrs.get("start")
    return open_tag("ol", {"start": None if start is None else str(start)}) + "\n"


def _list_item(_context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    following = tokens[index + 1]
    begins_with_text = following.hidden or following.type == "list_item_close"
    return open_tag("li") + ("" if begins_with_text else "\n")


def _cell(_context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    token = tokens[index]
    align = str(token.attrs.get("style", "")).removeprefix("text-align:")
    style = f"text-align: {align};" if align in _ALIGNED else None
    return open_tag(token.tag, {"style": style})


def _code(context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    token = tokens[index]
    realm = context.realm if token.type == "fence" else None
    default = "" if realm is None else realm.default_code_block_language
    return code.block(token.content, token.info, default, context.expensive.code) + "\n"


def _formula(context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    return inline.formula_block(tokens[index].content, context.expensive) + "\n"


def _preview(_context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    return tokens[index].content + "\n"


_BY_TYPE: Final[Mapping[str, Callable[[RenderContext, Sequence[Token], int], str]]] = {
    "inline": _text,
    "paragraph_open": _paragraph_open,
    "paragraph_close": _paragraph_close,
    "heading_open": _heading_open,
    "heading_close": _heading_close,
    "ordered_list_open": _ordered_list,
    "list_item_open": _list_item,
    "th_open": _cell,
    "td_open": _cell,
    "fence": _code,
    "code_block": _code,
    "formula": _formula,
    "preview": _preview,
}
