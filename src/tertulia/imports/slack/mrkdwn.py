"""Slack's markup as Markdown.

Formatted text is a sequence of spans, which `written` joins. A text in mrkdwn, and the elements of
Slack's rich text (`blocks`), both become spans first.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Protocol
from urllib.parse import quote

from msgspec import Struct

from tertulia.imports.emoji_aliases import SLACK_SKIN_TONE, slack_emoji
from tertulia.imports.references import clean
from tertulia.model.emoji import text_of

BOLD: Final = 1
ITALIC: Final = 2
STRIKE: Final = 4
_SIGNS: Final = {BOLD: "**", ITALIC: "*", STRIKE: "~~"}
EVERYONE: Final = "@**all**"
MAX_URL: Final = 2000

_FENCED: Final = re.compile(r"```(.*?)```", re.DOTALL)
_ENTITY: Final = re.compile(r"<([^<>\n]+)>")
_ATOM: Final = re.compile(r"`([^`\n]+)`|<([^<>\n]+)>")
_STYLES: Final = (
    ("\x12", re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])")),
    ("\x13", re.compile(r"(?<![\w_])_(?=[^\s_])([^_\n]*[^\s_])_(?![\w_])")),
    ("\x14", re.compile(r"(?<![\w~])~(?=[^\s~])([^~\n]*[^\s~])~(?![\w~])")),
)
_MARKED: Final = {"\x12": BOLD, "\x13": ITALIC, "\x14": STRIKE}
_PIECES: Final = re.compile(r"(\x11[0-9]+\x11|[\x12-\x14])")
_MARKUP: Final = re.compile(r"\\(?=[\\`*_{}\[\]()>#+\-.!]|\Z)|`|(?<!\s)\*|\*(?!\s)|\](?=\()")
"""Characters that Markdown would read as markup within a line. `_LINE_MARKUP` has those at the
beginning of a line."""
_LINE_MARKUP: Final = re.compile(r"^([ \t]*)(?=#{1,6}[ \t]|>)", re.MULTILINE)
_EMOJI: Final = re.compile(r":([a-z0-9_+'-]+)(?:::skin-tone-[2-6])?:")
_BULLET: Final = re.compile(r"^([ \t]*)[•◦▪]\uFE0E?[ \t]*", re.MULTILINE)
_AFTER_LIST: Final = re.compile(r"^ *\* [^\n]*\n(?! *\* |\n)", re.MULTILINE)
_QUOTED: Final = re.compile(r"[ \t]*(?:&gt;|>)[ \t]?")
_QUOTED_REST: Final = re.compile(r"[ \t]*(?:&gt;){3}[ \t]?")
_BEFORE_MENTION: Final = frozenset("'\"({[/<\n\t ")
_WITH_SCHEME: Final = re.compile(r"(?:https?|ftp|mailto|tel|sms|xmpp|news):", re.IGNORECASE)
_CONTINUING: Final = re.compile(r"^[ \t]*(?:\*|[0-9]+\.) |^>[^\n]*\Z", re.MULTILINE)
"""Blocks that the next line would continue."""
_BACKTICKS: Final = re.compile(r"`+")
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,40}")


class StyledText(Struct, frozen=True):
    """Markdown in one style, without significant line breaks."""

    text: str
    style: int = 0
    is_mention: bool = False
    is_url: bool = False
    """Whether the text is a bare URL."""


class MrkdwnLookup(Protocol):
    """Looks up the people and channels that texts refer to."""

    def person(self, key: str, label: str) -> str: ...

    def group(self, key: str, label: str) -> str: ...

    def channel(self, key: str, label: str) -> str: ...

    def link(self, url: str, label: str) -> str | None:
        """Return the Markdown of a link into the workspace, or None if the link leads elsewhere."""


def written(spans: Sequence[StyledText]) -> str:
    """Join spans to Markdown, so that each style begins and ends where Markdown recognizes it."""
    parts: list[str] = []
    open_: list[int] = []
    last = ""
    waiting = ""
    """White space, which must be outside of styles."""

    def put(text: str) -> None:
        nonlocal last
        parts.append(text)
        last = text[-1]

    def close(until: int) -> None:
        while open_ and any(not until & mark for mark in open_):
            put(_SIGNS[open_.pop()])

    for number, span in enumerate(spans):
        text = span.text
        style = 0 if span.is_mention else span.style
        for piece in re.split(r"(\n+)", text) if "\n" in text and style else (text,):
            core = piece.strip(" \t\n")
            if not core:
                waiting += piece
                continue
            begin = piece.index(core[0]) if piece[0] in " \t\n" else 0
            waiting += piece[:begin]
            close(0 if "\n" in waiting else style)
            if waiting:
                put(waiting)
            elif span.is_mention and last and last not in _BEFORE_MENTION:
                put(" ")
            for value, sign in _SIGNS.items():
                if style & value and value not in open_:
                    open_.append(value)
                    put(sign)
            following = spans[number + 1].text[:1] if number + 1 < len(spans) else ""
            put(
                linked(escaped(core), core) if span.is_url and _continues(core, following) else core
            )
            waiting = piece[begin + len(core) :]
    close(0)
    result = "".join(parts) + waiting.rstrip(" \t")
    return _LINE_MARKUP.sub(r"\1\\", result) if "#" in result or ">" in result else result


def _continues(url: str, following: str) -> bool:
    """Whether the following text would become part of a bare URL."""
    return (
        following.isalnum()
        or following in {*"/_-=&%#~@+\x02"}
        or not (url[-1].isalnum() or url[-1] == "/")
    )


def escaped(text: str) -> str:
    """Escape plain text, and replace emoji names with the names here."""
    if "*" in text or "`" in text or "\\" in text or "](" in text:
        text = _MARKUP.sub(r"\\\g<0>", text)
    return _EMOJI.sub(_emoji, text) if ":" in text else text


def _emoji(match: re.Match[str]) -> str:
    known = slack_emoji(match[1])
    # Custom emoji have no skin tones.
    return f":{known.name}:" if known is not None else SLACK_SKIN_TONE.sub("", match[0])


def code_span(text: str) -> str:
    """Write code within a line."""
    text = text.replace("\n", " ")
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    sign = "`" * (longest + 1)
    space = " " if longest and (text.startswith("`") or text.endswith("`")) else ""
    return f"{sign}{space}{text}{space}{sign}"


def code_block(text: str, language: str = "") -> str:
    text = text.strip("\n")
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language if _LANGUAGE.fullmatch(language) else ''}\n{text}\n{fence}"


def linked(markdown: str, url: str) -> str:
    """Return a link with this text."""
    return f"[{label(markdown)}]({url_of(url)})"


def label(markdown: str) -> str:
    """Return Markdown that can be used as a link's text."""
    return re.sub(r"(?<!\\)[\[\]]", r"\\\g<0>", " ".join(markdown.split()))


