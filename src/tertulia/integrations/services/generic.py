"""Any JSON, Slack's format, and services whose users write the message."""

import io
import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from tertulia.integrations.incoming import (
    HandshakeReply,
    Integration,
    Post,
    Translated,
    WebhookRequest,
)
from tertulia.integrations.payloads import (
    Malformed,
    Part,
    fenced,
    harmless,
    link,
    paragraphs,
    quote,
)

# Any JSON, and services whose users write the message: Zapier, IFTTT, and Home Assistant

MAX_SHOWN: Final = 20_000
"""The most characters of a payload that are shown, which is more than a message has."""


def _any_json(request: WebhookRequest) -> Translated:
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False, default=str)
    text, size = io.StringIO(), 0
    # Indentation can make it a thousand times longer, so encode only the part that is shown.
    for piece in encoder.iterencode(request.payload.value):
        size += text.write(piece)
        if size > MAX_SHOWN:
            break
    return Post("JSON", fenced(text.getvalue(), "json"))


def _topic_and_content(request: WebhookRequest) -> Translated:
    payload = request.payload
    return Post(payload.line("topic", "") or "Zapier", payload.text("content"))


def _applet(request: WebhookRequest) -> Translated:
    payload = request.payload
    topic = payload.line("topic", "") or "IFTTT"
    content = payload.text("content", "")
    if content:
        return Post(topic, content)
    # The default fields of an applet.
    values = [payload.text(f"value{n}", "") for n in (1, 2, 3)]
    return Post(topic, "\n".join(filter(None, values)) or payload.text("content"))


def _home(request: WebhookRequest) -> Translated:
    payload: Part = request.payload
    topic = payload.line("topic", "") or payload.line("title", "") or "Home Assistant"
    title = payload.line("title", "")
    message = payload.text("message")
    return Post(topic, f"**{title}**\n{message}" if title and title != topic else message)


JSON: Final = Integration("json", "Any JSON", _any_json, takes_templates=True)
ZAPIER: Final = Integration("zapier", "Zapier", _topic_and_content)
IFTTT: Final = Integration("ifttt", "IFTTT", _applet)
HOME_ASSISTANT: Final = Integration("homeassistant", "Home Assistant", _home)


# Programs that can post to Slack: text, attachments, and blocks, as JSON or in the field `payload`

MAX_PIECES: Final = 100
"""The most blocks and attachments of a message, and fields of each, that are shown."""
_EVERYBODY: Final = frozenset({"here", "channel", "everyone"})
_MENTION: Final = "\x02"
"""The placeholder for a mention of everyone, the only allowed mention, until the rest is
escaped."""
_CODE: Final = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
_REFERENCE: Final = re.compile(r"<([^<>\n]{1,3000})>")
_KEPT: Final = re.compile("\x00(\\d+)\x00")
_BOLD: Final = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,2000}?)(?<=[^\s*])\*(?![\w*])")
_ITALIC: Final = re.compile(r"(?<![\w_])_(?=[^\s_])([^_\n]{1,2000}?)(?<=[^\s_])_(?![\w_])")
_STRUCK: Final = re.compile(r"(?<![\w~])~(?=[^\s~])([^~\n]{1,2000}?)(?<=[^\s~])~(?![\w~])")


def _unescaped(text: str) -> str:
    """Replace the three character references that Slack uses. Others are literal text."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def markdown(text: str) -> str:
    """Convert Slack's markup to Markdown."""
    parts = _CODE.split(text)
    return "".join(
        _unescaped(_block(part)) if n % 2 else _inline(part) for n, part in enumerate(parts)
    )


def _block(code: str) -> str:
    """Return a code block, on separate lines."""
    if not code.startswith("```"):
        return code
    return "\n" + fenced(code[3:-3].strip("\n")) + "\n"


def _inline(text: str) -> str:
    """Convert text within a line. References are taken out first, because their content isn't
    markup."""
    references: list[str] = []

    def keep(match: re.Match[str]) -> str:
        references.append(_reference(match))
        return f"\x00{len(references) - 1}\x00"

    text = _REFERENCE.sub(keep, text)
    text = _BOLD.sub("\x01\\1\x01", text)
    text = _ITALIC.sub(r"*\1*", text)
    text = _STRUCK.sub(r"~~\1~~", text).replace("\x01", "**")
    return _KEPT.sub(lambda match: references[int(match[1])], _unescaped(text))


def _reference(match: re.Match[str]) -> str:
    target, _, label = match[1].partition("|")
    kind, rest = target[:1], target[1:]
    if kind == "@":
        return f"@{label or rest}"
    if kind == "#":
        return f"#{label or rest}"
    if kind == "!":
        name = rest.partition("^")[0]
        if name in _EVERYBODY:
            return _MENTION
        return label or f"@{name}"
    if target.startswith("mailto:"):
        return label or target.removeprefix("mailto:")
    if not target.startswith(("http://", "https://")):
        return match[0]
    return link(label, _unescaped(target)) if label and label != target else target


def _text_object(part: Part | None) -> str:
    """Convert a text object, whose type says how it's formatted."""
    if part is None:
        return ""
    if not isinstance(part.value, dict):
        return markdown(part.text("", ""))
    text = part.text("text", "")
    return text if part.word("type", "mrkdwn") == "plain_text" else markdown(text)


# Blocks


def _header(block: Part) -> str:
    return f"## {_text_object(block.find('text'))}".replace("\n", " ")


