"""Slack's blocks and attachments as Markdown."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final

from tertulia.imports.slack import mrkdwn, values
from tertulia.imports.slack.mrkdwn import (
    BOLD,
    EVERYONE,
    ITALIC,
    STRIKE,
    MrkdwnConverter,
    StyledText,
)
from tertulia.imports.slack.values import Record, record, records, text

MAX_BLOCKS: Final = 500
"""The most blocks, elements, or attachments that are converted. Slack allows 50 to 100."""
_STYLES: Final = {"bold": BOLD, "italic": ITALIC, "strike": STRIKE}


class BlockConverter:
    """Converts the blocks and attachments of one message."""

    def __init__(self, converter: MrkdwnConverter, unknown: Callable[[str], None]) -> None:
        """`unknown` is called with the type of each unknown block."""
        self._converter = converter
        self._unknown = unknown
        self._is_escaped = False

    def of(self, parent: Record, name: str = "blocks", *, is_escaped: bool = True) -> str:
        """Convert a list of blocks. `is_escaped` says whether rich text has `&lt;` for `<`, which
        differs between exports."""
        self._is_escaped = is_escaped
        return mrkdwn.joined([self._block(fields) for fields in _first(records(parent, name))])

    def _block(self, block: Record) -> str:
        kind = text(block, "type")
        match kind:
            case "rich_text":
                return self._rich_text(block)
            case "section":
                fields = [self._text(fields) for fields in _first(records(block, "fields"))]
                accessory = record(block, "accessory")
                return mrkdwn.joined(
                    [self._text(record(block, "text")), *fields, self._element(accessory)]
                )
            case "context":
                result = map(self._element, _first(records(block, "elements")))
                return " ".join(filter(None, result))
            case "header":
                return _bold(self._text(record(block, "text")))
            case "divider":
                return "\n---\n"
            case "image" | "video" | "file" | "actions" | "input" | "call" | "context_actions":
                return self._element(block)
            case "markdown":
                # Bots wrote it as Markdown. A mention in it would notify people.
                return text(block, "text").replace("@**", r"@\*\*")
            case "table":
                return self._table(block)
            case "share_shortcut" | "":
                return ""
        self._unknown(kind)
        return ""

    def _text(self, given: Record) -> str:
        """Convert a text object."""
        content = text(given, "text")
        if text(given, "type") == "plain_text":
            return mrkdwn.written([StyledText(mrkdwn.escaped(mrkdwn.unescaped(content)))])
        return self._converter.mrkdwn(content)

    def _element(self, element: Record) -> str:
        """Convert an element of a block, or a block that is similar to one."""
        match text(element, "type"):
            case "mrkdwn" | "plain_text":
                return self._text(element)
            case "image":
                file = record(element, "slack_file")
                url = text(element, "image_url") or text(file, "url", "permalink")
                title = text(record(element, "title"), "text") or text(element, "title", "alt_text")
                return self._link(title or "image", url)
            case "video":
                title = text(record(element, "title"), "text") or "video"
                return self._link(title, text(element, "title_url", "video_url"))
            case "file" | "call":
                return self._link(text(element, "external_id", "call_id"), text(element, "url"))
            case "actions" | "context_actions":
                result = (self._element(fields) for fields in _first(records(element, "elements")))
                return " · ".join(filter(None, result))
            case "input":
                return self._text(record(element, "label"))
            case "button" | "workflow_button":
                return self._link(text(record(element, "text"), "text"), text(element, "url"))
        return ""

    def _link(self, label: str, url: str) -> str:
        if not url:
            return mrkdwn.escaped(label)
        return mrkdwn.written([self._converter.link(url, label)])

    # Rich text

    def _rich_text(self, block: Record) -> str:
        parts: list[str] = []
        lines: list[str] = []
        for fields in _first(records(block, "elements")):
            kind = text(fields, "type")
            if kind == "rich_text_list":
                lines += self._list(fields)
                continue
            parts += ["\n".join(lines)]
            lines = []
            inline = mrkdwn.written(self._spans(fields))
            if kind == "rich_text_quote":
                parts.append(mrkdwn.quoted(inline.strip("\n")))
            elif kind == "rich_text_preformatted":
                parts.append(mrkdwn.code_block(self._plain(fields), text(fields, "language")))
            else:
                parts.append(inline.strip("\n"))
        return mrkdwn.joined([*parts, "\n".join(lines)])

    def _list(self, element: Record) -> list[str]:
        indent = element.get("indent")
        level = min(max(indent, 0), 8) if isinstance(indent, int) else 0
        is_ordered = text(element, "style") == "ordered"
        offset = element.get("offset")
        number = min(max(offset, 0), 999_999) if isinstance(offset, int) else 0
        result = []
        for fields in _first(records(element, "elements")):
            number += 1
            marker = f"{number}." if is_ordered else "*"
            inline = mrkdwn.written(self._spans(fields)).strip("\n")
            pad = "  " * level
            result.append(f"{pad}{marker} {inline}".replace("\n", f"\n{pad}  "))
        return result

    def _plain(self, element: Record) -> str:
        results = []
        for fields in _first(records(element, "elements"), 10_000):
            content = text(fields, "text", "url")
            results.append(mrkdwn.unescaped(content) if self._is_escaped else content)
        return "".join(results)

    def _spans(self, element: Record) -> list[StyledText]:
        return [self._span(fields) for fields in _first(records(element, "elements"), 10_000)]

    def _span(self, fields: Record) -> StyledText:
        converter = self._converter
        flags = record(fields, "style")
        style = (
            sum(sign for name, sign in _STYLES.items() if flags.get(name) is True) if flags else 0
        )
        match text(fields, "type"):
            case "text":
                content = text(fields, "text")
                content = mrkdwn.unescaped(content) if self._is_escaped else content
                if flags.get("code") is True and content.strip():
                    return StyledText(mrkdwn.code_span(content))
                return StyledText(mrkdwn.escaped(content), style)
            case "link":
                url, label = text(fields, "url"), text(fields, "text")
                if self._is_escaped:
                    url, label = mrkdwn.unescaped(url), mrkdwn.unescaped(label)
                return converter.link(url, label, style)
            case "user":
                return converter.person(text(fields, "user_id"))
            case "usergroup":
                return converter.group(text(fields, "usergroup_id"))
            case "channel":
                return converter.channel(text(fields, "channel_id"))
            case "broadcast":
                return StyledText(EVERYONE, 0, True)
            case "emoji":
                return StyledText(mrkdwn.escaped(f":{text(fields, 'name')}:"), style)
            case "date":
                seconds = values.seconds(fields, "timestamp")
                return converter.date(str(seconds), text(fields, "fallback"))
            case "color":
                return StyledText(mrkdwn.escaped(text(fields, "value")), style)
        return StyledText(mrkdwn.escaped(text(fields, "text", "name")), style)

    def _table(self, block: Record) -> str:
        given = block.get("rows")
        lines: list[str] = []
        for row in given[:MAX_BLOCKS] if isinstance(given, list) else []:
            if isinstance(row, list):
                cells = (self._cell(value) for value in row[:50] if isinstance(value, dict))
                lines.append("|" + "|".join(f" {item} " for item in cells) + "|")
                if len(lines) == 1:
                    lines.append("|" + " --- |" * len(row[:50]))
        return "\n\n" + "\n".join(lines) + "\n" if lines else ""

    def _cell(self, cell: Record) -> str:
        if text(cell, "type") == "rich_text":
            result = self._rich_text(cell)
        else:
            result = mrkdwn.escaped(text(cell, "text"))
        return " ".join(result.split()).replace("|", r"\|")

    # Attachments

    def attachments(self, message: Record, content: str) -> list[str]:
        """Convert the attachments, except previews of pages that the content links: readers get
        those anyway."""
        attachments = []
        for fields in _first(records(message, "attachments"), 100):
            is_quoted = fields.get("is_msg_unfurl") is True or fields.get("is_share") is True
            page = text(fields, "original_url", "from_url")
            if page and not is_quoted and mrkdwn.url_of(page) in content:
                continue
            attachments.append(
                self._quoted_message(fields) if is_quoted else self._attachment(fields)
            )
        return attachments

    def _quoted_message(self, fields: Record) -> str:
        author = text(fields, "author_name", "author_subname") or "…"
        url = text(fields, "from_url", "original_url")
        nested = list(records(fields, "message_blocks"))
        blocks = [self.of(record(part, "message")) for part in nested[:20]]
        content = mrkdwn.joined(blocks) or self._converter.mrkdwn(text(fields, "text", "fallback"))
        head = self._link(author, url)
        return mrkdwn.joined([f"{head}:", mrkdwn.quoted(content)]) if content else head

    def _attachment(self, fields: Record) -> str:
        convert = self._converter.mrkdwn
        title, url = text(fields, "title"), text(fields, "title_link")
        author = text(fields, "author_name")
        parts = [
            self._link(author, text(fields, "author_link")) if author else "",
            _bold(self._link(mrkdwn.unescaped(title), url) if url else convert(title)),
            convert(text(fields, "text")),
            self.of(fields),
        ]
        for field in _first(records(fields, "fields")):
            value = convert(text(field, "value"))
            name = convert(text(field, "title"))
            parts.append(f"**{name}**: {value}" if _is_plain(name) else f"{name} {value}".strip())
        for name in ("image_url", "thumb_url"):
            if picture := text(fields, name):
                parts.append(self._link(title or "image", picture))
                break
        actions = (
            self._link(text(action, "text"), text(action, "url"))
            for action in _first(records(fields, "actions"))
            if text(action, "url")
        )
        parts += [" · ".join(actions), convert(text(fields, "footer"))]
        content = mrkdwn.joined(parts) or convert(text(fields, "fallback"))
        quoted = mrkdwn.quoted(content) if content else ""
        return mrkdwn.joined([convert(text(fields, "pretext")), quoted])


def _bold(markdown: str) -> str:
    return f"**{markdown}**" if _is_plain(markdown) else markdown


def _is_plain(markdown: str) -> bool:
    """Whether the text can be made bold as a whole."""
    return bool(markdown) and not set(markdown) & {"*", "\n", "`", "\x02"}


def _first(blocks: Iterable[Record], most: int = MAX_BLOCKS) -> list[Mapping[str, object]]:
    return list(islice(blocks, most))
