"""Messages in emails."""

from tertulia.markup.elements import open_tag
from tertulia.outbound.readable_html import HIDDEN, pictures_in, readable


def test_an_image_in_a_spoiler_is_left_out() -> None:
    shown, hidden = (
        f'<a href="/user_uploads/1/{name}">'
        + open_tag("img", {"src": f"/user_uploads/thumbnail/1/{name}/840x560.webp"})
        + "</a>"
        for name in ("shown.png", "hidden.png")
    )
    html = (
        f'<div class="message_inline_image">{shown}</div><blockquote><div class="spoiler-block">'
        '<div class="spoiler-header"><p>x</p></div><div class="spoiler-content" aria-hidden="true">'
        f'<div class="message_inline_image">{hidden}</div></div></div></blockquote>'
    )
    assert pictures_in(html) == ["1/shown.png"]
    found = readable(html, "https://chat.test", {"1/shown.png": "a@b"})
    assert "hidden.png" not in found.html + found.text
    assert HIDDEN in found.text
