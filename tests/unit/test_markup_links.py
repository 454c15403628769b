"""Markdown to HTML: links, linkifiers, and uploaded files."""

import msgspec
import pytest

from tertulia.markup import links as linkifiers
from tests.unit.markup_organization import SITE, STATE, html, line, organization, path, rendered


def a(href: str, text: str, title: str | None = None) -> str:
    extra = "" if title is None else f' title="{title}"'
    return f'<a href="{href}"{extra}>{text}</a>'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[t](http://a.example)", a("http://a.example", "t")),
        ("[t](https://a.example 'x')", a("https://a.example", "t", "x")),
        ('[t](https://a.example "x y")', a("https://a.example", "t", "x y")),
        ("[t](<http://a.example/x y>)", a("http://a.example/xy", "t")),
        ("[*t* `c`](http://a.example)", a("http://a.example", "<em>t</em> <code>c</code>")),
        ("[a [b] c](http://a.example)", a("http://a.example", "a [b] c")),
        ("[t](http://a.example/b_(c))", a("http://a.example/b_(c)", "t")),
        ("[t](ftp://a.example)", a("ftp://a.example", "t")),
        ("[t](mailto:a@example.com)", a("mailto:a@example.com", "t")),
        ("[t](a@example.com)", a("mailto:a@example.com", "t")),
        ("[t](tel:+123)", a("tel:+123", "t")),
        ("[t](sms:+123)", a("sms:+123", "t")),
        ("[t](/user_uploads/1/x)", a("/user_uploads/1/x", "t")),
        ("[t](#narrow/channel/3)", a("#narrow/channel/3", "t")),
        (f"[t]({SITE}/#narrow/channel/3)", a("#narrow/channel/3", "t")),
        (f"[t]({SITE}/user_uploads/1/x)", a("/user_uploads/1/x", "t")),
        ("[t](a.example/x)", a("http://a.example/x", "t")),
        ("[t](//a.example/x)", a("http://a.example/x", "t")),
        ("[t](http://a.example/?a=1&b=2)", a("http://a.example/?a=1&amp;b=2", "t")),
        ("[t](http://a.example/?a=1&amp;b=2)", a("http://a.example/?a=1&amp;b=2", "t")),
        ('[t](http://a.example/"x)', a("http://a.example/&quot;x", "t")),
        ("[t](javascript:alert(1))", "[t](javascript:alert(1))"),
        ("[t](JavaScript:alert(1))", "[t](JavaScript:alert(1))"),
        ("[t](java\tscript:alert(1))", "[t](java\tscript:alert(1))"),
        ("[t](javascript&colon;alert(1))", None),
        ("[t](data:text/html,x)", "[t](data:text/html,x)"),
        ("[t](vbscript:x)", "[t](vbscript:x)"),
        ("[t](file:///etc/passwd)", None),
        ("[t]()", "[t]()"),
        ("[t](http://)", "[t](http://)"),
        ("[t](http://[)", None),
        ("[t] (http://a.example)", f"[t] ({a('http://a.example', 'http://a.example')})"),
        ("[[t](http://a.example)](http://b.example)", None),
    ],
)
def test_a_link_has_a_target_and_nothing_else(content: str, expected: str | None) -> None:
    shown = line(content)
    if expected is not None:
        assert shown == expected
    assert 'href="javascript' not in shown.lower()
    assert 'href="file' not in shown
    assert shown.count("<a ") <= 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "see http://a.example/b?c=1&d=2.",
            f"see {a('http://a.example/b?c=1&amp;d=2', 'http://a.example/b?c=1&amp;d=2')}.",
        ),
        (
            "(https://a.example/x_(y))",
            f"({a('https://a.example/x_(y)', 'https://a.example/x_(y)')})",
        ),
        (
            "**https://a.example**",
            f"<strong>{a('https://a.example', 'https://a.example')}</strong>",
        ),
        ("HTTP://A.example", a("HTTP://A.example", "HTTP://A.example")),
        ("ftp://a.example/x", a("ftp://a.example/x", "ftp://a.example/x")),
        ("www.example.com", a("http://www.example.com", "www.example.com")),
        ("example.com/x, y", a("http://example.com/x", "example.com/x") + ", y"),
        ("example.com:80/x", a("http://example.com:80/x", "example.com:80/x")),
        ("a@example.com", a("mailto:a@example.com", "a@example.com")),
        ("mail a.b+c@example.com.", f"mail {a('mailto:a.b+c@example.com', 'a.b+c@example.com')}."),
        ("main.py read.md x.y.z a.b 1.2.3", "main.py read.md x.y.z a.b 1.2.3"),
        (
            "http://a.example/:smile:/x",
            a("http://a.example/:smile:/x", "http://a.example/:smile:/x"),
        ),
        ("http://a.example/*x*y", None),
        ("http://", "http://"),
        ("http://localhost:9991/x", a("http://localhost:9991/x", "http://localhost:9991/x")),
        ("javascript:alert(1) data:text/html,x", "javascript:alert(1) data:text/html,x"),
        ("`http://a.example`", "<code>http://a.example</code>"),
        ("[http://a.example](http://b.example)", a("http://b.example", "http://a.example")),
        (f"{SITE}/#narrow/dm/1-dm", a("#narrow/dm/1-dm", f"{SITE}/#narrow/dm/1-dm")),
        (
            'http://a.example/"onclick=x',
            a("http://a.example/&quot;onclick=x", "http://a.example/&quot;onclick=x"),
        ),
    ],
)
def test_urls_in_the_text_are_links(content: str, expected: str | None) -> None:
    shown = line(content)
    if expected is not None:
        assert shown == expected
    else:
        assert shown.count("<a ") == 1


