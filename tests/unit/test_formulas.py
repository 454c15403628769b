"""Formulas: laid out by KaTeX, or as MathML if it isn't installed."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from markdown_it.rules_core import StateCore

from tertulia.markup import blocks, katex, worker_rendering
from tertulia.markup.context import Steps
from tertulia.markup.inline import MAX_FORMULA
from tertulia.markup.worker_rendering import MAX_FORMULA_SIZE, Formula, RenderCache
from tertulia.state.decision import CommandContext
from tests.unit.markup_organization import ANN, SERVING, STATE, html, line
from tests.unit.test_markup_safety import checked

with_katex = pytest.mark.skipif(
    not katex.is_installed(), reason="the web client is not built: it has KaTeX's script in it"
)


@pytest.fixture
def without_katex(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without KaTeX."""
    monkeypatch.setattr(katex, "_engine", lambda: None)
    monkeypatch.setattr(worker_rendering, "formula_cache", RenderCache())


KATEX = (
    '<span class="katex"><span class="katex-mathml">'
    '<math xmlns="http://www.w3.org/1998/Math/MathML"{}><semantics>{}'
    '<annotation encoding="application/x-tex">{}</annotation></semantics></math></span>'
    '<span class="katex-html" aria-hidden="true">{}</span></span>'
)
SQUARE = "<mrow><msup><mi>a</mi><mn>2</mn></msup></mrow>"
HALF = "<mrow><mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac></mrow>"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("$$a^2$$", KATEX.format("", SQUARE, "a^2", "a^2")),
        (
            "x $$a^2$$ y",
            "x " + KATEX.format("", SQUARE, "a^2", "a^2") + " y",
        ),
        ("$$\\frac{$$", '<span class="tex-error">$$\\frac{$$</span>'),
        ("$$\\nonsense$$", '<span class="tex-error">$$\\nonsense$$</span>'),
        ("$$<b>\\frac$$", '<span class="tex-error">$$&lt;b&gt;\\frac$$</span>'),
        ("$$$a$$$", "$$$a$$$"),
        ("$$a\nb$$", "$$a<br>\nb$$"),
        ("$a$ $$", "$a$ $$"),
        ("`$$a$$`", "<code>$$a$$</code>"),
    ],
)
def test_an_inline_formula(without_katex: None, content: str, expected: str) -> None:
    assert html(content) == f"<p>{expected}</p>"


def test_a_block_of_formulas_is_one_paragraph(without_katex: None) -> None:
    first = KATEX.format(' display="block"', SQUARE, "a^2", "a^2")
    second = KATEX.format(' display="block"', HALF, "\\frac{1}{2}", "\\frac{1}{2}")
    assert html("```math\na^2\n\n\\frac{1}{2}\n```") == (
        f'<p><span class="katex-display">{first}</span>\n'
        f'<span class="katex-display">{second}</span></p>'
    )
    assert html("```math\n\\frac{\n```") == '<p><span class="tex-error">\\frac{</span></p>'


HOSTILE = [
    "\\text{<script>alert(1)</script>}",
    "\\href{javascript:alert(1)}{x}",
    "\\url{javascript:alert(1)}",
    "\\includegraphics[height=1em]{https://a.example/x.png}",
    "\\htmlClass{x}{y} \\htmlId{x}{y} \\htmlData{a=b}{y}",
    "\\htmlStyle{background:url(//x)}{y}",
    "\\class{x}{y}",
    "\\style{background:url(//x)}{y}",
    "\\newcommand{\\x}{\\x\\x}\\x",
    "\\def\\x{\\x}\\x",
    "\\def\\a{\\b\\b}\\def\\b{\\c\\c}\\def\\c{\\d\\d}\\def\\d{xxxxxxxxxx}\\a\\a\\a",
    "\\gdef\\sin{evil}\\sin",
    '\\color{red" onclick="x}{y}',
    "\\kern1000000em x \\rule{1000000em}{1000000em}",
    "{" * 500 + "}" * 500,
    "{" * 1900 + "a" + "}" * 1900,
    "\\frac{" * 200 + "1" + "}{2}" * 200,
    "a^" * 1990,
    "a+" * 1990,
    "\\left(" * 300,
    "\\begin{matrix}" * 200,
    "\\sqrt" * 700,
    "\x00\x01\x1b",
    "\\text{\ud800}",
    "x" * (MAX_FORMULA + 1),
]


