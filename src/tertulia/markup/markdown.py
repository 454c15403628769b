"""The Markdown parser with Tertulia's rules, and the HTML of its tokens."""

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.parser_inline import RuleFuncInlineType
from markdown_it.rules_core import StateCore, normalize
from markdown_it.rules_inline import emphasis as asterisks
from markdown_it.rules_inline import newline
from markdown_it.token import Token

from tertulia.markup import blocks, code, emoji, inline, links, mentions, previews, times
from tertulia.markup.context import RenderContext, Steps, environment, run_steps
from tertulia.markup.elements import element, escaped_text, open_tag
from tertulia.markup.external_media import ExternalMedia
from tertulia.markup.former_names import FormerNames
from tertulia.markup.inline import InlineParser
from tertulia.markup.worker_rendering import ExpensiveParts, PartsToRender, prepare
from tertulia.model.messages import LinkPreview, Rendered
from tertulia.state.decision import CommandContext

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


def _text(context: RenderContext, tokens: Sequence[Token], index: int) -> str:
    return "".join([_piece(context, token) for token in tokens[index].children or ()])


def _piece(context: RenderContext, token: Token) -> str:
    match token.type:
        case "text":
            return escaped_text(token.content)
        case "html":
            return token.content
        case "formula":
            return inline.formula_in_text(token.content, context.expensive)
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

Finder = Callable[[RenderContext, str], list[Token | str] | None]
"""Splits a text into text and HTML tokens, or returns None."""

_EVERYWHERE: Final[Sequence[Finder]] = (emoji.characters,)
_OUTSIDE_OF_LINKS: Final[Sequence[Finder]] = (
    links.hosts,
    links.with_linkifiers,
    emoji.emoticons,
    emoji.characters,
)


def with_links_and_emoji(context: RenderContext, tokens: Sequence[Token]) -> Steps[list[Token]]:
    """Split text tokens with the finders."""
    result: list[Token] = []
    in_link = 0
    for token in tokens:
        if token.type == "text":
            _add_split(result, context, token, _EVERYWHERE if in_link else _OUTSIDE_OF_LINKS)
            yield None
            continue
        in_link += token.nesting if token.tag == "a" else 0
        result.append(token)
    return result


def _add_split(
    tokens: list[Token], context: RenderContext, token: Token, finders: Sequence[Finder]
) -> None:
    """Add the token, or the tokens that the first matching finder makes of it. Later finders split
    the remaining text."""
    for number, find in enumerate(finders, start=1):
        parts = find(context, token.content)
        if parts is None:
            continue
        for part in parts:
            if isinstance(part, Token):
                tokens.append(part)
            elif part:
                _add_split(tokens, context, inline.text_token(part), finders[number:])
        return
    tokens.append(token)


_BLOCK_RULES: Final = ("table", "code", "fence", "blockquote", "hr", "list", "heading")
RULES_BY_SIGN: Final[Mapping[str, Sequence[RuleFuncInlineType]]] = {
    "\n": (newline,),
    "\\": (inline.escape,),
    "`": (inline.code_span,),
    "$": (inline.formula,),
    "@": (mentions.mention,),
    "#": (mentions.channel_link,),
    "<": (times.time,),
    ":": (links.address, emoji.by_name),
    "~": (inline.strikethrough,),
    "*": (asterisks.tokenize,),
    "!": (previews.image,),
    "[": (links.link,),
}
"""Inline rules by their first character."""
_AFTER_INLINE: Final = ("balance_pairs", "strikethrough", "emphasis", "fragments_join")
_MAX_NESTING: Final = 100
ONE_STEP: Final = 1000
"""The length of a text that takes at most about `STEP_SECONDS`, whatever its characters are."""
STEP_SECONDS: Final = 0.005
"""How long rendering uses the event loop before other tasks get a turn."""
MAX_HTML: Final = 131_072
"""The largest HTML of a message, in bytes. A larger one is rendered again without emoji, formulas,
and highlighting, or else as plain text."""
_LINE_BREAK: Final = open_tag("br") + "\n"


