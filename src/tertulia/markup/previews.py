"""Pictures, films, sounds and pages that a message links, shown with it."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from tertulia.markup import elsewhere
from tertulia.markup.addresses import safe
from tertulia.markup.elements import element, literal
from tertulia.markup.elsewhere import Kind
from tertulia.markup.links import target
from tertulia.markup.page import Page, made, made_token, page_of
from tertulia.model.attachments import Attachment, Picture
from tertulia.state.organization import State

MAX_PREVIEWS: Final = 24
"""A message with more has none."""
_ADDRESS: Final = "/user_uploads/"
_VIDEO: Final = frozenset({"video/mp4", "video/webm", "video/quicktime"})
_AUDIO: Final = frozenset(
    {
        *("audio/aac", "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav"),
        *("audio/webm", "audio/x-m4a", "audio/x-wav"),
    }
)
_NOT_FOR_BROWSERS: Final = frozenset({"image/tiff", "image/heic", "image/heif"})
"""Kinds of pictures of which clients show a converted one where others show the original."""


def attached(state: State, href: str) -> Attachment | None:
    """The uploaded file that the address is of."""
    if not href.startswith(_ADDRESS):
        return None
    return state.uploads.at_path(unquote(href.removeprefix(_ADDRESS)))


def image(state: StateInline, silent: bool) -> bool:
    """`![text](/user_uploads/…)`: the picture in its place. What is no uploaded picture is a
    link."""
    if not state.src.startswith("![", state.pos) or state.linkLevel:
        return False
    found = target(state, state.pos + 1)
    if found is None:
        return False
    address, title, label_end, end = found
    page = page_of(state)
    href = safe(address, page.site)
    if href is None:
        return False
    attachment = attached(page.state, href)
    if not silent:
        text = state.src[state.pos + 2 : label_end]
        if attachment is not None and attachment.picture is not None:
            page.has_link = page.has_image = True
            made(state, _inline(attachment, attachment.picture, href, text))
        else:
            page.has_link = True
            shown = text or address
            made(state, element("a", {"href": href, "title": title}, literal(shown)), link=href)
    state.pos = end
    return True


def _inline(attachment: Attachment, picture: Picture, href: str, text: str) -> str:
    return element(
        "img",
        {
            "alt": text,
            "class": "inline-image",
            **_facts(attachment, picture),
            "data-original-src": href,
            "src": _smaller(href, picture),
        },
    )


def _facts(attachment: Attachment, picture: Picture) -> dict[str, str | None]:
    return {
        "data-animated": "true" if picture.animated else None,
        "data-original-content-type": attachment.media_type,
        "data-original-dimensions": f"{picture.width}x{picture.height}",
        "data-transcoded-image": (
            "840x560.webp" if attachment.media_type in _NOT_FOR_BROWSERS else None
        ),
    }


def _smaller(href: str, picture: Picture) -> str:
    form = "840x560-anim.webp" if picture.animated else "840x560.webp"
    return f"{_ADDRESS}thumbnail/{href.removeprefix(_ADDRESS)}/{form}"


def sounds(page: Page, tokens: list[Token]) -> list[Token]:
    """The text with players in the place of links to uploaded sounds."""
    found: list[Token] = []
    skipping = False
    for token in tokens:
        if token.type == "link_open":
            player = _player(page, str(token.attrs["href"]), token.meta["text"])
            if player is not None:
                found.append(player)
                skipping = True
                continue
        if skipping:
            skipping = token.type != "link_close"
            continue
        bare = token.meta.get("bare") if token.type == "made" else None
        found.append((_player(page, bare, "") if bare else None) or token)
    return found


def _player(page: Page, href: str, text: str) -> Token | None:
    attachment = attached(page.state, href)
    if attachment is None or attachment.media_type not in _AUDIO:
        return None
    attributes = {
        "controls": "",
        "preload": "metadata",
        "src": href,
        "title": text or attachment.name,
    }
    return made_token(element("audio", attributes))


@dataclass(frozen=True)
class _Link:
    href: str
    text: str
    bare: bool


def added(page: Page, tokens: list[Token]) -> list[Token]:
    """The message with previews behind the blocks that link what can be shown."""
    linked = _previewed(page, tokens)
    if not 0 < len({link.href for links in linked.values() for link in links}) <= MAX_PREVIEWS:
        return tokens
    seen: set[str] = set()
    found: list[Token] = []
    pending: list[Token] = []
    dropped = -1
    for index, token in enumerate(tokens):
        for link in linked.get(index, ()):
            if link.href not in seen:
                seen.add(link.href)
                preview = _preview(page, link)
                if preview is not None:
                    pending.append(made_token(preview, "preview"))
        if index in linked and _is_alone(page, token, linked[index]):
            found.pop()
            dropped = index + 1
        elif index in linked and tokens[index + 1].type in {"td_close", "th_close"}:
            found.append(token)
            for one in pending:
                one.type = "made"
            token.children = [*(token.children or ()), *pending]
            pending = []
        elif index != dropped:
            found.append(token)
        if index not in linked:
            found.extend(pending)
            pending = []
    return found


def _previewed(page: Page, tokens: list[Token]) -> dict[int, list[_Link]]:
    """The links that can be shown, by the piece of text that they are in."""
    found: dict[int, list[_Link]] = {}
    quotations = 0
    for index, token in enumerate(tokens):
        quotations += token.nesting if token.type.startswith("blockquote") else 0
        if token.type == "inline" and not quotations:
            links = [link for link in _links(token.children or ()) if _can_show(page, link)]
            if links:
                found[index] = links
                _title(page, token.children or [])
    return found


def _links(children: "list[Token] | tuple[()]") -> list[_Link]:
    found = []
    for token in children:
        if token.type == "link_open":
            found.append(_Link(str(token.attrs["href"]), token.meta["text"], bare=False))
        elif token.type == "made" and "bare" in token.meta:
            found.append(_Link(token.meta["bare"], "", bare=True))
    return found


def _title(page: Page, children: list[Token]) -> None:
    """Give videos whose address stands in the text their title instead."""
    for token in children:
        href = token.meta.get("bare", "") if token.type == "made" else ""
        found = page.elsewhere.previews.get(href)
        if found is not None and found.title and elsewhere.kind_of(href) is Kind.YOUTUBE:
            token.content = element("a", {"href": href}, literal(f"YouTube - {found.title}"))


def _can_show(page: Page, link: _Link) -> bool:
    if page.realm is None:
        return False
    attachment = attached(page.state, link.href)
    if attachment is not None:
        shows = attachment.picture is not None or attachment.media_type in _VIDEO
        return shows and page.realm.inline_image_preview
    return bool(_ways(page, link.href))


def _ways(page: Page, href: str) -> frozenset[Kind]:
    """How what lies elsewhere is shown: by itself, and as a page that is asked about itself."""
    if page.realm is None or page.elsewhere.proxied is None:
        return frozenset()
    kind = elsewhere.kind_of(href)
    if kind is None:
        return frozenset()
    found: set[Kind] = set()
    if kind in {Kind.PICTURE, Kind.FILM, Kind.YOUTUBE} and page.realm.inline_image_preview:
        found.add(kind)
    asks = page.elsewhere.asks_pages and page.realm.inline_url_embed_preview
    if kind in {Kind.YOUTUBE, Kind.VIMEO, Kind.PAGE} and asks:
        found.add(Kind.PAGE)
    return frozenset(found)


def _is_alone(page: Page, token: Token, links: list[_Link]) -> bool:
    """Whether the text is nothing but the address of what is shown in its place."""
    if len(token.children or ()) != 1 or not links[0].bare:
        return False
    if attached(page.state, links[0].href) is not None:
        return True
    return bool(_ways(page, links[0].href) & {Kind.PICTURE, Kind.FILM})


def _preview(page: Page, link: _Link) -> str | None:
    attachment = attached(page.state, link.href)
    if attachment is None:
        return _from_elsewhere(page, link)
    picture = attachment.picture
    attributes = {"href": link.href, "title": link.text or None}
    if picture is None:
        player = element("video", {"preload": "metadata", "src": link.href})
        kind = "message_inline_image message_inline_video"
        return element("div", {"class": kind}, element("a", attributes, player))
    page.has_image = True
    shown = element("img", {**_facts(attachment, picture), "src": _smaller(link.href, picture)})
    return element("div", {"class": "message_inline_image"}, element("a", attributes, shown))


def _from_elsewhere(page: Page, link: _Link) -> str | None:
    """What is shown of another server; None where nothing is, or not yet: then it is noted that the
    page shall be asked."""
    href, title, ways = link.href, link.text or None, _ways(page, link.href)
    known = page.elsewhere.previews.get(href)
    if Kind.PAGE in ways and len(page.pages) < elsewhere.MAX_PAGES:
        page.pages.append(href)
    if Kind.PICTURE in ways:
        page.has_image = True
        return elsewhere.picture(page.elsewhere, href, title)
    if Kind.FILM in ways:
        return elsewhere.film(page.elsewhere, href, title)
    if Kind.YOUTUBE in ways:
        page.has_image = True
        return elsewhere.youtube(page.elsewhere, href)
    if known is None:
        return None
    if elsewhere.kind_of(href) is Kind.VIMEO:
        return elsewhere.vimeo(page.elsewhere, href, known)
    if elsewhere.kind_of(href) is Kind.PAGE:
        return elsewhere.page(page.elsewhere, href, known)
    return None
