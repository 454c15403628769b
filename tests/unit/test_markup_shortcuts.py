"""The fast path for plain messages renders like the full parser."""

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it.parser_inline import ParserInline, RuleFuncInlineType
from markdown_it.rules_core import block
from markdown_it.rules_inline import StateInline

from tertulia.markup import blocks, markdown
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
    parser = renderer._markdown._parser
    inline = ParserInline()
    names = []
    for sign, rules in markdown.RULES_BY_SIGN.items():
        for number, rule in enumerate(rules):
            names.append(f"{sign}{number}")
            inline.ruler.push(names[-1], partial(_at, sign, rule))
    inline.ruler.enableOnly(["text", *names])
    inline.ruler2 = parser.inline.ruler2
    parser.inline = inline
    parser.core.ruler.at("block", block)
    parser.core.ruler.enable("text_join")
    return renderer


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