class Markdown:
    """Implements `Renderer`."""

    def __init__(self, site: str, external_media: ExternalMedia, *, in_place: bool) -> None:
        self._site = site
        self._external_media = external_media
        self._in_place = in_place
        self._inline = InlineParser(RULES_BY_SIGN, _MAX_NESTING)
        self._parser = _parser(self._inline)

    async def rendered(
        self,
        command: CommandContext,
        content: str,
        known: Mapping[str, LinkPreview | None] | None = None,
    ) -> Rendered:
        """Render like `render`, but let a worker render code and formulas, and give other tasks a
        turn every `STEP_SECONDS`. Texts of at most `ONE_STEP` characters don't take turns, so that
        even on a busy machine, short messages are sent in the order of their requests."""
        await links.compile_linkifiers(command.state, content)
        expensive = ExpensiveParts(to_render=PartsToRender())
        steps = self._steps(self._context(command, known, expensive), content)
        turn_ends = time.perf_counter() + STEP_SECONDS
        while True:
            try:
                to_render = next(steps)
            except StopIteration as end:
                result: Rendered = end.value
                return result
            if to_render is not None:
                await prepare(to_render)
            elif len(content) <= ONE_STEP or time.perf_counter() < turn_ends:
                continue
            else:
                await asyncio.sleep(0)
            turn_ends = time.perf_counter() + STEP_SECONDS

    def render(
        self,
        command: CommandContext,
        content: str,
        known: Mapping[str, LinkPreview | None] | None = None,
        names: FormerNames | None = None,
    ) -> Rendered:
        """Implement `Renderer.render`."""
        expensive = ExpensiveParts(in_place=self._in_place)
        context = self._context(command, known, expensive)
        context.names = names
        return run_steps(self._steps(context, content))

    def _context(
        self,
        command: CommandContext,
        known: Mapping[str, LinkPreview | None] | None,
        expensive: ExpensiveParts,
    ) -> RenderContext:
        external_media = self._external_media
        if known:
            external_media = dataclasses.replace(external_media, previews=known)
        return RenderContext(command, self._site, external_media, expensive=expensive)

    def _steps(self, context: RenderContext, content: str) -> Steps[Rendered]:
        tokens = yield from self._parsed(context, content)
        html = to_html(context, tokens)
        missing = context.expensive.to_render
        if missing is not None and (missing.codes or missing.formulas):
            yield missing
            context.expensive = ExpensiveParts(in_place=False)
            html = to_html(context, tokens)
        if _size(html) > MAX_HTML:
            plain = RenderContext(
                context.command,
                self._site,
                context.external_media,
                expensive=ExpensiveParts(is_plain=True),
                is_plain=True,
                names=context.names,
            )
            html = to_html(plain, (yield from self._parsed(plain, content)))
        if _size(html) > MAX_HTML:
            html = element("p", {}, escaped_text(content).replace("\n", _LINE_BREAK))
        return Rendered(
            html=html,
            mentions=frozenset(context.mentioned_users),
            mentioned_groups=frozenset(context.mentioned_groups),
            mentions_all=context.mentions_all,
            mentions_topic=context.mentions_topic,
            has_link=context.has_link,
            has_image=context.has_image,
            pages=tuple(context.pages_to_preview),
            is_me=content.startswith("/me ") and _is_one_paragraph(tokens),
        )

    def _parsed(self, context: RenderContext, content: str) -> Steps[list[Token]]:
        state = StateCore(content, self._parser, environment(context))
        normalize(state)
        yield from blocks.parse(state)
        yield from self._parse_texts(context, state)
        return previews.with_previews(context, state.tokens)

    def _parse_texts(self, context: RenderContext, state: StateCore) -> Steps[None]:
        """Parse the inline text of blocks. In quotations, mentions are silent and there are no
        players."""
        quotations = 0
        for token in state.tokens:
            quotations += token.nesting if token.type.startswith("blockquote") else 0
            if token.type != "inline":
                continue
            context.in_quotation = quotations > 0
            children = yield from self._inline.steps(token.content, state.md, state.env)
            children = yield from with_links_and_emoji(context, children)
            token.children = (
                children if context.in_quotation else previews.with_audio_players(context, children)
            )


def _size(html: str) -> int:
    """Return the number of bytes, including surrogates that UTF-8 doesn't allow."""
    return len(html.encode("utf-8", "surrogatepass"))


def _is_one_paragraph(tokens: list[Token]) -> bool:
    return [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]


def _parser(texts: InlineParser) -> MarkdownIt:
    markdown = MarkdownIt("zero", {"breaks": True, "maxNesting": _MAX_NESTING})
    markdown.inline = texts
    markdown.enable([*_BLOCK_RULES])
    block = markdown.block.ruler
    interrupting = ["paragraph", "blockquote", "list"]
    block.at("fence", blocks.fence_rule, {"alt": interrupting})
    block.at("table", blocks.table_rule, {"alt": ["paragraph", "reference"]})
    block.at("blockquote", blocks.quotation_rule, {"alt": interrupting})
    block.at("list", blocks.list_rule, {"alt": ["paragraph", "blockquote"]})
    block.at("heading", blocks.heading_rule, {"alt": ["paragraph", "blockquote"]})
    markdown.inline.ruler2.enableOnly([*_AFTER_INLINE])
    markdown.inline.ruler2.after("fragments_join", "strong_outside", inline.strong_outside)
    return markdown