@pytest.mark.parametrize(
    ("content", "has_link"),
    [
        ("http://a.example", True),
        ("[t](http://a.example)", True),
        ("a@example.com", True),
        ("#12", True),
        ("> http://a.example", True),
        ("`http://a.example`", False),
        ("@**Ann** #**tea & cake v1.0** :tada:", False),
        ("no link", False),
    ],
)
def test_a_message_knows_whether_it_has_a_link(content: str, has_link: bool) -> None:
    assert rendered(content).has_link is has_link


# Linkifiers


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("#12", a("https://bugs.example/12", "#12")),
        (
            "see #12, #13.",
            f"see {a('https://bugs.example/12', '#12')}, {a('https://bugs.example/13', '#13')}.",
        ),
        ("#12 #13", f"{a('https://bugs.example/12', '#12')} {a('https://bugs.example/13', '#13')}"),
        ("x#12 #12x é#12", "x#12 #12x é#12"),
        ("**#12**", f"<strong>{a('https://bugs.example/12', '#12')}</strong>"),
        ("ticket 7", a("https://tickets.example/?id=7", "ticket 7")),
        ("AB-7", a("https://both.example/AB/7", "AB-7")),
        ("X-7", a("https://both.example/X/7", "X-7")),
        ("`#12`", "<code>#12</code>"),
        ("[#12](http://a.example)", a("http://a.example", "#12")),
        ("http://a.example/#12", a("http://a.example/#12", "http://a.example/#12")),
        ("evil", "evil"),
    ],
)
def test_linkifiers_link_their_patterns(content: str, expected: str) -> None:
    assert line(content) == expected


@pytest.mark.parametrize(
    ("topic", "links"),
    [
        ("about #12", [("#12", "https://bugs.example/12")]),
        (
            "http://a.example and #12",
            [
                ("http://a.example", "http://a.example"),
                ("#12", "https://bugs.example/12"),
            ],
        ),
        ("http://a.example/#12", [("http://a.example/#12", "http://a.example/#12")]),
        ("plain", []),
        ("", []),
    ],
)
def test_topics_have_the_same_links(topic: str, links: list[tuple[str, str]]) -> None:
    assert linkifiers.topic_links(STATE, topic) == links


# Uploaded files

PIC, GIF, TIFF, FILM = (path(name) for name in ("pic.png", "move.gif", "scan.tiff", "film.mp4"))
SOUND, PDF = path("sound.mp3"), path("notes.pdf")


def image(href: str, facts: str, *, form: str = "840x560.webp", title: str = "t") -> str:
    src = href.replace("/user_uploads/", "/user_uploads/thumbnail/")
    return (
        f'<div class="message_inline_image"><a href="{href}"'
        + (f' title="{title}"' if title else "")
        + f'><img {facts} src="{src}/{form}"></a></div>'
    )


