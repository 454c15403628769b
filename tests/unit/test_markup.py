"""Markdown as HTML: what is rendered, and that nothing else gets through."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.markup.render import Renderer
from tertulia.model.channels import Channel
from tertulia.model.users import User
from tertulia.state.organization import State

STATE = State()
for _user in (
    User(id=10, address="ann@example.com", full_name="Ann"),
    User(id=11, address="b@example.com", full_name="Ben <B>"),
    User(id=12, address="c@example.com", full_name="Twin"),
    User(id=13, address="d@example.com", full_name="Twin"),
):
    STATE.users.put(_user)
STATE.channels.put(Channel(id=3, name="tea & cake v1.0", created_at=0))
STATE.channels.put(Channel(id=4, name="secret", created_at=0, is_private=True))
RENDERER = Renderer()


def html(content: str) -> str:
    return RENDERER.render(STATE, content).html


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("hello", "<p>hello</p>"),
        ("one\ntwo\n\nthree", "<p>one<br>\ntwo</p>\n<p>three</p>"),
        ("<b>&amp;", "<p>&lt;b&gt;&amp;amp;</p>"),
        ("*a* **b** ***c***", "<p><em>a</em> <strong>b</strong> <em><strong>c</strong></em></p>"),
        ("snake_case _x_ __y__", "<p>snake_case _x_ __y__</p>"),
        ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
        ("~~gone~~", "<p><del>gone</del></p>"),
        ("`*a* <b>`", "<p><code>*a* &lt;b&gt;</code></p>"),
        ("> said\n> so", "<blockquote>\n<p>said<br>\nso</p>\n</blockquote>"),
        (
            "```\n<b> & *x*\n```",
            '<div class="codehilite"><pre><span></span><code>&lt;b&gt; &amp; *x*\n'
            "</code></pre></div>",
        ),
        (
            '```py"><script>\nx\n```',
            '<div class="codehilite" data-code-language="py&quot;&gt;&lt;script&gt;"><pre><span>'
            "</span><code>x\n</code></pre></div>",
        ),
        (
            "see http://a.example/b?c=1&d=2.",
            '<p>see <a href="http://a.example/b?c=1&amp;d=2">http://a.example/b?c=1&amp;d=2</a>.</p>',
        ),
        ("a@example.com", '<p><a href="mailto:a@example.com">a@example.com</a></p>'),
        ("javascript:alert(1) data:text/html,x", "<p>javascript:alert(1) data:text/html,x</p>"),
        ("[text](http://a.example)", None),
        (
            "#**tea & cake v1.0**",
            '<p><a class="stream" data-stream-id="3"'
            ' href="/#narrow/channel/3-tea-.26-cake-v1.2E0">#tea &amp; cake v1.0</a></p>',
        ),
        ("#**secret** #**nowhere**", "<p>#<strong>secret</strong> #<strong>nowhere</strong></p>"),
        ("@**Ann**", '<p><span class="user-mention" data-user-id="10">@Ann</span></p>'),
        ("@_**Ann**", '<p><span class="user-mention silent" data-user-id="10">Ann</span></p>'),
        ("@**|11**", '<p><span class="user-mention" data-user-id="11">@Ben &lt;B&gt;</span></p>'),
        ("@**Twin|13**", '<p><span class="user-mention" data-user-id="13">@Twin</span></p>'),
        ("@**Nobody**", "<p>@<strong>Nobody</strong></p>"),
        (
            "@**all**",
            '<p><span class="user-mention channel-wildcard-mention" data-user-id="*">@all'
            "</span></p>",
        ),
        ("@**topic**", '<p><span class="topic-mention">@topic</span></p>'),
        ("`@**Ann**`", "<p><code>@**Ann**</code></p>"),
    ],
)
def test_each_kind_of_markup_has_its_html(content: str, expected: str | None) -> None:
    if expected is None:  # Shown as written, the address in it being a bare link.
        assert html(content).startswith("<p>[text](<a href=")
    else:
        assert html(content) == expected


@pytest.mark.parametrize(
    ("content", "users", "everybody", "topic"),
    [
        ("@**Ann** and @**|11**", {10, 11}, False, False),
        ("@_**Ann** @_**all**", set(), False, False),
        ("@**everyone** @**topic**", set(), True, True),
        ("`@**Ann**`\n```\n@**all**\n```", set(), False, False),
        ("@**Nobody**", set(), False, False),
    ],
)
def test_what_is_said_aloud_is_a_mention(
    content: str, users: set[int], everybody: bool, topic: bool
) -> None:
    rendered = RENDERER.render(STATE, content)
    assert rendered.mentions == users
    assert (rendered.mentions_all, rendered.mentions_topic) == (everybody, topic)


@pytest.mark.parametrize(
    ("content", "is_me"), [("/me waves", True), ("/me a\n\nb", False), ("/men", False)]
)
def test_a_deed_is_one_paragraph(content: str, is_me: bool) -> None:
    assert RENDERER.render(STATE, content).is_me is is_me


HOSTILE = ["[", "*", "`", "@**", "> ", "_", "~~", "#**", "<", "http://", "*a ", "```\n"]


@pytest.mark.parametrize("part", HOSTILE)
def test_what_is_repeated_ten_thousand_times_still_renders(part: str) -> None:
    assert html(part * (10_000 // len(part)))


TAGS = re.compile(r"<(/?)([a-z]+)((?: [a-z-]+=\"[^\"<>]*\")*)>")
ALLOWED = {"p", "br", "em", "strong", "del", "code", "pre", "span", "div", "blockquote", "a"}


@given(st.lists(st.sampled_from([*HOSTILE, "Ann", "**", "<b onclick=x>", '"', "&", "\n", " x "])))
@settings(max_examples=300, deadline=None)
def test_no_element_gets_through_that_is_not_allowed(parts: list[str]) -> None:
    shown = html("".join(parts))
    assert {name for _, name, _ in TAGS.findall(shown)} <= ALLOWED
    assert "<" not in TAGS.sub("", shown)