def _section(block: Part) -> str:
    fields = [_text_object(field) for field in block.parts("fields")[:MAX_PIECES]]
    accessory = block.find("accessory")
    extra = "" if accessory is None else _element(accessory)
    lines = (f"* {' '.join(field.split())}" for field in fields)
    return paragraphs(_text_object(block.find("text")), *lines, extra)


def _context(block: Part) -> str:
    return " ".join(filter(None, map(_element, block.parts("elements")[:MAX_PIECES])))


def _element(element: Part) -> str:
    match element.word("type", ""):
        case "image":
            return link(element.line("alt_text", "image") or "image", element.url("image_url"))
        case "button":
            url = element.url("url")
            return link(_text_object(element.find("text")), url) if url else ""
        case "mrkdwn" | "plain_text":
            return _text_object(element)
    return ""


def _image(block: Part) -> str:
    title = _text_object(block.find("title")) or block.line("alt_text", "image")
    return link(title, block.url("image_url") or block.url("slack_file.url"))


def _video(block: Part) -> str:
    return paragraphs(
        link(_text_object(block.find("title")), block.url("title_url") or block.url("video_url")),
        _text_object(block.find("description")),
    )


def _rich_text(block: Part) -> str:
    return "\n".join(_rich(part) for part in block.parts("elements")[:MAX_PIECES])


def _rich(element: Part) -> str:
    match element.word("type", ""):
        case "rich_text_section":
            return _rich_line(element)
        case "rich_text_list":
            mark = "1." if element.word("style", "") == "ordered" else "*"
            indent = "  " * min(int(element.number("indent", 0)), 8)
            return "\n".join(
                f"{indent}{mark} {_rich_line(part)}"
                for part in element.parts("elements")[:MAX_PIECES]
            )
        case "rich_text_quote":
            return quote(_rich_line(element))
        case "rich_text_preformatted":
            return fenced("".join(part.text("text", "") for part in element.parts("elements")))
    return ""


def _rich_line(element: Part) -> str:
    return "".join(map(_rich_piece, element.parts("elements")[: 10 * MAX_PIECES]))


_STYLES: Final = (("code", "`"), ("bold", "**"), ("italic", "*"), ("strike", "~~"))


def _rich_piece(piece: Part) -> str:
    match piece.word("type", ""):
        case "text":
            text = piece.text("text", "")
            return _styled(piece, text)
        case "link":
            url = piece.url("url")
            return _styled(piece, link(piece.line("text", "") or url, url))
        case "emoji":
            return f":{piece.line('name', '')}:"
        case "user":
            return f"@{piece.line('user_id', '')}"
        case "channel":
            return f"#{piece.line('channel_id', '')}"
        case "broadcast":
            return _MENTION
        case "date":
            return piece.line("fallback", "")
    return ""


def _styled(piece: Part, text: str) -> str:
    bare = text.strip()
    if not bare:
        return text
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    for style, mark in _STYLES:
        if piece.flag(f"style.{style}"):
            bare = f"{mark}{bare}{mark}"
    return f"{before}{bare}{after}"


def _actions(block: Part) -> str:
    return _context(block)


BLOCKS: Final[Mapping[str, Callable[[Part], str]]] = {
    "header": _header,
    "section": _section,
    "context": _context,
    "divider": lambda _: "---",
    "image": _image,
    "video": _video,
    "rich_text": _rich_text,
    "actions": _actions,
    "markdown": lambda block: block.text("text", ""),
}


def _blocks(parts: list[Part]) -> str:
    written = (
        BLOCKS[kind](block)
        for block in parts[:MAX_PIECES]
        if (kind := block.word("type", "")) in BLOCKS
    )
    return "\n\n".join(filter(None, written))


# Attachments


def _attachment(attachment: Part) -> str:
    blocks = _blocks(attachment.parts("blocks"))
    if blocks:
        return blocks
    title = link(markdown(attachment.line("title", "")), attachment.url("title_link"))
    author = link(attachment.line("author_name", ""), attachment.url("author_link"))
    fields = [
        f"* **{field.line('title', '')}**: {markdown(field.text('value', ''))}"
        if field.line("title", "")
        else f"* {markdown(field.text('value', ''))}"
        for field in attachment.parts("fields")[:MAX_PIECES]
    ]
    pictures = [
        link(name, url)
        for name, url in (
            ("image", attachment.url("image_url")),
            ("thumbnail", attachment.url("thumb_url")),
        )
        if url
    ]
    result = paragraphs(
        markdown(attachment.text("pretext", "")),
        author,
        f"**{title}**" if title else "",
        markdown(attachment.text("text", "")),
        "\n" + "\n".join(fields) if fields else "",
        *pictures,
        attachment.line("footer", ""),
    )
    return result or markdown(attachment.text("fallback", ""))


def _slack(request: WebhookRequest) -> Translated:
    """Translate a message in Slack's format."""
    payload = request.payload
    if payload.word("type", "") == "url_verification":
        return HandshakeReply({"challenge": payload.word("challenge")})
    blocks = _blocks(payload.parts("blocks"))
    pieces = [
        blocks or markdown(payload.text("text", "")),
        *map(_attachment, payload.parts("attachments")[:MAX_PIECES]),
    ]
    content = "\n\n".join(piece for piece in pieces if piece.strip())
    if not content.strip():
        raise Malformed("it doesn't contain text, attachments, or blocks")
    topic = payload.line("channel", "").lstrip("#@") or payload.line("username", "")
    # Texts that are harmless individually can form a mention together.
    return Post(topic or "Slack", "@**all**".join(map(harmless, content.split(_MENTION))))


SLACK: Final = Integration("slack_incoming", "Slack format", _slack)
