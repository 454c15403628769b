"""Previews of external media in messages."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.markup.external_media import ExternalMedia
from tertulia.markup.render import Renderer
from tertulia.model.messages import LinkPreview, Rendered
from tertulia.state.decision import CommandContext
from tertulia.state.state import State
from tests.unit.markup_organization import ANN, SITE, STATE, organization, path
from tests.unit.test_markup_safety import PARTS, checked

PIC, FILM, PAGE = "https://a.example/x.png", "https://a.example/x.mp4", "https://a.example/page"
TUBE, VIMEO = "https://www.youtube.com/watch?v=abcdefghijk", "https://vimeo.com/123456"
RENDERER = Renderer(
    SITE, ExternalMedia(proxy_address=lambda url: f"/P/{url[8:]}", fetches_pages=True)
)
FOUND = LinkPreview(title="A <b>", description='"D"', image="https://i.example/p.png")


def state_with(**settings: bool) -> State:
    state = organization()
    state.realms.put(msgspec.structs.replace(STATE.realm, **settings))
    return state


PREVIEWING = state_with(inline_url_embed_preview=True)


def render(
    content: str, state: State = STATE, known: dict[str, LinkPreview | None] | None = None
) -> Rendered:
    return RENDERER.render(CommandContext(state, 0, ANN), content, known)


def a(href: str, text: str = "") -> str:
    return f'<a href="{href}">{text or href}</a>'


def image(href: str, *, title: str = "") -> str:
    titled = f' title="{title}"' if title else ""
    return (
        f'<div class="message_inline_image"><a href="{href}"{titled}>'
        f'<img src="/P/{href[8:]}"></a></div>'
    )


def film(href: str) -> str:
    return (
        f'<div class="message_inline_image message_inline_video"><a href="{href}">'
        f'<video data-video-original-url="{href}" preload="metadata" src="/P/{href[8:]}"></video>'
        "</a></div>"
    )


def youtube(href: str) -> str:
    return (
        f'<div class="youtube-video message_inline_image"><a data-id="abcdefghijk" href="{href}">'
        '<img src="/P/i.ytimg.com/vi/abcdefghijk/mqdefault.jpg"></a></div>'
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (PIC, image(PIC)),
        (f"x {PIC}", f"<p>x {a(PIC)}</p>\n{image(PIC)}"),
        (f"[t]({PIC})", f"<p>{a(PIC, 't')}</p>\n{image(PIC, title='t')}"),
        (f"{PIC} {PIC}", f"<p>{a(PIC)} {a(PIC)}</p>\n{image(PIC)}"),
        (f"* {PIC}", f"<ul>\n<li>\n{image(PIC)}\n</li>\n</ul>"),
        (f"> {PIC}", f"<blockquote>\n<p>{a(PIC)}</p>\n</blockquote>"),
        (f"`{PIC}`", f"<p><code>{PIC}</code></p>"),
        (f"![t]({PIC})", f"<p>{a(PIC, 't')}</p>"),
        (FILM, film(FILM)),
        (f"x {FILM}", f"<p>x {a(FILM)}</p>\n{film(FILM)}"),
        (TUBE, f"<p>{a(TUBE)}</p>\n{youtube(TUBE)}"),
        (PAGE, f"<p>{a(PAGE)}</p>"),
        (VIMEO, f"<p>{a(VIMEO)}</p>"),
    ],
)
def test_a_link_is_previewed_by_its_kind(content: str, expected: str) -> None:
    assert render(content).html == expected


@pytest.mark.parametrize(
    ("url", "is_picture"),
    [
        *((f"https://a.example/x.{ending}", True) for ending in ("bmp", "gif", "jpe", "jpeg")),
        *((f"https://a.example/x.{ending}", True) for ending in ("jpg", "webp", "PNG")),
        ("http://a.example/x.png?size=1", True),
        ("https://a.example/x.png#part", True),
        ("https://a.example/x.svg", False),
        ("https://a.example/x.tiff", False),
        ("https://a.example/?x.png", False),
        ("https://a.example/x.png/", False),
        ("https://user@a.example/x.png", False),
        ("ftp://a.example/x.png", False),
        ("https://a.example/" + "x" * 2000 + ".png", False),
    ],
)
def test_an_image_is_recognized_by_its_url(url: str, is_picture: bool) -> None:
    found = render(url)
    assert found.has_image is is_picture
    assert ("<img" in found.html) is is_picture


@pytest.mark.parametrize(
    ("url", "is_video"),
    [
        (TUBE, True),
        ("https://youtube.com/watch?t=1&v=abcdefghijk", True),
        ("https://m.youtube.com/watch?v=abcdefghijk", True),
        ("https://youtu.be/abcdefghijk?t=10", True),
        ("https://www.youtube.com/embed/abcdefghijk", True),
        ("https://www.youtube.com/shorts/abcdefghijk", True),
        ("https://www.youtube-nocookie.com/embed/abcdefghijk", True),
        ("https://www.youtube.com/watch?v=short", False),
        ("https://www.youtube.com/watch?v=abcdefghi%22k", False),
        ("https://www.youtube.com/abcdefghijk", False),
        ("https://youtube.com.evil.example/watch?v=abcdefghijk", False),
        ("https://youtu.be/abcdefghijk/more", False),
    ],
)
def test_a_youtube_video_is_recognized_by_its_url(url: str, is_video: bool) -> None:
    assert ('data-id="abcdefghijk"' in render(url).html) is is_video


def test_a_preview_shows_the_page_s_metadata() -> None:
    found = render(f"see {PAGE}", PREVIEWING, {PAGE: FOUND})
    assert found.html == (
        f"<p>see {a(PAGE)}</p>\n"
        f'<div class="message_embed"><a class="message_embed_image" href="{PAGE}"'
        ' style="background-image: url(&quot;/P/i.example/p.png&quot;)"></a>'
        '<div class="data-container"><div class="message_embed_title">'
        f'<a href="{PAGE}" title="A &lt;b&gt;">A &lt;b&gt;</a></div>'
        '<div class="message_embed_description">&quot;D&quot;</div></div></div>'
    )
    assert found.has_link
    assert not found.has_image


@pytest.mark.parametrize(
    ("found", "parts"),
    [
        (msgspec.structs.replace(FOUND, title=""), {"embed_image", "embed_description"}),
        (msgspec.structs.replace(FOUND, description=""), {"embed_image", "embed_title"}),
        (LinkPreview(image="https://i.example/p.png"), {"embed_image"}),
        (msgspec.structs.replace(FOUND, image=""), set()),
        (LinkPreview(), set()),
        (None, set()),
    ],
)
def test_missing_metadata_is_left_out(found: LinkPreview | None, parts: set[str]) -> None:
    html = render(PAGE, PREVIEWING, {PAGE: found}).html
    all_parts = ("embed_image", "embed_title", "embed_description")
    assert {part for part in all_parts if part in html} == parts


def test_a_vimeo_video_uses_vimeos_player() -> None:
    player = (
        "&lt;iframe src=&quot;https://player.vimeo.com/video/123456&quot; width=&quot;640&quot;"
        " height=&quot;360&quot; frameborder=&quot;0&quot; allow=&quot;autoplay; fullscreen&quot;"
        " allowfullscreen&gt;&lt;/iframe&gt;"
    )
    assert render(VIMEO, PREVIEWING, {VIMEO: FOUND}).html == (
        f"<p>{a(VIMEO)}</p>\n"
        f'<div class="embed-video message_inline_image"><a data-id="{player}" href="{VIMEO}"'
        ' title="A &lt;b&gt;"><img src="/P/i.example/p.png"></a></div>'
    )
    assert "embed-video" not in render(VIMEO, PREVIEWING, {VIMEO: LinkPreview(title="x")}).html


def test_a_youtube_video_gets_its_title() -> None:
    assert render(f"x {TUBE} [t]({TUBE})", PREVIEWING, {TUBE: FOUND}).html == (
        f"<p>x {a(TUBE, 'YouTube - A &lt;b&gt;')} {a(TUBE, 't')}</p>\n{youtube(TUBE)}"
    )


@pytest.mark.parametrize(
    ("content", "pages"),
    [
        (PAGE, (PAGE,)),
        (f"[t]({PAGE}) {PAGE}", (PAGE,)),
        (VIMEO, (VIMEO,)),
        (TUBE, (TUBE,)),
        ("example.com", ("http://example.com",)),
        (PIC, ()),
        (FILM, ()),
        (f"> {PAGE}", ()),
        (f"`{PAGE}`", ()),
        (f"{SITE}/x", ()),
        ("mailto:a@b.example", ()),
        (f"[t]({path('pic.png')})", ()),
        (
            " ".join(f"{PAGE}{n}" for n in range(9)),
            tuple(f"{PAGE}{n}" for n in range(5)),
        ),
        (" ".join(f"{PAGE}{n}" for n in range(25)), ()),
    ],
)
def test_only_the_first_pages_of_a_message_are_fetched(
    content: str, pages: tuple[str, ...]
) -> None:
    assert render(content, PREVIEWING).pages == pages
    assert render(content).pages == ()


def test_more_than_24_links_are_not_previewed() -> None:
    pictures = [f"{PIC}?{n}" for n in range(25)]
    assert render("\n".join(pictures[:24])).html.count("<img") == 24
    assert render("\n".join(pictures)).html.count("<img") == 0


def test_the_organization_s_settings_control_previews() -> None:
    content = f"{PIC} {FILM} {TUBE} {PAGE}"
    without = state_with(inline_image_preview=False)
    assert "<div" not in render(content, without, {PAGE: FOUND, TUBE: FOUND}).html
    pages_only = state_with(inline_image_preview=False, inline_url_embed_preview=True)
    html = render(content, pages_only, {PAGE: FOUND, TUBE: FOUND}).html
    assert html.count('<div class="message_embed">') == 1
    assert "YouTube - " in html
    assert "<img" not in html
    assert "<video" not in html


def test_the_server_can_disable_previews() -> None:
    content = f"{PIC} {FILM} {TUBE} {PAGE} {VIMEO}"
    for renderer, pages in (
        (Renderer(SITE), ()),
        (Renderer(SITE, ExternalMedia(proxy_address=lambda url: url)), ()),
    ):
        rendered = renderer.render(CommandContext(PREVIEWING, 0, ANN), content, {PAGE: FOUND})
        assert rendered.pages == pages
        assert "message_embed" not in rendered.html
    assert "<div" not in Renderer(SITE).render(CommandContext(PREVIEWING, 0, ANN), content).html


LINKS = [PIC, FILM, TUBE, VIMEO, PAGE, f"[t]({PIC})", f"[t]({PAGE})", f"|{PAGE}|\n|-|\n|{PIC}|"]
KNOWN: dict[str, LinkPreview | None] = {PAGE: FOUND, TUBE: FOUND, VIMEO: FOUND}


@given(st.lists(st.sampled_from(PARTS + LINKS), max_size=40))
@settings(max_examples=300, deadline=None)
def test_only_allowed_elements_appear(parts: list[str]) -> None:
    checked(render("".join(parts), PREVIEWING, KNOWN).html)


@given(st.text(max_size=50), st.text(max_size=50), st.text(max_size=50))
@settings(max_examples=200, deadline=None)
def test_metadata_cannot_run_scripts(title: str, description: str, image: str) -> None:
    found = LinkPreview(title=title, description=description, image=f"https://i.example/{image}")
    renderer = Renderer(
        SITE, ExternalMedia(lambda url: f"/P/{url.encode('utf-8', 'replace').hex()}", True)
    )
    for url in (PAGE, TUBE, VIMEO):
        checked(renderer.render(CommandContext(PREVIEWING, 0, ANN), url, {url: found}).html)
