"""Markdown to HTML, with what the message refers to gathered on the way."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from tertulia.markup import (
    blocks,
    channels,
    emoji,
    emphasis,
    fences,
    formulas,
    links,
    mentions,
    previews,
    showing,
    texts,
    times,
)
from tertulia.markup.costly import Costly, Wanted, prepare
from tertulia.markup.elsewhere import Elsewhere
from tertulia.markup.page import Page, environment, page_of
from tertulia.model.messages import Rendered
from tertulia.model.previews import LinkPreview
from tertulia.state.moment import Moment

_BLOCK_RULES: Final = ("table", "code", "fence", "blockquote", "hr", "list", "heading")
_COSTLY: Final = ("```", "~~~", "$$")
"""One of these is in each message that has code or formulas."""
_INLINE_RULES: Final = ("newline", "escape", "backticks", "strikethrough", "emphasis", "link")


class Renderer:
    """Renders messages. `site` is the server's own address: links to it are written without.
    `elsewhere` says what is shown of other servers; nothing, where it is not given.

    With `in_place`, code and formulas are computed while rendering, without a bound: for texts of
    our own. Else they are shown as far as they were prepared."""

    def __init__(
        self, site: str = "", elsewhere: Elsewhere | None = None, *, in_place: bool = False
    ) -> None:
        self._site = site.rstrip("/")
        self._elsewhere = elsewhere or Elsewhere()
        self._in_place = in_place
        self._markdown = _parser()

    async def prepare(self, moment: Moment, content: str) -> None:
        """Have computed beforehand, in a worker's process, what of rendering it is costly."""
        if not any(sign in content for sign in _COSTLY):
            return
        wanted = Wanted()
        page = Page(moment, self._site, costly=Costly(wanted=wanted))
        showing.html(page, self._markdown.parse(content, environment(page)))
        await prepare(wanted)

    def render(
        self,
        moment: Moment,
        content: str,
        known: Mapping[str, LinkPreview | None] | None = None,
    ) -> Rendered:
        """The content, written by the moment's actor, as HTML. Every input renders; what is no
        markup is shown as text. `known` is what linked pages say about themselves."""
        elsewhere = self._elsewhere
        if known:
            elsewhere = dataclasses.replace(elsewhere, previews=known)
        page = Page(moment, self._site, elsewhere, costly=Costly(in_place=self._in_place))
        tokens = self._markdown.parse(content, environment(page))
        tokens = previews.added(page, tokens)
        html = showing.html(page, tokens)
        return Rendered(
            html=html,
            mentions=frozenset(page.users),
            mentioned_groups=frozenset(page.groups),
            mentions_all=page.all,
            mentions_topic=page.topic,
            has_link=page.has_link,
            has_image=page.has_image,
            pages=tuple(page.pages),
            is_me=content.startswith("/me ") and _is_one_paragraph(tokens),
        )


def _is_one_paragraph(tokens: list[Token]) -> bool:
    return [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]


def _parser() -> MarkdownIt:
    markdown = MarkdownIt("zero", {"breaks": True, "maxNesting": 100})
    markdown.enable([*_BLOCK_RULES, *_INLINE_RULES])
    block = markdown.block.ruler
    interrupting = ["paragraph", "blockquote", "list"]
    block.at("fence", fences.fenced, {"alt": interrupting})
    block.at("table", blocks.tabled, {"alt": ["paragraph", "reference"]})
    block.at("blockquote", blocks.quotation, {"alt": interrupting})
    block.at("list", blocks.listed, {"alt": ["paragraph", "blockquote"]})
    block.at("heading", blocks.titled, {"alt": ["paragraph", "blockquote"]})
    inline = markdown.inline.ruler
    inline.at("escape", emphasis.escape)
    inline.at("backticks", emphasis.code)
    inline.at("emphasis", emphasis.asterisks)
    inline.at("link", links.link)
    inline.before("link", "image", previews.image)
    inline.after("backticks", "formula", formulas.inline)
    inline.after("formula", "mention", mentions.mention)
    inline.after("mention", "channel", channels.channel_link)
    inline.after("channel", "time", times.time)
    inline.after("time", "address", links.address)
    inline.after("address", "emoji", emoji.by_name)
    markdown.inline.ruler2.after("fragments_join", "strong_outside", emphasis.strong_outside)
    markdown.core.ruler.at("inline", _parse_texts)
    return markdown


def _parse_texts(state: StateCore) -> None:
    """The markup inside of blocks. In quotations nobody is notified and nothing is played."""
    page = page_of(state)
    quotations = 0
    for token in state.tokens:
        quotations += token.nesting if token.type.startswith("blockquote") else 0
        if token.type != "inline":
            continue
        page.quoted = quotations > 0
        children: list[Token] = []
        state.md.inline.parse(token.content, state.md, state.env, children)
        children = texts.searched(page, children)
        token.children = children if page.quoted else previews.sounds(page, children)
