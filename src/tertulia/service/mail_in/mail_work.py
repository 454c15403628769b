"""Parsing email in a worker process, because the time that it takes depends on the email."""

import base64
import contextlib
import email
import re
from collections import deque
from collections.abc import Iterator, Sequence
from email.errors import InvalidBase64LengthDefect
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, Final, cast

from tertulia.outbound.html_markdown import soup_of, whole_markdown
from tertulia.service.mail_in.receiving import MailFile, ReceivedMail

MAX_TEXT: Final = 40_000
"""Characters of plain text that are parsed. A message has a quarter of them, and finding quotes
takes quadratic time. (`soup_of` parses more HTML, which often has much before its first word.)"""
MAX_HEADER: Final = 1000
MAX_PARTS: Final = 200
MAX_DEPTH: Final = 12
_LANGUAGES: Final = ["en", "de", "es", "fr", "it", "nl", "pl", "pt", "sv", "ja"]
_QUOTING_CLASSES: Final = re.compile(
    r"gmail_quote|gmail_extra|yahoo_quoted|moz-cite-prefix|protonmail_quote|zmail_extra"
)
_HIDDEN: Final = re.compile(r"display:\s*none", re.I)
"""The style of text that only lists of emails show."""
_SIGNATURE_CLASSES: Final = re.compile(r"gmail_signature|moz-signature|protonmail_signature")
_QUOTING_IDS: Final = re.compile(r"(?:x_)*(?:appendonsend|divRplyFwdMsg|mail-editor-reference.*)")
_SIGNATURE_IDS: Final = re.compile(r"(?:x_)*(?:Signature|ms-outlook-mobile-signature)")
_QUOTING_STYLES: Final = re.compile(r"border-top:\s*solid\s*#(?:E1E1E1|B5C4DF)", re.I)
"""Outlook's line above the quoted email."""
_FORWARDED: Final = re.compile(
    r"\s*(?:fwd?|wg|tr|rv|enc|i|doorst|vb|pd|fs|転送)\s*[:\N{FULLWIDTH COLON}]", re.I
)
"""Subject prefixes of forwarded emails, whose quotes are the content."""
_CHARSETS: Final = {
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "us-ascii": "utf-8",
    "ascii": "utf-8",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "iso-2022-jp": "iso2022_jp_ext",
}
"""Charsets that are decoded as a superset, as browsers do."""
_MOST_DAMAGED: Final = 0.05
"""The largest accepted fraction of invalid characters."""
_BLANKS: Final = re.compile(r"\n{3,}")
_RULED: Final = re.compile(r"|_{5,}|-{5,}")
"""Lines that separate a quote from the reply above."""
_ADVERTISING: Final = re.compile(
    r"(?:Sent from (?:my |Mail|Outlook|Yahoo|Proton)|Get Outlook for |Von meinem |Gesendet mit |"
    r"Gesendet von (?:Mail|Outlook)|Envoyé (?:de mon|à partir d)|Enviado desde (?:mi |Outlook)|"
    r"Enviado (?:do meu|pelo meu|de meu) |Obtener Outlook |Holen Sie sich Outlook ).{0,80}"
    r"|.{0,20}から送信",
    re.I,
)
_NO_BASE64: Final = re.compile(r"[^A-Za-z0-9+/]")
_QUOTED: Final = re.compile(r"\s*>")
_WROTE: Final = re.compile(r"[0-9@].*:\s*$")
"""A line such as "On …, … wrote:", including languages that the library doesn't know."""
_RULE: Final = re.compile(r"(?:\n\s*-{3,})+\s*$")


def load(*_: object) -> None:
    """Load the libraries."""
    import mailparser_reply  # type: ignore[import-untyped]  # noqa: F401 (its time does not count)

    whole_markdown(soup_of("<p>x</p>"))


def read(path: str, quotes: bool, footers: bool, prefer_html: bool) -> ReceivedMail:
    """Parse the email in a file. `quotes` and `footers` keep quotes and signatures."""
    mail = _mail(path)
    title = _header(mail, "Subject")
    quotes = quotes or _FORWARDED.match(title) is not None
    plain, html, files = _parts(mail)
    text = ""
    if html and (prefer_html or not plain.strip()):
        text = _of_html(html, quotes, footers)
    if not text:
        text = _of_plain(plain[:MAX_TEXT], quotes, footers)
    automatic = _header(mail, "Auto-Submitted").lower()
    precedence = _header(mail, "Precedence").lower()
    answers = (
        automatic.startswith("auto-replied")
        or precedence in {"auto_reply", "auto-reply"}
        or any(name in mail for name in ("X-Autoreply", "X-Autorespond", "X-Autoreply-From"))
        or mail.get_content_type() == "multipart/report"
    )
    return ReceivedMail(
        message_id=_header(mail, "Message-ID"),
        title=title,
        sender=_header(mail, "From"),
        is_auto_reply=answers,
        is_automatic=answers
        or automatic not in {"", "no"}
        or precedence in {"bulk", "junk", "list"}
        or "List-Id" in mail,
        hops=len(mail.get_all("Received", [])),
        text=_BLANKS.sub("\n\n", text).strip(),
        files=tuple(
            MailFile(name=_name(part), content_type=part.get_content_type(), size=len(_bytes(part)))
            for part in files
        ),
    )