@pytest.mark.parametrize("tex", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_formulas_are_text_or_harmless(tex: str) -> None:
    shown = html(f"```math\n{tex}\n```")
    checked(shown)
    assert "href=" not in shown
    assert "onclick=" not in re.sub("onclick=(&quot;|x)", "", shown)
    assert "url(" not in re.sub(r"<annotation.*?</annotation>|<span class=.tex-error.*", "", shown)
    sizes = [float(size) for size in re.findall(r"(?:width|height|margin\w*):(-?[\d.]+)em", shown)]
    assert all(abs(size) < 300 for size in sizes)


@pytest.mark.parametrize("tex", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_formulas_are_harmless_without_katex(without_katex: None, tex: str) -> None:
    shown = html(f"```math\n{tex}\n```")
    checked(shown)
    assert "href=" not in shown
    assert "style=" not in shown


@with_katex
def test_katex_lays_a_formula_out() -> None:
    shown = line("$$a^2$$")
    assert shown == (
        '<span class="katex"><span class="katex-mathml">'
        '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics>'
        "<mrow><msup><mi>a</mi><mn>2</mn></msup></mrow>"
        '<annotation encoding="application/x-tex">a^2</annotation></semantics></math></span>'
        '<span class="katex-html" aria-hidden="true"><span class="base">'
        '<span class="strut" style="height:0.8141em;"></span><span class="mord">'
        '<span class="mord mathnormal">a</span><span class="msupsub"><span class="vlist-t">'
        '<span class="vlist-r"><span class="vlist" style="height:0.8141em;">'
        '<span style="top:-3.063em;margin-right:0.05em;">'
        '<span class="pstrut" style="height:2.7em;"></span>'
        '<span class="sizing reset-size6 size3 mtight"><span class="mord mtight">2</span></span>'
        "</span></span></span></span></span></span></span></span></span>"
    )


@with_katex
@pytest.mark.parametrize("content", ["$$a^2$$", "```math\na^2\n```"])
def test_the_katex_span_has_the_two_parts_that_clients_look_for(content: str) -> None:
    (found,) = re.findall(
        r'<span class="katex"><span class="katex-mathml"><math xmlns="[^"]*"( display="block")?>'
        r'<semantics>.*<annotation encoding="application/x-tex">a\^2</annotation></semantics>'
        r'</math></span><span class="katex-html" aria-hidden="true">.*</span></span>',
        html(content),
    )
    assert bool(found) is content.startswith("```")


@with_katex
def test_katex_draws_symbols_without_glyphs() -> None:
    shown = line(r"$$\sqrt{\frac{x}{2}}$$")
    checked(shown)
    assert '<svg xmlns="http://www.w3.org/2000/svg"' in shown
    assert "<path d=" in shown


@with_katex
@pytest.mark.parametrize(
    ("content", "source"),
    [
        ("$$\\frac{$$", "$$\\frac{$$"),
        ("$$\\nonsense$$", "$$\\nonsense$$"),
        ("$$<b>\\frac$$", "$$&lt;b&gt;\\frac$$"),
    ],
)
def test_invalid_formulas_are_shown_as_source(content: str, source: str) -> None:
    assert line(content) == f'<span class="tex-error">{source}</span>'


@with_katex
def test_a_macro_is_limited_to_its_formula() -> None:
    assert "tex-error" not in line("$$\\gdef\\mine{x}\\mine$$")
    assert "tex-error" in line("$$\\mine$$")


@contextmanager
def limited_to(seconds: float) -> Iterator[None]:
    """Another limit of CPU time per formula."""
    engine = katex._engine()
    assert engine is not None
    engine.set_time_limit(seconds)
    try:
        yield
    finally:
        engine.set_time_limit(katex.MAX_SECONDS)


@with_katex
def test_formulas_of_a_message_are_laid_out_up_to_a_limit() -> None:
    content = "```math\n" + "\n\n".join(f"a_{n}" + "+a" * 1500 for n in range(3)) + "\n```"
    with limited_to(60):
        shown = html(content)
    checked(shown)
    assert shown.count('<span class="katex-display">') == 3
    # The last formulas appear without a layout.
    assert len(shown) < MAX_FORMULA_SIZE * 2


@with_katex
async def test_prepared_formulas_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_rendering, "formula_cache", RenderCache())
    content = "$$p_1$$ and\n```math\np_2\n\np_3\n```\n> * ~~~~math\n>   p_4\n>   ~~~~"
    await SERVING.rendered(CommandContext(STATE, 0, ANN), content)

    def never(tex: str, *, display: bool) -> str | None:
        raise AssertionError(f"{tex} is laid out")

    monkeypatch.setattr(katex, "formula", never)
    shown = html(content)
    assert shown.count('class="katex-html"') == 4
    assert "<mtext>" not in shown
    assert SERVING.render(CommandContext(STATE, 0, ANN), content).html == shown


async def test_many_messages_with_formulas_are_prepared_concurrently() -> None:
    context = CommandContext(STATE, 0, ANN)
    contents = [f"$$t_{n}$$ $$t_{n // 2}$$" for n in range(20)]
    await asyncio.gather(*(SERVING.rendered(context, content) for content in contents))
    shown = SERVING.render(context, " ".join(f"$$t_{n}$$" for n in range(20))).html
    assert "tex-error" not in shown
    assert "<mtext>" not in shown


def test_an_unprepared_formula_is_shown_as_source() -> None:
    shown = SERVING.render(CommandContext(STATE, 0, ANN), "$$u_1<u_2$$").html
    checked(shown)
    assert "<mtext>u_1&lt;u_2</mtext>" in shown


@with_katex
def test_cached_layouts_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: RenderCache[Formula] = RenderCache()
    monkeypatch.setattr(worker_rendering, "formula_cache", kept)
    monkeypatch.setattr(worker_rendering, "MAX_CACHED", 10_000)
    for number in range(50):
        line(f"$$k_{{{number}}}$$")
    assert Formula("k_{49}", display=False) in kept
    assert Formula("k_{0}", display=False) not in kept
    assert kept.size <= 10_000


@with_katex
def test_a_formula_that_takes_too_long_is_given_up() -> None:
    with limited_to(0.001):
        assert katex.formula("b+" * 1900, display=True) is None
    assert katex.formula("b+c", display=True) is not None


@with_katex
async def test_a_message_with_code_and_formulas_is_parsed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_rendering, "code_cache", RenderCache())
    monkeypatch.setattr(worker_rendering, "formula_cache", RenderCache())
    parsed: list[str] = []
    real = blocks.parse

    def parse(state: StateCore) -> Steps[None]:
        parsed.append(state.src)
        yield from real(state)

    monkeypatch.setattr(blocks, "parse", parse)
    content = "```python\n96\n```\n$$q_1$$ and\n```math\nq_2\n```"
    shown = (await SERVING.rendered(CommandContext(STATE, 0, ANN), content)).html
    assert '<span class="mi">96</span>' in shown
    assert shown.count('class="katex-html"') == 2
    assert parsed == [content]
