"""The fast path for plain messages renders like the full parser."""

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline, RuleFuncInlineType
from markdown_it.rules_core import StateCore, block, normalize, text_join
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

from tertulia.markup import blocks, markdown, previews
from tertulia.markup.context import RenderContext, Steps, environment
from tertulia.markup.render import Renderer
from tertulia.state.decision import CommandContext
from tests.unit.markup_organization import EVE, SITE, STATE, rendered

PARTS = st.sampled_from(
    [
        *"a1 \n\t#>`~*+-_|:=.()[]!\\<@$&",
        *("\n\n", "**", "~~", "```\n", "---", "| a |\n|---|", "1. ", "* ", "    ", ":smile:"),
        *("@**Ann**", "#**secret**", "http://a.example/b", "[a](http://b.example)", "🎉", "\u2028"),
    ]
)


def _thorough() -> Renderer:
    """A parser that tries all rules at all characters, and all kinds of blocks."""
    renderer = Renderer(SITE, in_place=True)
    rendering = renderer._markdown
    parser = rendering._parser
    inline = _Thorough()
    names = []
    for sign, rules in markdown.RULES_BY_SIGN.items():
        for number, rule in enumerate(rules):
            names.append(f"{sign}{number}")
            inline.ruler.push(names[-1], partial(_at, sign, rule))
    inline.ruler.enableOnly(["text", *names])
    inline.ruler2 = parser.inline.ruler2
    parser.inline = inline
    rendering._inline = inline  # type: ignore[assignment]

    def parsed(context: RenderContext, content: str) -> Steps[list[Token]]:
        state = StateCore(content, parser, environment(context))
        normalize(state)
        block(state)
        yield from rendering._parse_texts(context, state)
        text_join(state)
        return previews.with_previews(context, state.tokens)

    rendering._parsed = parsed  # type: ignore[method-assign]
    return renderer


class _Thorough(ParserInline):
    def steps(self, text: str, md: MarkdownIt, env: EnvType) -> Steps[list[Token]]:
        yield None
        return self.parse(text, md, env, [])


def _at(sign: str, rule: RuleFuncInlineType, state: StateInline, silent: bool) -> bool:
    return state.src[state.pos] == sign and rule(state, silent)


THOROUGH = _thorough()


PROSE = st.lists(st.sampled_from(["a", "Eve ", " \n", "\n", "\n\n", "\n \n", "\t", "**", "\u2028"]))
"""Mostly several plain paragraphs."""


@settings(max_examples=300, deadline=None)
@given((st.lists(PARTS, max_size=12) | PROSE).map("".join))
def test_the_fast_path_gives_the_same_result(content: str) -> None:
    assert rendered(content, EVE) == THOROUGH.render(CommandContext(STATE, 0, EVE), content)


def test_a_usual_message_takes_the_fast_path() -> None:
    assert blocks.is_prose("Shall we have **supper**?\n@**Ann** (and Ben) may come.\n\n\nAt seven.")
    assert not blocks.is_prose("one\n* two")