def url_of(url: str) -> str:
    return quote(url, safe="!#$%&'*+,/:;=?@[]~^|{}`\"", encoding="utf-8", errors="replace")


def quoted(markdown: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in markdown.split("\n"))


class MrkdwnConverter:
    """Converts the texts of one message."""

    def __init__(self, lookup: MrkdwnLookup) -> None:
        self._lookup = lookup
        self.people: set[str] = set()
        """Keys of the people that the message mentions."""
        self.groups: set[str] = set()
        """Keys of the user groups that the message mentions."""

    def mrkdwn(self, text: str) -> str:
        """Convert a text in mrkdwn."""
        blocks: list[str] = []
        in_quotation = False
        for number, part in enumerate(_FENCED.split(text)):
            if number % 2:
                code = code_block(_code(clean(part)))
                blocks.append(quoted(code) if in_quotation else code)
            elif part.strip():
                in_quotation = self._lines(part.strip("\n"), blocks, in_quotation=in_quotation)
        return joined(blocks)

    def _lines(self, text: str, blocks: list[str], *, in_quotation: bool) -> bool:
        """Convert lines without code blocks. Return whether a quote continues after them."""
        plain: list[str] = []
        quotation: list[str] = []

        def end(lines: list[str], *, is_quotation: bool) -> None:
            if lines:
                inline = written(self.inline("\n".join(lines)))
                if _BULLET.search(inline):
                    inline = _AFTER_LIST.sub(r"\g<0>\n", _BULLET.sub(_bullet, inline))
                blocks.append(quoted(inline) if is_quotation else inline)
                lines.clear()

        for line in text.split("\n"):
            rest = None if in_quotation else _QUOTED_REST.match(line)
            match = None if in_quotation else rest or _QUOTED.match(line)
            if match is not None or in_quotation:
                end(plain, is_quotation=False)
                quotation.append(line[match.end() :] if match is not None else line)
                in_quotation = in_quotation or rest is not None
            else:
                end(quotation, is_quotation=True)
                plain.append(line)
        end(plain, is_quotation=False)
        end(quotation, is_quotation=True)
        return in_quotation

    def inline(self, text: str, style: int = 0) -> list[StyledText]:
        """Return the spans of mrkdwn without code blocks and quotes."""
        atoms: list[StyledText] = []

        def keep(match: re.Match[str]) -> str:
            if match[1] is not None:
                atoms.append(StyledText(code_span(_code(match[1]))))
            else:
                atoms.append(self.entity(match[2], style))
            return f"\x11{len(atoms) - 1}\x11"

        text = _ATOM.sub(keep, clean(text))
        for sign, pattern in _STYLES:
            text = pattern.sub(rf"{sign}\1{sign}", text)
        spans: list[StyledText] = []
        for piece in _PIECES.split(text):
            if piece in _MARKED:
                style ^= _MARKED[piece]
            elif piece.startswith("\x11"):
                atom = atoms[int(piece[1:-1])]
                is_code = atom.text.startswith("`")
                spans.append(
                    StyledText(atom.text, 0 if is_code else style, atom.is_mention, atom.is_url)
                )
            elif piece:
                spans.append(StyledText(escaped(unescaped(piece)), style))
        return spans

    def entity(self, content: str, style: int = 0) -> StyledText:
        """Return the span for an entity, a text between `<` and `>`."""
        target, _, label = content.partition("|")
        label = unescaped(label)
        match target[:1]:
            case "@":
                return self.person(target[1:], label.removeprefix("@"))
            case "#":
                return StyledText(
                    self._lookup.channel(target[1:], label.removeprefix("#")), 0, True
                )
            case "!":
                return self._special(target[1:], label)
        return self.link(unescaped(target), label, style)

    def _special(self, target: str, label: str) -> StyledText:
        name, *rest = target.split("^")
        match name:
            case "here" | "channel" | "everyone" | "group":
                return StyledText(EVERYONE, 0, True)
            case "subteam" if rest:
                return self.group(rest[0], label)
            case "date" if rest:
                return self.date(rest[0], label)
        return StyledText(escaped(label or f"<!{target}>"))

    def person(self, key: str, label: str = "") -> StyledText:
        self.people.add(key)
        return StyledText(self._lookup.person(key, label), 0, True)

    def group(self, key: str, label: str = "") -> StyledText:
        self.groups.add(key)
        return StyledText(self._lookup.group(key, label), 0, True)

    def channel(self, key: str) -> StyledText:
        return StyledText(self._lookup.channel(key, ""), 0, True)

    def date(self, seconds: str, label: str) -> StyledText:
        try:
            at = datetime.fromtimestamp(int(seconds[:12]), UTC)
        except (ValueError, OverflowError, OSError):
            return StyledText(escaped(label))
        return StyledText(f"<time:{at:%Y-%m-%dT%H:%M:%SZ}>", 0, True)

    def link(self, url: str, label: str = "", style: int = 0) -> StyledText:
        url = clean(url).strip()
        known = self._lookup.link(url, label)
        if known is not None:
            return StyledText(known, style, known.startswith("\x02"))
        address = url.removeprefix("mailto:") if url.startswith("mailto:") else ""
        if not _WITH_SCHEME.match(url) or len(url) > MAX_URL:
            return StyledText(escaped(label or f"<{url}>"), style)
        if address and label in {"", address}:
            return StyledText(escaped(address), style)
        if label in {"", url} or url.partition("://")[2].rstrip("/") == label:
            return StyledText(url_of(url), style, False, True)
        return StyledText(linked(escaped(label), url), style)


