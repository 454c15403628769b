"""Markdown to HTML: paragraphs, headings, quotations, lists, tables, and code."""

import re

import msgspec
import pytest

from tertulia.markup import code, worker_rendering
from tertulia.markup.elements import escaped
from tertulia.state.decision import CommandContext
from tertulia.workers import TEXTS
from tests.unit.markup_organization import ANN, SERVING, STATE, html, organization, rendered

Q = "<blockquote>\n<p>{}</p>\n</blockquote>"
CODE = '<div class="codehilite"{}><pre><span></span><code>{}</code></pre></div>'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("one\n\ntwo", "<p>one</p>\n<p>two</p>"),
        ("# One", "<h1>One</h1>"),
        ("###### Six *x*", "<h6>Six <em>x</em></h6>"),
        ("####### Seven", "<p>####### Seven</p>"),
        ("#none", "<p>#none</p>"),
        ("#", "<p>#</p>"),
        ("# ", "<p>#</p>"),
        ("One\n---", "<p>One</p>\n<hr>"),
        ("One\n===", "<p>One<br>\n===</p>"),
        ("***", "<hr>"),
        ("--", "<p>--</p>"),
        ("> said\n> so", Q.format("said<br>\nso")),
        ("> said\nso", Q.format("said<br>\nso")),
        ("> a\n\nb", Q.format("a") + "\n<p>b</p>"),
        (">\nb", Q.format("b")),
        ("> a\n> \nb\nc\n\nd", Q.format("a</p>\n<p>b<br>\nc") + "\n<p>d</p>"),
        (">\n* b", "<blockquote>\n<ul>\n<li>b</li>\n</ul>\n</blockquote>"),
        ("> > a", f"<blockquote>\n{Q.format('a')}\n</blockquote>"),
        ("> * a\n      * b", "<blockquote>\n<ul>\n<li>a<br>\n* b</li>\n</ul>\n</blockquote>"),
        (">", "<p>&gt;</p>"),
        ("> \n>", "<p>&gt;<br>\n&gt;</p>"),
        ("a\n> b", f"<p>a</p>\n{Q.format('b')}"),
        ("```quote\na\n```\nb", f"{Q.format('a')}\n<p>b</p>"),
        ("~~~quote\na\n~~~", Q.format("a")),
        ("~~~quote *a*\nb\n~~~", Q.format("<em>a</em></p>\n<p>b")),
        ("~~~gone~~~ b ~~~~", "<p>~~~gone~~~ b ~~~~</p>"),
        ("```quote\na", Q.format("a")),
        (
            "````quote\n```quote\na\n```\nb\n````",
            f"<blockquote>\n{Q.format('a')}\n<p>b</p>\n</blockquote>",
        ),
        (
            "```quote\n```js\n1\n```\na\n```\nb",
            "<blockquote>\n"
            + CODE.format(' data-code-language="JavaScript"', '<span class="mf">1</span>\n')
            + "\n<p>a</p>\n</blockquote>\n<p>b</p>",
        ),
        (
            "```spoiler Who *did* it\nThe **cook**\n```",
            '<div class="spoiler-block"><div class="spoiler-header">\n<p>Who <em>did</em> it</p>\n'
            '</div><div class="spoiler-content" aria-hidden="true">\n'
            "<p>The <strong>cook</strong></p>\n</div></div>",
        ),
        (
            "```spoiler\na\n```",
            '<div class="spoiler-block"><div class="spoiler-header">\n'
            '</div><div class="spoiler-content" aria-hidden="true">\n<p>a</p>\n</div></div>',
        ),
    ],
)
def test_each_block_has_its_element(content: str, expected: str) -> None:
    assert html(content) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("* a\n* b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("* a\n- b\n+ c", "<ul>\n<li>a</li>\n<li>b</li>\n<li>c</li>\n</ul>"),
        ("x\n* a", "<p>x</p>\n<ul>\n<li>a</li>\n</ul>"),
        ("x\n2. a", '<p>x</p>\n<ol start="2">\n<li>a</li>\n</ol>'),
        ("x\n1984. a", "<p>x<br>\n1984. a</p>"),
        ("1. a\n2. b", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>"),
        ("1. a\n1. b", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>"),
        ("5. a\n5. b", '<ol start="5">\n<li>a</li>\n<li>b</li>\n</ol>'),
        ("1) a", "<p>1) a</p>"),
        ("*a", "<p>*a</p>"),
        ("* a\n  * b", "<ul>\n<li>a<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>"),
        ("1. a\n  * b", "<ol>\n<li>a<ul>\n<li>b</li>\n</ul>\n</li>\n</ol>"),
        ("1. a\n   * b", "<ol>\n<li>a<ul>\n<li>b</li>\n</ul>\n</li>\n</ol>"),
        ("* a\n * b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("* a\n  b", "<ul>\n<li>a<br>\nb</li>\n</ul>"),
        ("* a\n\n* b", "<ul>\n<li>\n<p>a</p>\n</li>\n<li>\n<p>b</p>\n</li>\n</ul>"),
        ("* a\n\nb", "<ul>\n<li>a</li>\n</ul>\n<p>b</p>"),
        ("*\n* a", "<ul>\n<li></li>\n<li>a</li>\n</ul>"),
        ("10. a", '<ol start="10">\n<li>a</li>\n</ol>'),
        ("1000. a", '<ol start="1000">\n<li>a</li>\n</ol>'),
        ("9999999999. a", "<p>9999999999. a</p>"),
        (
            "* ```\n  a\n  ```\n* b",
            f"<ul>\n<li>\n{CODE.format('', 'a' + chr(10))}\n</li>\n<li>b</li>\n</ul>",
        ),
        ("* ```\n  a\nb", f"<ul>\n<li>\n{CODE.format('', 'a' + chr(10))}\n</li>\n</ul>\n<p>b</p>"),
        ("* > a", f"<ul>\n<li>\n{Q.format('a')}\n</li>\n</ul>"),
        ("> * a", "<blockquote>\n<ul>\n<li>a</li>\n</ul>\n</blockquote>"),
    ],
)
def test_lists_render_as_written(content: str, expected: str) -> None:
    assert html(content) == expected


def test_a_table_has_a_head_rows_and_alignment() -> None:
    assert html("|a|b|c|d|\n|:-|:-:|-:|-|\n|1|*2*|3|4|") == (
        '<table>\n<thead>\n<tr>\n<th style="text-align: left;">a</th>\n'
        '<th style="text-align: center;">b</th>\n<th style="text-align: right;">c</th>\n'
        '<th>d</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td style="text-align: left;">1</td>\n'
        '<td style="text-align: center;"><em>2</em></td>\n'
        '<td style="text-align: right;">3</td>\n<td>4</td>\n</tr>\n</tbody>\n</table>'
    )


_RUN = '<span class="ch">{}</span>\n<span class="mi">1</span>\n'


_CSS_PHP = (
    '<span class="cp">&lt;?</span><span class="o">=</span> <span class="mi">1</span>'
    ' <span class="cp">?&gt;</span>\n'
)


@pytest.mark.parametrize(
    ("content", "language", "shown"),
    [
        ("```\n<b> & *x* \"q\" 'p'\n```", None, "&lt;b&gt; &amp; *x* &quot;q&quot; &#39;p&#39;\n"),
        ("```text\n1\n```", None, "1\n"),
        ("```none\n1\n```", None, "1\n"),
        ("~~~~\n```\n~~~~", None, "```\n"),
        ("```\nopen", None, "open\n"),
        ("~~~ well then\na\n~~~", None, "well then\na\n"),
        ("~~~ text well then\na\n~~~", None, "well then\na\n"),
        ("```php\n1;\n```", "PHP", '<span class="mi">1</span><span class="p">;</span>\n'),
        ("```py2\n1\n```", "Python 2.x", '<span class="mi">1</span>\n'),
        ("````\n```\n````", None, "```\n"),
        ("```\n````\nx\n````\n```", None, "````\nx\n````\n"),
        ("~~~\n~~~~\n~~~  ", None, "~~~~\n"),
        ("```css+php\n<?= 1 ?>\n```", "CSS+PHP", _CSS_PHP),
        ("    a\n    b", None, "a\nb\n"),
        ("```klingon\n1\n```", "klingon", "1\n"),
        ("```\n\n\n  1\n\n2\n\n```", None, "  1\n\n2\n"),
        ("```\n\n```", None, ""),
        ("```\n#!python\n1\n```", None, _RUN.format("#!python")),
        ("```\n#!/usr/bin/python\n1\n```", None, _RUN.format("#!/usr/bin/python")),
        ("```\n#!/usr/bin/env python3\n1\n```", None, _RUN.format("#!/usr/bin/env python3")),
        ("```text\n#!python\n1\n```", None, "#!python\n1\n"),
        ("```\n#!/bin/klingon\n1\n```", None, "#!/bin/klingon\n1\n"),
        ("```tex\n```", "TeX", ""),
        ("```latex\n```", "TeX", ""),
        ("```.py\n1\n```", "Python", '<span class="mi">1</span>\n'),
        ("```{.py}\n1\n```", "Python", '<span class="mi">1</span>\n'),
        ("``` python \n1\n```", "Python", '<span class="mi">1</span>\n'),
        (
            "```python\ndef f(x): return '<b>'\n```",
            "Python",
            '<span class="k">def</span><span class="w"> </span><span class="nf">f</span>'
            '<span class="p">(</span><span class="n">x</span><span class="p">):</span> '
            '<span class="k">return</span> <span class="s1">&#39;&lt;b&gt;&#39;</span>\n',
        ),
        (
            '```python\n"""a\nb"""\n```',
            "Python",
            '<span class="sd">&quot;&quot;&quot;a</span>\n'
            '<span class="sd">b&quot;&quot;&quot;</span>\n',
        ),
        ('```py"><script>\nx\n```', "py&quot;&gt;&lt;script&gt;", "x\n"),
    ],
)
def test_code_is_highlighted_in_its_language(
    content: str, language: str | None, shown: str
) -> None:
    attribute = "" if language is None else f' data-code-language="{language}"'
    assert html(content) == CODE.format(attribute, shown)


def test_code_without_a_language_uses_the_organization_s() -> None:
    state = organization()
    state.realms.put(msgspec.structs.replace(STATE.realm, default_code_block_language="python"))

    def shown(content: str) -> str:
        return rendered(content, state=state).html

    assert shown("```\n1\n```") == html("```python\n1\n```")
    assert shown("```text\n1\n```") == html("```\n1\n```")
    assert shown("    1") == html("    1")


def test_code_that_takes_too_long_to_highlight_is_plain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert code.highlighted("1\n", "Python") == '<span class="mi">1</span>\n'
    monkeypatch.setattr(code, "MAX_SECONDS", -1)
    assert code.highlighted("1\n", "Python") == "1\n"


@pytest.fixture(autouse=True)
def nothing_lost_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """No language is paused because of other tests."""
    monkeypatch.setattr(worker_rendering, "_lost", worker_rendering.LostLanguages())


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up earlier on code that would take years."""
    monkeypatch.setattr(worker_rendering, "MAX_CODE_SECONDS", 0.05)


BOMBS = [
    ("bash", "$'" + "\\" * 50),
    ("fish", '"' + "\\" * 60),
    ("scala", '"' + "\\" * 60),
    ("docker", "RUN " + '"' + "\\" * 60),
    ("common-lisp", "(*" + "a." * 60),
]
"""Code for which a grammar needs, or needed, exponential time within one word."""


@pytest.mark.parametrize(("language", "source"), BOMBS)
async def test_code_that_a_grammar_cannot_finish_is_plain(
    language: str, source: str, impatient: None
) -> None:
    context = CommandContext(STATE, 0, ANN)
    content = f"```{language}\n{source}\n```"
    # It would take years without the worker process.
    await SERVING.rendered(context, content)
    shown = SERVING.render(context, content).html
    assert re.sub("<[^>]+>", "", shown) == escaped(source) + "\n"


async def test_other_code_is_still_highlighted_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = CommandContext(STATE, 0, ANN)
    bomb = "```bash\n$'" + "\\" * 54 + "\n```"
    with monkeypatch.context() as sooner:
        sooner.setattr(worker_rendering, "MAX_CODE_SECONDS", 0.05)
        await SERVING.rendered(context, bomb)
    lost = TEXTS.process_id
    content = "```python\n99\n```"
    await SERVING.rendered(context, content)
    assert '<span class="mi">99</span>' in SERVING.render(context, content).html
    # The code is known to be slow, and no process is started for it again.
    running = TEXTS.process_id
    await SERVING.rendered(context, bomb)
    assert lost != TEXTS.process_id == running


async def test_a_language_that_keeps_ending_workers_is_paused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = worker_rendering.LostLanguages()
    monkeypatch.setattr(worker_rendering, "_lost", lost)
    context = CommandContext(STATE, 0, ANN)
    with monkeypatch.context() as sooner:
        sooner.setattr(worker_rendering, "MAX_CODE_SECONDS", 0.05)  # The code would take years.
        for number in range(worker_rendering.MAX_LOST):
            assert not lost.is_paused("Bash")
            await SERVING.rendered(context, "```bash\n$'" + "\\" * (70 + 2 * number) + "\n```")
    assert lost.is_paused("Bash")
    content = "```bash\necho hello\n```"
    await SERVING.rendered(context, content)
    assert "<span class=" not in SERVING.render(context, content).html
    await SERVING.rendered(context, "```python\n97\n```")
    assert 'class="mi"' in SERVING.render(context, "```python\n97\n```").html
    # Then it's highlighted again.
    monkeypatch.setattr(worker_rendering, "LOST_SECONDS", 0)
    await SERVING.rendered(context, content)
    assert "<span class=" in SERVING.render(context, content).html


def test_unprepared_code_is_plain() -> None:
    content = "```python\n98\n```"
    plain = CODE.format(' data-code-language="Python"', "98\n")
    assert SERVING.render(CommandContext(STATE, 0, ANN), content).html == plain
    assert html(content) != plain


def test_every_highlighted_language_is_known() -> None:
    assert sorted(code.HIGHLIGHTED) == sorted(
        name for name in code.HIGHLIGHTED if code._lexer(name) is not None
    )


def test_fences_within_a_line_are_inline_code() -> None:
    assert html("```a``` b") == "<p><code>a</code> b</p>"