def unpack(path: str, into: list[str]) -> None:
    """Write the email's attachments to existing files, one for each path."""
    files = _parts(_mail(path))[2]
    for part, target in zip(files, into, strict=False):
        Path(target).write_bytes(_bytes(part))


def _mail(path: str) -> EmailMessage:
    with open(path, "rb") as file:
        mail = email.message_from_binary_file(file, policy=default)
    waiting = deque([mail])
    for _ in range(MAX_PARTS):
        if not waiting:
            break
        part = waiting.popleft()
        _mend_header(part)
        if part.is_multipart():
            waiting.extend(cast(list[EmailMessage], part.get_payload()))
    return mail


def _mend_header(part: EmailMessage) -> None:
    """Decode non-ASCII headers as UTF-8 (RFC 6532) or as cp1252."""
    results = list(part.raw_items())
    if all(str(value).isascii() for _, value in results):
        return
    for name, _ in results:
        del part[name]
    for name, value in results:
        part.set_raw(name, _unescaped(str(value)))


def _unescaped(text: str) -> str:
    content = text.encode("utf-8", "surrogateescape")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _parts(mail: EmailMessage) -> tuple[str, str, Sequence[EmailMessage]]:
    """Return the plain text, the HTML, and the attachments."""
    plain: list[str] = []
    html: list[str] = []
    files: list[EmailMessage] = []
    for part in _leaves(mail, 0, [MAX_PARTS]):
        kind = part.get_content_type()
        is_text = kind in {"text/plain", "text/html"} and not part.get_filename()
        if part.get_content_maintype() == "multipart":  # Its parts can't be parsed.
            plain.append(_decoded(part))
        elif is_text and part.get_content_disposition() != "attachment":
            (plain if kind == "text/plain" else html).append(_decoded(part))
        else:
            files.append(part)
    return "\n\n".join(plain), "".join(html), files


def _leaves(part: EmailMessage, depth: int, left: list[int]) -> Iterator[EmailMessage]:
    left[0] -= 1
    if left[0] < 0:
        return
    if part.get_content_maintype() == "multipart" and part.is_multipart() and depth < MAX_DEPTH:
        for item in part.get_payload():
            yield from _leaves(cast(EmailMessage, item), depth + 1, left)
    elif not part.is_multipart() or part.get_content_maintype() != "multipart":
        yield part