def joined(blocks: Sequence[str]) -> str:
    """Join blocks of Markdown, with an empty line after a block that would otherwise continue."""
    parts: list[str] = []
    for block in filter(None, blocks):
        if parts:
            last = parts[-1].rpartition("\n\n")[2]
            parts.append("\n\n" if _CONTINUING.search(last) else "\n")
        parts.append(block)
    return "".join(parts)


def _bullet(match: re.Match[str]) -> str:
    by_sign = {"◦": 1, "▪": 2}.get(match[0].strip()[:1], 0)
    return "  " * min(len(match[1].expandtabs(4)) // 4 or by_sign, 8) + "* "


def unescaped(text: str) -> str:
    """Replace Slack's escapes of `<`, `>`, and `&`."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _code(text: str) -> str:
    """Return code as it was typed, without Slack's markup of addresses."""

    def shown(match: re.Match[str]) -> str:
        target, _, label = match[1].partition("|")
        return label or (target if _WITH_SCHEME.match(target) else match[0])

    return unescaped(_ENTITY.sub(shown, text))


def plain(text: str, lookup: "NameLookup") -> str:
    """Return mrkdwn as one line of plain text."""
    text = clean(text).replace("```", " ")

    def entity(match: re.Match[str]) -> str:
        if match[2] is None:
            return match[1]
        target, _, label = match[2].partition("|")
        if target.startswith("@"):
            return f"@{lookup.name_of(target[1:]) or label or target[1:]}"
        if target.startswith("#"):
            return f"#{label or lookup.name_of(target[1:]) or target[1:]}"
        if target.startswith("!"):
            return label or f"@{target[1:].partition('^')[0]}"
        return label or target

    text = _ATOM.sub(entity, text[:4000])
    for _, pattern in _STYLES:
        text = pattern.sub(r"\1", text)
    text = re.sub(r"^[ \t]*(?:&gt;)+", "", text, flags=re.MULTILINE)
    text = _EMOJI.sub(_character, unescaped(text))
    return " ".join(text.split())


def _character(match: re.Match[str]) -> str:
    known = slack_emoji(match[1])
    return match[0] if known is None else text_of(known.code)


class NameLookup(Protocol):
    def name_of(self, key: str) -> str:
        """Return the name of a person or channel; empty if unknown."""