PNG_FACTS = 'data-original-content-type="image/png" data-original-dimensions="1000x500"'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"[t]({PIC})", f"<p>{a(PIC, 't')}</p>\n{image(PIC, PNG_FACTS)}"),
        (f"[t]({PIC}) [u]({PIC})", f"<p>{a(PIC, 't')} {a(PIC, 'u')}</p>\n{image(PIC, PNG_FACTS)}"),
        (
            f"[t]({GIF})",
            f"<p>{a(GIF, 't')}</p>\n"
            + image(
                GIF,
                'data-animated="true" data-original-content-type="image/gif"'
                ' data-original-dimensions="64x64"',
                form="840x560-anim.webp",
            ),
        ),
        (
            f"[t]({TIFF})",
            f"<p>{a(TIFF, 't')}</p>\n"
            + image(
                TIFF,
                'data-original-content-type="image/tiff" data-original-dimensions="30x40"'
                ' data-transcoded-image="840x560.webp"',
            ),
        ),
        (f"{SITE}{PIC}", image(PIC, PNG_FACTS, title="")),
        (
            f"x {SITE}{PIC}",
            f"<p>x {a(PIC, SITE + PIC)}</p>\n{image(PIC, PNG_FACTS, title='')}",
        ),
        (f"* [t]({PIC})", f"<ul>\n<li>{a(PIC, 't')}{image(PIC, PNG_FACTS)}\n</li>\n</ul>"),
        (f"> [t]({PIC})", f"<blockquote>\n<p>{a(PIC, 't')}</p>\n</blockquote>"),
        (f"```quote\n[t]({PIC})\n```", f"<blockquote>\n<p>{a(PIC, 't')}</p>\n</blockquote>"),
        (
            f"[t]({FILM})",
            f"<p>{a(FILM, 't')}</p>\n"
            f'<div class="message_inline_image message_inline_video"><a href="{FILM}" title="t">'
            f'<video preload="metadata" src="{FILM}"></video></a></div>',
        ),
        (
            f"x [t]({SOUND}) y",
            f'<p>x <audio controls preload="metadata" src="{SOUND}" title="t"></audio> y</p>',
        ),
        (f"> [t]({SOUND})", f"<blockquote>\n<p>{a(SOUND, 't')}</p>\n</blockquote>"),
        (f"[t]({PDF})", f"<p>{a(PDF, 't')}</p>"),
        ("[t](/user_uploads/1/ab/none/pic.png)", None),
        (
            f"![alt text]({PIC})",
            f'<p><img alt="alt text" class="inline-image" {PNG_FACTS} data-original-src="{PIC}"'
            f' src="{PIC.replace("/user_uploads/", "/user_uploads/thumbnail/")}/840x560.webp"></p>',
        ),
        (f"![t]({PDF})", f"<p>{a(PDF, 't')}</p>"),
        ("![t](http://a.example/x.png)", f"<p>{a('http://a.example/x.png', 't')}</p>"),
        ("![t](javascript:x)", "<p>![t](javascript:x)</p>"),
        ("http://a.example/x.png", None),
    ],
)
def test_uploaded_files_are_shown_by_their_kind(content: str, expected: str | None) -> None:
    if expected is None:
        assert "<img" not in html(content)
    else:
        assert html(content) == expected


def test_an_image_in_a_table_is_shown_in_its_cell() -> None:
    assert f"<td>{a(PIC, 't')}{image(PIC, PNG_FACTS)}</td>" in html(f"|x|\n|-|\n|[t]({PIC})|")


@pytest.mark.parametrize(
    ("content", "has_image"),
    [
        (f"[t]({PIC})", True),
        (f"![t]({PIC})", True),
        (f"{SITE}{PIC}", True),
        (f"> [t]({PIC})", False),
        (f"[t]({FILM})", False),
        (f"[t]({PDF})", False),
        (f"`{PIC}`", False),
        ("http://a.example/x.png", False),
    ],
)
def test_a_message_knows_whether_it_shows_an_image(content: str, has_image: bool) -> None:
    assert rendered(content).has_image is has_image


def test_a_message_with_too_many_previews_has_none() -> None:
    state = organization()
    pictures = []
    for number in range(25):
        known = next(iter(STATE.attachments))
        one = msgspec.structs.replace(known, id=100 + number, path=f"1/xy/many{number}/p.png")
        state.attachments.put(one)
        pictures.append(f"[p](/user_uploads/{one.path})")
    assert rendered("\n".join(pictures[:24]), state=state).html.count("<img") == 24
    assert rendered("\n".join(pictures), state=state).html.count("<img") == 0


def test_an_organization_can_disable_previews() -> None:
    state = organization()
    state.realms.put(msgspec.structs.replace(STATE.realm, inline_image_preview=False))
    assert rendered(f"[t]({PIC})", state=state).html == f"<p>{a(PIC, 't')}</p>"