def _bytes(part: EmailMessage) -> bytes:
    if part.is_multipart():  # An attached email.
        inner = part.get_payload()
        first = inner[0] if isinstance(inner, list) and inner else part
        return cast(EmailMessage, first).as_bytes()
    payload = part.get_payload(decode=True)
    if any(isinstance(item, InvalidBase64LengthDefect) for item in part.defects):
        # It was cut off, so drop the incomplete end.
        letters = _NO_BASE64.sub("", str(part.get_payload()))
        return base64.b64decode(letters[: len(letters) // 4 * 4])
    return payload if isinstance(payload, bytes) else b""


def _decoded(part: EmailMessage) -> str:
    content, named = _bytes(part), (part.get_content_charset() or "utf-8").lower()
    charset = _CHARSETS.get(named, named)
    text = content.decode("cp1252", "replace")
    for attempt in (_exact, _damaged):
        if (result := attempt(content, charset)) is not None:
            text = result
            break
    # Some codecs produce lone surrogates.
    text = text.encode("utf-8", "replace").decode().replace("\r\n", "\n")
    is_flowed = part.get_content_type() == "text/plain" and part.get_param("format") == "flowed"
    return _unflowed(text, part.get_param("delsp") == "yes") if is_flowed else text


def _exact(content: bytes, charset: str) -> str | None:
    """Return the text if it's valid in this charset or in UTF-8."""
    for attempt in (charset, "utf-8"):
        with contextlib.suppress(
            LookupError, ValueError
        ):  # The charset doesn't exist, or the bytes are invalid.
            return content.decode(attempt)
    return None


def _damaged(content: bytes, charset: str) -> str | None:
    """Return the text if only little of it is invalid in this charset and the rest isn't only
    ASCII."""
    with contextlib.suppress(LookupError, ValueError):
        text = content.decode(charset, "replace")
        rest = text.replace("\N{REPLACEMENT CHARACTER}", "")
        if not rest.isascii() and len(text) - len(rest) <= len(text) * _MOST_DAMAGED:
            return text
    return None


def _unflowed(text: str, without_space: bool) -> str:
    """Join lines that end with a space (RFC 3676), except in quotes."""
    results: list[str] = []
    goes_on = False
    for line in text.split("\n"):
        if line.startswith(">"):
            results.append(line)
            goes_on = False
            continue
        said = line.removeprefix(" ")
        is_broken = said.endswith(" ") and said != "-- "
        piece = said[:-1] if is_broken and without_space else said
        if goes_on and said != "-- ":
            results[-1] += piece
        else:
            results.append(piece)
        goes_on = is_broken
    return "\n".join(results)


def _header(mail: EmailMessage, name: str) -> str:
    try:
        result = str(mail.get(name, ""))
    except Exception:  # The library fails on some malformed headers.
        return ""
    return " ".join(result.split())[:MAX_HEADER]


def _name(part: EmailMessage) -> str:
    name = part.get_filename() or ""
    if not name and part.get_content_type() == "message/rfc822":
        name = "message.eml"
    if not name:
        name = f"attachment.{part.get_content_subtype()}"
    return " ".join(name.split())[:200]


def _is_for_looks(table: Any) -> bool:
    """Whether the table is only used for layout."""
    if table.find("table") is not None or table.get("role") == "presentation":
        return True
    return all(len(row.find_all(["td", "th"])) <= 1 for row in table.find_all("tr"))


def _of_plain(text: str, quotes: bool, footers: bool) -> str:
    # Long runs of blank lines can take hours.
    text = _BLANKS.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n")))
    lines = text.split("\n")
    if not footers:
        lines = _before_signature(lines)
    if not quotes:
        kept = _reply("\n".join(lines))
        lines = _as_written(lines, kept) if kept else lines
        lines = _without_quotes(lines)
        while len(lines) > 1 and _RULED.fullmatch(lines[-1].strip()):
            lines = lines[:-1]
    if not footers:
        lines = _without_advertising(lines)
    return "\n".join(line.rstrip() for line in lines)


def _reply(text: str) -> str:
    """Return the text above the quote, without indentation."""
    from mailparser_reply.parser import (  # type: ignore[import-untyped]  # it comes without types
        EmailMessage as Mail,
    )

    result = Mail(text=text, languages=list(_LANGUAGES), keep_hyphen_lists=True).read()
    return result.replies[0].full_body if result.replies else ""


def _as_written(lines: Sequence[str], kept: str) -> list[str]:
    """Restore the indentation of the lines in `kept`."""
    count = 0
    wanted = [line for line in kept.split("\n") if line.strip()]
    results: list[str] = []
    for line in lines:
        if count == len(wanted):
            break
        results.append(line)
        if line.strip() == wanted[count].strip():
            count += 1
    return results if count == len(wanted) else kept.split("\n")


def _without_quotes(lines: Sequence[str]) -> list[str]:
    """Remove the quote at the end. Replies between quotes stay."""
    results = list(lines)
    while results and (not results[-1].strip() or _QUOTED.match(results[-1])):
        results.pop()
    if len(results) > 1 and len(results) < len(lines) and _WROTE.search(results[-1]):
        results.pop()
    return results or list(lines)


def _before_signature(lines: Sequence[str]) -> list[str]:
    for index, line in enumerate(lines):
        if line in {"-- ", "--"} and any(line.strip() for line in lines[:index]):
            return list(lines[:index])
    return list(lines)


def _without_advertising(lines: Sequence[str]) -> list[str]:
    """Remove a last line such as "Sent from my phone"."""
    result = list(lines)
    while result and not result[-1].strip():
        result.pop()
    if len(result) > 1 and _ADVERTISING.fullmatch(result[-1].strip()):
        result.pop()
    return result


def _of_html(html: str, quotes: bool, footers: bool) -> str:
    soup = soup_of(html)
    for element in soup.find_all(style=_HIDDEN):
        element.decompose()
    for table in soup.find_all("table"):
        if _is_for_looks(table):
            for element in table.find_all(["tbody", "thead", "tr", "td"]):
                if element.find_parent("table") is table:
                    element.name = "div"
            table.name = "div"
    if not quotes:
        for element in soup.find_all(class_=_QUOTING_CLASSES):
            element.decompose()
        for element in soup.find_all("blockquote", attrs={"type": "cite"}):
            element.decompose()
        marked = soup.find(id=_QUOTING_IDS) or soup.find("div", style=_QUOTING_STYLES)
        if marked is not None:  # The quoted email follows.
            for string in list(marked.find_all_next(string=True)):
                string.extract()
            marked.decompose()
    if not footers:
        for element in soup.find_all(class_=_SIGNATURE_CLASSES):
            element.decompose()
        for element in soup.find_all(id=_SIGNATURE_IDS):
            element.decompose()
    return _RULE.sub("", whole_markdown(soup))
