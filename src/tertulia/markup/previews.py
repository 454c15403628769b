"""Previews of linked images, videos, audio files, and pages."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from tertulia.markup import external_media
from tertulia.markup.addresses import safe
from tertulia.markup.context import RenderContext, add_html, context_of, html_token
from tertulia.markup.elements import element, escaped
from tertulia.markup.external_media import Kind
from tertulia.markup.links import link_target
from tertulia.model.attachments import Attachment, ImageInfo
from tertulia.state.state import State

MAX_PREVIEWS: Final = 24
"""The number of linked media above which a message has no previews."""
_ADDRESS: Final = "/user_uploads/"
_VIDEO: Final = frozenset({"video/mp4", "video/webm", "video/quicktime"})
_AUDIO: Final = frozenset(
    {
        *("audio/aac", "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav"),
        *("audio/webm", "audio/x-m4a", "audio/x-wav"),
    }
)
_NOT_FOR_BROWSERS: Final = frozenset({"image/tiff", "image/heic", "image/heif"})
"""Image types that browsers can't show, so clients show a converted image."""


def attachment_at(state: State, href: str) -> Attachment | None:
    """Return the uploaded file at the URL, or None."""
    if not href.startswith(_ADDRESS):
        return None
    return state.uploads.at_path(unquote(href.removeprefix(_ADDRESS)))


def image(state: StateInline, silent: bool) -> bool:
    """Parse `![text](/user_uploads/…)`, an uploaded image in the text. Other URLs become links."""
    if not state.src.startswith("![", state.pos) or state.linkLevel:
        return False
    result = link_target(state, state.pos + 1)
    if result is None:
        return False
    address, title, label_end, end = result
    context = context_of(state)
    href = safe(address, context.site)
    if href is None:
        return False
    attachment = attachment_at(context.state, href)
    if not silent:
        text = state.src[state.pos + 2 : label_end]
        if attachment is not None and attachment.picture is not None:
            context.has_link = context.has_image = True
            add_html(state, _inline(attachment, attachment.picture, href, text))
        else:
            context.has_link = True
            shown = text or address
            add_html(state, element("a", {"href": href, "title": title}, escaped(shown)), link=href)
    state.pos = end
    return True


def _inline(attachment: Attachment, picture: ImageInfo, href: str, text: str) -> str:
    return element(
        "img",
        {
            "alt": text,
            "class": "inline-image",
            **_picture_attributes(attachment, picture),
            "data-original-src": href,
            "src": _thumbnail(href, picture),
        },
    )


def _picture_attributes(attachment: Attachment, picture: ImageInfo) -> dict[str, str | None]:
    return {
        "data-animated": "true" if picture.animated else None,
        "data-original-content-type": attachment.media_type,
        "data-original-dimensions": f"{picture.width}x{picture.height}",
        "data-transcoded-image": (
            "840x560.webp" if attachment.media_type in _NOT_FOR_BROWSERS else None
        ),
    }


def _thumbnail(href: str, picture: ImageInfo) -> str:
    form = "840x560-anim.webp" if picture.animated else "840x560.webp"
    return f"{_ADDRESS}thumbnail/{href.removeprefix(_ADDRESS)}/{form}"


def with_audio_players(context: RenderContext, tokens: list[Token]) -> list[Token]:
    """Replace links to uploaded audio files with players."""
    result: list[Token] = []
    skipping = False
    for token in tokens:
        if token.type == "link_open":
            player = _player(context, str(token.attrs["href"]), token.meta["text"])
            if player is not None:
                result.append(player)
                skipping = True
                continue
        if skipping:
            skipping = token.type != "link_close"
            continue
        bare = token.meta.get("bare") if token.type == "html" else None
        result.append((_player(context, bare, "") if bare else None) or token)
    return result


def _player(context: RenderContext, href: str, text: str) -> Token | None:
    attachment = attachment_at(context.state, href)
    if attachment is None or attachment.media_type not in _AUDIO:
        return None
    attributes = {
        "controls": "",
        "preload": "metadata",
        "src": href,
        "title": text or attachment.name,
    }
    return html_token(element("audio", attributes))


@dataclass(frozen=True)
class _Link:
    href: str
    text: str
    bare: bool


def with_previews(context: RenderContext, tokens: list[Token]) -> list[Token]:
    """Add previews after blocks with links that can be shown."""
    linked = _previewed(context, tokens)
    if not 0 < len({link.href for links in linked.values() for link in links}) <= MAX_PREVIEWS:
        return tokens
    seen: set[str] = set()
    result: list[Token] = []
    pending: list[Token] = []
    dropped = -1
    for index, token in enumerate(tokens):
        for link in linked.get(index, ()):
            if link.href not in seen:
                seen.add(link.href)
                preview = _preview(context, link)
                if preview is not None:
                    pending.append(html_token(preview, "preview"))
        if index in linked and _is_alone(context, token, linked[index]):
            result.pop()
            dropped = index + 1
        elif index in linked and tokens[index + 1].type in {"td_close", "th_close"}:
            result.append(token)
            for item in pending:
                item.type = "html"
            token.children = [*(token.children or ()), *pending]
            pending = []
        elif index != dropped:
            result.append(token)
        if index not in linked:
            result.extend(pending)
            pending = []
    return result


