"""Markdown to HTML: inline markup."""

import pytest

from tertulia.state.state import State
from tests.unit.markup_organization import line, rendered


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("hello", "hello"),
        ("one\ntwo", "one<br>\ntwo"),
        ("**x**", "<strong>x</strong>"),
        ("*x*", "<em>x</em>"),
        ("***x***", "<strong><em>x</em></strong>"),
        ("***x** y*", "<em><strong>x</strong> y</em>"),
        ("**x *y***", "<strong>x <em>y</em></strong>"),
        ("***a** b **c***", "<em><strong>a</strong> b <strong>c</strong></em>"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("* x*", None),
        ("*x", "*x"),
        ("**x*", "*<em>x</em>"),
        ("snake_case _x_ __y__", "snake_case _x_ __y__"),
        ("~~gone~~ ~x~", "<del>gone</del> ~x~"),
        ("~~ gone ~~ ~~b ~~", "<del> gone </del> <del>b </del>"),
        ("a ~~ b", "a ~~ b"),
        (
            "[](/x) [ ](/y)",
            '<a href="/x">/x</a> <a href="/y">/y</a>',
        ),
        ("~~*a*~~", "<del><em>a</em></del>"),
        ("`*a* <b>`", "<code>*a* &lt;b&gt;</code>"),
        ("` a `", "<code> a </code>"),
        ("`` a ` b ``", "<code> a ` b </code>"),
        ('`a &amp; "b"`', "<code>a &amp;amp; &quot;b&quot;</code>"),
        ("`a ``b`` c", "`a <code>b</code> c"),
        ("``", "``"),
        (r"\*a\* \`b\` \x \\", r"*a* `b` \x " + "\\"),
        ("<b>", "&lt;b&gt;"),
        ("<!-- x -->", "&lt;!-- x --&gt;"),
        ("\"q\" 'p'", "\"q\" 'p'"),
        ("a & b &amp; c &lt; &copy; &bad", "a &amp; b &amp; c &lt; &copy; &amp;bad"),
        ("[a]: http://a.example", '[a]: <a href="http://a.example">http://a.example</a>'),
        ("[a][b] [^1]", "[a][b] [^1]"),
        ("a\tb", "a\tb"),
        ("a\x00b", "a\ufffdb"),
        ("שלום 👋🏽x", None),
        ("", None),
    ],
)
def test_each_inline_syntax_has_its_element(content: str, expected: str | None) -> None:
    if expected is None:
        assert rendered(content).html == rendered(content).html
    else:
        assert line(content) == expected


def test_empty_text_renders_as_nothing() -> None:
    assert rendered("").html == ""
    assert rendered(" \n ").html == ""


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<time:2024-03-07T15:00:00-08:00>", "2024-03-07T23:00:00Z"),
        ("<time:2024-03-07T15:00:00>", "2024-03-07T15:00:00Z"),
        ("<time:2024-03-07 15:00>", "2024-03-07T15:00:00Z"),
        ("<time:2024-03-07>", "2024-03-07T00:00:00Z"),
        ("<time:1709823600>", "2024-03-07T15:00:00Z"),
        ("<time:Mar 7 2024, 3:00 PM>", "2024-03-07T15:00:00Z"),
        ("<time:7 March 2024>", "2024-03-07T00:00:00Z"),
        ("<time:Thursday, March 7th, 2024 at 3pm>", "2024-03-07T15:00:00Z"),
        ("<time:1st of July 2024, 12:30 a.m.>", "2024-07-01T00:30:00Z"),
        ("<time:2024-03-07T15:00 America/New_York>", "2024-03-07T20:00:00Z"),
        ("<time:2024-07-07 15:00 Europe/Madrid>", "2024-07-07T13:00:00Z"),
        ("<time:Mar 7 2024, 3:00 PM EST>", "2024-03-07T20:00:00Z"),
        ("<time:2024-03-07 15:00 ist>", "2024-03-07T09:30:00Z"),
        ("<time:Thu, 07 Mar 2024 15:00:00 +0100>", "2024-03-07T14:00:00Z"),
    ],
)
def test_a_time_is_shown_as_typed_and_given_in_utc(content: str, expected: str) -> None:
    text = content.removeprefix("<time:").removesuffix(">")
    assert line(content) == f'<time datetime="{expected}">{text}</time>'


@pytest.mark.parametrize(
    "content",
    [
        "<time:>",
        "<time:soon>",
        "<time:99999999999999>",
        "<time:2024-13-01>",
        "<time:9999-99>",
        "<time:2024-03-07 15:00 Nowhere/City>",
        "<time:2024-03-07 15:00 ../x>",
        "<time:2024-03-07 15:00 XYZ>",
        "<time:2024-03-07 15:00 America/>",
    ],
)
def test_an_invalid_time_is_text(content: str) -> None:
    assert line(content) == content.replace("<", "&lt;").replace(">", "&gt;")


@pytest.mark.parametrize(
    ("content", "is_me"),
    [("/me waves", True), ("/me a\n\nb", False), ("/men", False), ("/me", False), ("x", False)],
)
def test_a_me_message_is_one_paragraph(content: str, is_me: bool) -> None:
    found = rendered(content)
    assert found.is_me is is_me
    assert found.html.startswith(f"<p>{content.split(chr(10), 1)[0]}")


@pytest.mark.parametrize(
    "content", ["/poll Tea?\n- yes", "/todo List\nmilk: two"], ids=["poll", "todo"]
)
def test_widgets_are_ordinary_text(content: str) -> None:
    assert rendered(content).html.startswith(f"<p>{content.split(chr(10), 1)[0]}")


def test_the_same_text_always_renders_alike() -> None:
    content = "@**Ann** *a* #12 :tada: $$x$$"
    assert rendered(content) == rendered(content)


def test_an_organization_can_render_text_while_it_is_created() -> None:
    shown = rendered("**a** `b` #12 :tada:\n```\n1\n```", author_id=None, state=State()).html
    assert shown.startswith("<p><strong>a</strong> <code>b</code> #12 <span ")
