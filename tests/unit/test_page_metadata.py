"""Metadata of web pages."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.model.messages import LinkPreview
from tertulia.outbound.pages import MAX_DESCRIPTION, MAX_TITLE, described

URL = "https://a.example/b/c"


def og(name: str, content: str) -> str:
    return f'<meta property="og:{name}" content="{content}">'


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<title>T</title>", LinkPreview(title="T")),
        ("<title>T</title>" + og("title", "O"), LinkPreview(title="O")),
        ('<meta name="description" content="D">', LinkPreview(description="D")),
        (
            '<meta name="description" content="D">' + og("description", "O"),
            LinkPreview(description="O"),
        ),
        (og("image", "https://i.example/x.png"), LinkPreview(image="https://i.example/x.png")),
        (og("image", "/x.png"), LinkPreview(image="https://a.example/x.png")),
        (og("image", "x.png"), LinkPreview(image="https://a.example/b/x.png")),
        (og("image", "//i.example/x.png"), LinkPreview(image="https://i.example/x.png")),
        (og("image", "javascript:alert(1)"), LinkPreview()),
        (og("image", "data:image/png;base64,xx"), LinkPreview()),
        (og("image", "http://["), LinkPreview()),
        (og("image", "http://a.example/" + "x" * 3000), LinkPreview()),
        ('<link rel="image_src" href="/x.png">', LinkPreview(image="https://a.example/x.png")),
        (
            '<meta name="twitter:title" content="T"><meta name="twitter:image" content="/x.png">',
            LinkPreview(title="T", image="https://a.example/x.png"),
        ),
        ("<META PROPERTY='OG:TITLE' CONTENT='a &amp; &lt;b&gt;'>", LinkPreview(title="a & <b>")),
        ("<title> a \n\t b\u202e\x07 c </title>", LinkPreview(title="a b c")),
        (og("title", "x" * 400), LinkPreview(title="x" * (MAX_TITLE - 1) + "…")),
        (
            og("description", "x" * 4000),
            LinkPreview(description="x" * (MAX_DESCRIPTION - 1) + "…"),
        ),
        (og("title", ""), LinkPreview()),
        ("", LinkPreview()),
        ("<", LinkPreview()),
        ("plain text", LinkPreview()),
        ("<title>cut of", LinkPreview(title="cut of")),
        (
            '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><title>a&e;b</title>',
            LinkPreview(title="a&e;b"),
        ),
        ("<title>" + "<b>" * 5000 + "x", None),
        ("<div>" * 20_000 + "<title>x</title>", None),
    ],
)
def test_a_page_is_described_by_its_metadata(page: str, expected: LinkPreview | None) -> None:
    found = described(page.encode(), URL)
    if expected is not None:
        assert found == expected


@pytest.mark.parametrize(
    ("page", "content_type", "title"),
    [
        ("<title>é</title>".encode(), "", "é"),
        ("<title>é</title>".encode(), "text/html; charset=utf-8", "é"),
        ("<title>é</title>".encode("latin-1"), "text/html; charset=ISO-8859-1", "é"),
        ("<title>é</title>".encode("latin-1"), 'text/html; charset="iso-8859-1"', "é"),
        ('<meta charset="iso-8859-1"><title>é</title>'.encode("latin-1"), "text/html", "é"),
        ("<title>日本</title>".encode("shift_jis"), "text/html; charset=shift_jis", "日本"),
        (b"<title>e</title>", "text/html; charset=nobody-knows", "e"),
    ],
)
def test_a_page_is_read_in_its_encoding(page: bytes, content_type: str, title: str) -> None:
    assert described(page, URL, content_type).title == title


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_any_page_can_be_read(page: bytes) -> None:
    described(page, URL)
    described(b"<meta property='og:image' content='" + page, URL)