def _previewed(context: RenderContext, tokens: list[Token]) -> dict[int, list[_Link]]:
    """Return links with previews by the index of their inline token."""
    result: dict[int, list[_Link]] = {}
    quotations = 0
    for index, token in enumerate(tokens):
        quotations += token.nesting if token.type.startswith("blockquote") else 0
        if token.type == "inline" and not quotations:
            links = [link for link in _links(token.children or ()) if _can_show(context, link)]
            if links:
                result[index] = links
                _title(context, token.children or [])
    return result


def _links(children: "list[Token] | tuple[()]") -> list[_Link]:
    links = []
    for token in children:
        if token.type == "link_open":
            links.append(_Link(str(token.attrs["href"]), token.meta["text"], bare=False))
        elif token.type == "html" and "bare" in token.meta:
            links.append(_Link(token.meta["bare"], "", bare=True))
    return links


def _title(context: RenderContext, children: list[Token]) -> None:
    """Show titles of videos instead of bare URLs."""
    for token in children:
        href = token.meta.get("bare", "") if token.type == "html" else ""
        preview = context.external_media.previews.get(href)
        if preview is not None and preview.title and external_media.kind_of(href) is Kind.YOUTUBE:
            token.content = element("a", {"href": href}, escaped(f"YouTube - {preview.title}"))


def _can_show(context: RenderContext, link: _Link) -> bool:
    if context.realm is None:
        return False
    attachment = attachment_at(context.state, link.href)
    if attachment is not None:
        shows = attachment.picture is not None or attachment.media_type in _VIDEO
        return shows and context.realm.inline_image_preview
    return bool(_kinds_shown(context, link.href))


def _kinds_shown(context: RenderContext, href: str) -> frozenset[Kind]:
    """Return the ways in which a link to another server is shown: as media, as a page to fetch, or
    both."""
    if context.realm is None or context.external_media.proxy_address is None:
        return frozenset()
    kind = external_media.kind_of(href)
    if kind is None or (context.site and f"{href}/".startswith(f"{context.site}/")):
        return frozenset()
    kinds: set[Kind] = set()
    if kind in {Kind.PICTURE, Kind.VIDEO, Kind.YOUTUBE} and context.realm.inline_image_preview:
        kinds.add(kind)
    asks = context.external_media.fetches_pages and context.realm.inline_url_embed_preview
    if kind in {Kind.YOUTUBE, Kind.VIMEO, Kind.PAGE} and asks:
        kinds.add(Kind.PAGE)
    return frozenset(kinds)


def _is_alone(context: RenderContext, token: Token, links: list[_Link]) -> bool:
    """Return whether the text is just a bare URL, which the preview replaces."""
    if len(token.children or ()) != 1 or not links[0].bare:
        return False
    if attachment_at(context.state, links[0].href) is not None:
        return True
    return bool(_kinds_shown(context, links[0].href) & {Kind.PICTURE, Kind.VIDEO})


def _preview(context: RenderContext, link: _Link) -> str | None:
    attachment = attachment_at(context.state, link.href)
    if attachment is None:
        return _external_preview(context, link)
    picture = attachment.picture
    attributes = {"href": link.href, "title": link.text or None}
    if picture is None:
        player = element("video", {"preload": "metadata", "src": link.href})
        kind = "message_inline_image message_inline_video"
        return element("div", {"class": kind}, element("a", attributes, player))
    context.has_image = True
    shown = element(
        "img", {**_picture_attributes(attachment, picture), "src": _thumbnail(link.href, picture)}
    )
    return element("div", {"class": "message_inline_image"}, element("a", attributes, shown))


def _external_preview(context: RenderContext, link: _Link) -> str | None:
    """Return the preview of an external link, or None. Pages to fetch are added to
    `pages_to_preview`."""
    href, title, kinds = link.href, link.text or None, _kinds_shown(context, link.href)
    known = context.external_media.previews.get(href)
    if Kind.PAGE in kinds and len(context.pages_to_preview) < external_media.MAX_PAGES:
        context.pages_to_preview.append(href)
    if Kind.PICTURE in kinds:
        context.has_image = True
        return external_media.picture(context.external_media, href, title)
    if Kind.VIDEO in kinds:
        return external_media.video(context.external_media, href, title)
    if Kind.YOUTUBE in kinds:
        context.has_image = True
        return external_media.youtube(context.external_media, href)
    if known is None:
        return None
    if external_media.kind_of(href) is Kind.VIMEO:
        return external_media.vimeo(context.external_media, href, known)
    if external_media.kind_of(href) is Kind.PAGE:
        return external_media.page_preview(context.external_media, href, known)
    return None
