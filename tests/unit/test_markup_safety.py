"""Any text renders within a time limit, and nothing in it can run."""

import asyncio
import re
import sys
import time
from html.parser import HTMLParser
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it.token import Token

from tertulia.markup import katex, links, markdown
from tertulia.markup.addresses import safe
from tertulia.markup.elements import ALLOWED, VOID, element, open_tag
from tertulia.markup.markdown import MAX_HTML
from tertulia.model.organization import Linkifier
from tertulia.state.decision import CommandContext
from tests.support import Turns
from tests.unit.markup_organization import (
    ANN,
    EVE,
    SERVING,
    STATE,
    html,
    organization,
    path,
    rendered,
)

FORMULA = katex.ALLOWED | set(katex.MATHML)
SCHEMES = {"", "http", "https", "ftp", "mailto", "tel", "sms", "xmpp", "news"}


class Checker(HTMLParser):
    """Parses HTML as a browser would, and refuses what isn't allowed in a message."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements = 0
        self.layouts = 0
        """The nesting depth within a formula's layout."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements += 1
        if tag in FORMULA:
            assert "math" in {tag, *self.open}
            assert not {name for name, _ in attrs} & {"href", "style", "class", "id"}
            assert not [name for name, _ in attrs if name.startswith("on")]
        elif self.layouts:
            # HTMLParser lowercases attribute names.
            allowed = {name.lower(): rule for name, rule in katex.LAYOUT[tag].items()}
            for name, value in attrs:
                assert name == "xmlns" or allowed[name].fullmatch(value or ""), (tag, name, value)
        else:
            assert tag in ALLOWED
            assert {name for name, _ in attrs} <= ALLOWED[tag], tag
        values = dict(attrs)
        for name in ("href", "src"):
            if name in values:
                assert urlsplit(values[name] or "").scheme.lower() in SCHEMES
        if "style" in values and not self.layouts:
            aligned = {f"text-align: {side};" for side in ("left", "center", "right")}
            pictured = re.fullmatch(
                r'background-image: url\("/[\w./-]*"\)', values["style"] or "", re.ASCII
            )
            assert values["style"] in aligned if tag in {"td", "th"} else pictured
        if self.layouts or values.get("class") == "katex-html":
            self.layouts += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.layouts = max(0, self.layouts - 1)

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError("a declaration")

    def handle_pi(self, data: str) -> None:
        raise AssertionError("an instruction")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError("a declaration")


def checked(shown: str) -> int:
    """The number of elements in the HTML. Fails unless all are allowed and properly nested."""
    checker = Checker()
    checker.feed(shown)
    checker.close()
    assert checker.open == []
    return checker.elements


PARTS = [
    *("[", "]", "](", ")", "*", "**", "***", "`", "``", "```", "~~~", "~~", "_", "$$", "$"),
    *("@**", "@_**", "@*", "#**", ">", "> ", "<", ">", "&", "&lt;", '"', "'", "\\", "|", "|-|"),
    *("Ann", "cooks", "tea & cake v1.0", ":", ":tada:", "👍", "<time:", "<time:0>", "#12"),
    *("http://", "http://a.example", "javascript:", "example.com", "a@b.com", "![", "!["),
    *("<b onclick=x>", "<script>", "</p>", "<!--", "-->", "<img src=x onerror=y>", "&#106;"),
    *("\n", "\n\n", " ", "  ", "    ", "\t", "* ", "1. ", "# ", "---", "quote\n", "spoiler "),
    *("math\n", "python\n", "\\frac{", "}", "{", "^", "\\text{", "\\color{", "\x00", "\u202e"),
    *(path("pic.png"), path("sound.mp3"), "[t](" + path("film.mp4") + ")", ":)", "<3"),
]


@given(st.lists(st.sampled_from(PARTS), max_size=40))
@settings(max_examples=600, deadline=None)
def test_only_allowed_elements_appear(parts: list[str]) -> None:
    checked(html("".join(parts), EVE))


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_renders(text: str) -> None:
    checked(html(text, EVE))


LINES = [
    *("", "> ", ">", "> > ", "* ", "  * ", "    * ", "1. ", "  ", "    ", "# ", ">     ", "* > "),
    *("1. ```\n", "```\n", "~~~\n", "```quote\n", "````spoiler x\n", "> ```\n", "---\n", "\n"),
]


@given(st.lists(st.sampled_from(LINES), max_size=25))
@settings(max_examples=600, deadline=None)
def test_no_text_gets_lost(begins: list[str]) -> None:
    content = "\n".join(f"{begin}word{number}end" for number, begin in enumerate(begins))
    shown = html(content)
    checked(shown)
    for number in range(len(begins)):
        assert f"word{number}end" in shown


