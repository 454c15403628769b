"""Untrusted HTML converted to Markdown."""

import pytest

from tertulia.outbound.html_markdown import markdown, plain


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h2>A <i>b</i></h2><p>c</p>", "A *b*\n\nc"),
        ("<h1>A</h1>b", "**A**\n\nb"),
        ('<a href="javascript:x()">j</a> <a href="https://x.y/z">l</a>', "j [l](https://x.y/z)"),
        (
            '<img src="https://x.y/p.png" alt="p"><img src="data:x" alt="q">',
            "[p](https://x.y/p.png)q",
        ),
        ("<pre>a\n\n  b\n~~~</pre>", "~~~\na\n\n  b\n~~~"),
        ("<ul><li>a<li>b</ul>", "* a\n* b"),
        ("<script>x</script><style>y</style>", ""),
        ("<div>" * 20_000 + "deep <b>down</b>", "deep\ndown"),
    ],
)
def test_html_becomes_markdown(html: str, text: str) -> None:
    assert markdown(html, 10_000) == text


def test_long_html_ends_with_a_complete_block() -> None:
    assert markdown("<p>first</p><p>second</p>", 12) == "first\n\n…"
    assert markdown(f"<p>{'word ' * 50}</p>", 12) == plain("word word word", 12) == "word word w…"