@given(st.text(alphabet="\\{}^_&a1+()[]|'\"<> \nfractextsqrtleftrightbeginendmatrix", max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_formula_renders(text: str) -> None:
    checked(html(f"```math\n{text}\n```"))


def test_no_other_element_or_attribute_can_be_injected() -> None:
    with pytest.raises(KeyError):
        open_tag("script")
    with pytest.raises(ValueError, match="no attribute onclick"):
        element("a", {"onclick": "x"})
    assert element("a", {"href": '"><script>'}, "x") == ('<a href="&quot;&gt;&lt;script&gt;">x</a>')


LENGTH = 10_000
HOSTILE = [
    *("[", "]", "*", "**", "`", "`` `", "@**", "@**a", "@*", "> ", ">", ">\n", "_", "~~", "#**"),
    *("<", "<b>", "http://", "http://a.b/(", "http://a.b/)", "*a ", "```\n", "```quote\n", "~~~\n"),
    *(
        "[a](",
        "](",
        "[](x)",
        "[x](((",
        "![",
        "[[](",
        "(",
        ":",
        ":a",
        "$$a",
        "$",
        "$$a$ ",
        "a.",
        "a@",
    ),
    *(
        "a@b.",
        "www.a.com ",
        "* ",
        "* a\n",
        "1. ",
        "- \n",
        "|",
        "|a|b|\n|-|-|\n",
        "|a|\n",
        "&",
        "\\",
    ),
    *("👍", "❤️", "🇺🇸", "**a*", "a**", "***a", "<time:", "<time:1>", "#1 ", "#1", "\n", "    a\n"),
    *("\t", "# a\n", "~~a", "x", "é", "$$x$$", "AB-1 ", f"[a]({path('pic.png')}) ", "  * a\n", " "),
]


FAMILIES = [
    "[a](" + " " * 9000 + "z",
    "[a](b" + " " * 9000 + "z z",
    "[a](b " + '"' * 9000,
    "|a" * 1000 + "\n" + "|-" * 1000 + "\n" + "a\n" * 3000,
    ("|a" * 100 + "\n" + "|-" * 100 + "\n" + "a\n" * 500 + "\n") * 7,
    "    |:|\n" * 1200,
    "--\n" * 3300,
    "$$a|a|\n" + ">     |a|b|\n|-|-|\n" * 500,
    "<time:1a> " * 1000,
    "http://[" * 1200,
]


@pytest.mark.parametrize("content", FAMILIES, ids=range(len(FAMILIES)))
def test_combinations_of_markup_render_fast(content: str) -> None:
    begun = time.process_time()
    shown = html(content, EVE)
    # Just as generous: some of them used to take hours, others ten times this limit.
    assert time.process_time() - begun < 5
    assert checked(shown) < LENGTH * 3


def test_linkifiers_with_equal_matches_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = organization()
    patterns = ["x[a ]+", *(f"ab{{0,{number}}}" for number in range(60))]
    for number, pattern in enumerate(patterns, start=100):
        state.linkifiers.put(
            Linkifier(
                id=number, order=number, pattern=pattern, url_template="https://links.example/"
            )
        )
    calls = 0

    def counted(url: str) -> str | None:
        nonlocal calls
        calls += 1
        return safe(url)

    monkeypatch.setattr(links, "safe", counted)
    shown = rendered("x " + "a " * 4900, EVE, state).html
    assert "https://links.example/" in shown
    assert calls <= links.MAX_MATCHES


async def test_linkifiers_are_compiled_once() -> None:
    state, count = organization(), 2 * links._SET_SIZE
    for number in range(100, 100 + count):
        state.linkifiers.put(
            Linkifier(
                id=number, order=number, pattern=f"K{number}-[0-9]+", url_template="https://a.b/"
            )
        )
    text = " ".join(f"K{number}-1" for number in range(100, 100 + count))
    before = links._compilations()
    async with Turns() as turns:
        await links.compile_linkifiers(state, text)
    assert turns.count >= count
    compiled = links._compilations()
    assert compiled - before >= count
    # Now they are cached, even if one of them is otherwise equal to another.
    assert len(links.linkifier_matches(state, text)) == count
    assert links._compilations() == compiled
    last = state.linkifiers[100 + count - 1]
    state.linkifiers.put(msgspec.structs.replace(last, pattern="other"))
    assert len(links.linkifier_matches(state, text)) == count - 1
    assert links._compilations() == compiled + 1  # And the set with it.


def test_linkifiers_that_are_too_complex_together_are_tried_one_by_one() -> None:
    state = organization()
    for number in range(100, 130):
        pattern = rf"[a-z\pL]{{1,5}}{number}"
        state.linkifiers.put(
            Linkifier(id=number, order=number, pattern=pattern, url_template="https://a.b/")
        )
    (patterns,) = links._linkifiers(state).sets
    assert links._search_set(patterns) is None
    assert len(links.linkifier_matches(state, "é105 and é129 and é130")) == 2


@pytest.mark.parametrize("rows", [500, 1000])
def test_lines_that_may_belong_to_a_quotation_are_scanned_a_bounded_number_of_times(
    rows: int,
) -> None:
    assert _calls(">     |a|b|\n|-|-|\n" * rows) < 2_000_000


@pytest.mark.parametrize("part", HOSTILE)
def test_ten_thousand_repetitions_render_fast(part: str) -> None:
    begun = time.process_time()
    checked(html(part * (LENGTH // len(part)), EVE))
    # Generous: each takes some hundredths of a second, and anything quadratic in its length would
    # take minutes.
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "content",
    [
        "> " * 400 + "deep",
        "".join("  " * depth + "* a\n" for depth in range(90)),
        "\n".join("`" * (150 - depth) + "quote" for depth in range(140)) + "\ndeep",
        "[" * 400 + "deep" + "](http://a.example)" * 400,
        "*a **b " * 300 + "deep",
    ],
    ids=["quotations", "lists", "fences", "links", "emphasis"],
)
def test_too_deeply_nested_markup_is_text(content: str) -> None:
    shown = html(content)
    checked(shown)
    last = "deep" if "deep" in content else "* a"
    assert last in shown


@pytest.mark.parametrize("part", ["> ", "[a](", "`", "*", "@**", "http://a.b/("])
def test_twice_the_text_takes_about_twice_the_work(part: str) -> None:
    # Counted, not timed: function calls don't depend on the machine.
    once, twice = (_calls(part * length) for length in (1000, 2000))
    assert twice < once * 3


def _calls(content: str) -> int:
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.runcall(html, content)
    stats = pstats.Stats(profile)
    return int(stats.total_calls)  # type: ignore[attr-defined]  # it is there at run time


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ("🇩🇪", "🇩🇪🇩🇪"),
        ("$$a$$ ", "$$a$$ $$a$$"),
        ("```py\na=1\n```\n", '<div class="codehilite" data-code-language="Python">'),
        ("@**Eve**", "@"),
        ("http://a.b/c ", "http://a.b/c"),
        ("&", "&amp;&amp;"),
    ],
)
def test_the_html_of_a_message_is_bounded(part: str, shown: str) -> None:
    content = (part * 10_000)[:10_000]
    found = rendered(content)
    assert len(found.html.encode()) <= MAX_HTML
    assert shown in found.html
    checked(found.html)


def test_many_emoji_cost_few_steps_each() -> None:
    steps = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal steps
        steps += event in {"call", "c_call"}

    content = "今日は😀、" * 1000
    html(content)  # Load the tables first.
    sys.setprofile(count)
    try:
        html(content)
    finally:
        sys.setprofile(None)
    assert steps < 9 * 1000


def test_a_usual_message_keeps_its_emoji() -> None:
    assert html("🇩🇪 " * 200).count('class="emoji') == 200


@pytest.mark.parametrize(
    "content",
    [
        "* a\n" * 2500,
        "* a\nb\n" * 1600,
        "* a\n1. b\n" * 1100,
        "1. a\n   * b\n     * c\n" * 500,
        "```quote\n" + "* a\n" * 2400,
        "*a* " * 2500,
        "*a*\n\n" * 2000,
        "a\n" * 5000,
    ],
    ids=lambda content: content[:12],
)
async def test_a_long_message_is_rendered_in_many_short_steps(
    content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others get a turn after a few tokens, however they are nested."""
    monkeypatch.setattr(markdown, "STEP_SECONDS", 0)
    context = CommandContext(STATE, 0, ANN)
    tokens: list[int] = [0]
    real = Token.__init__

    def init(self: Token, *arguments: Any, **keywords: Any) -> None:
        tokens[-1] += 1
        real(self, *arguments, **keywords)

    monkeypatch.setattr(Token, "__init__", init)
    task = asyncio.create_task(SERVING.rendered(context, content))
    while not task.done():
        await asyncio.sleep(0)
        tokens.append(0)
    assert max(tokens) <= 20
    assert sum(tokens) >= 5000
    assert (await task) == rendered(content)
