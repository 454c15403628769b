"""Finding out what a mail says, in a worker: parsers of mails, of HTML and of quotations take as
long as the mail's author likes."""

import email
import re
from collections.abc import Iterator, Sequence
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Final, cast

from tertulia.outbound.html_markdown import soup_of, whole_markdown
from tertulia.service.mail_in.mails import MailFile, ReceivedMail

MAX_TEXT: Final = 40_000
"""Characters of a mail's plain text that are looked at: a message has a quarter of them, and what
finds quotations takes as long as their square. (Of HTML, `soup_of` looks at more: what is before
the first word is often longer than that.)"""
MAX_HEADER: Final = 1000
MAX_PARTS: Final = 200
MAX_DEPTH: Final = 12
_LANGUAGES: Final = ["en", "de", "es", "fr", "it", "nl", "pl", "pt", "sv", "ja"]
_QUOTING_CLASSES: Final = re.compile(
    r"gmail_quote|gmail_extra|yahoo_quoted|moz-cite-prefix|protonmail_quote|zmail_extra"
)
_SIGNATURE_CLASSES: Final = re.compile(r"gmail_signature|moz-signature|protonmail_signature")
_QUOTING_IDS: Final = re.compile(r"(?:x_)*(?:appendonsend|divRplyFwdMsg|mail-editor-reference.*)")
_SIGNATURE_IDS: Final = re.compile(r"(?:x_)*(?:Signature|ms-outlook-mobile-signature)")
_BLANKS: Final = re.compile(r"\n{3,}")
_QUOTED: Final = re.compile(r"\s*>")
_WROTE: Final = re.compile(r"[0-9@].*:\s*$")
"""A line that says when or who, before what is quoted: in languages that the library lacks."""
_RULE: Final = re.compile(r"(?:\n\s*-{3,})+\s*$")


def load(*_: object) -> None:
    """Load what the others need."""
    import mailparser_reply  # type: ignore[import-untyped]  # noqa: F401 (its time does not count)

    whole_markdown(soup_of("<p>x</p>"))


def read(place: str, quotes: bool, footers: bool, prefer_html: bool) -> ReceivedMail:
    """The mail in the file, with what it quotes and how it is signed, if wanted."""
    mail = _mail(place)
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
        or any(mail[name] is not None for name in ("X-Autoreply", "X-Autorespond"))
        or mail.get_content_type() == "multipart/report"
    )
    return ReceivedMail(
        message_id=_header(mail, "Message-ID"),
        title=_header(mail, "Subject"),
        sender=_header(mail, "From"),
        is_answered_by_itself=answers,
        is_automatic=answers
        or automatic not in {"", "no"}
        or precedence in {"bulk", "junk", "list"},
        hops=len(mail.get_all("Received", [])),
        text=_BLANKS.sub("\n\n", text).strip(),
        files=tuple(
            MailFile(name=_name(part), content_type=part.get_content_type(), size=len(_bytes(part)))
            for part in files
        ),
    )


def unpack(place: str, into: list[str]) -> None:
    """Write the mail's files, as many as places are named, into those files, which are there."""
    files = _parts(_mail(place))[2]
    for part, target in zip(files, into, strict=False):
        Path(target).write_bytes(_bytes(part))


def _mail(place: str) -> EmailMessage:
    with open(place, "rb") as file:
        return email.message_from_binary_file(file, policy=default)


def _parts(mail: EmailMessage) -> tuple[str, str, Sequence[EmailMessage]]:
    """Its plain text, its HTML, and the parts that are files."""
    plain: list[str] = []
    html: list[str] = []
    files: list[EmailMessage] = []
    for part in _leaves(mail, 0, [MAX_PARTS]):
        kind = part.get_content_type()
        is_text = kind in {"text/plain", "text/html"} and not part.get_filename()
        if is_text and part.get_content_disposition() != "attachment":
            (plain if kind == "text/plain" else html).append(_decoded(part))
        else:
            files.append(part)
    return "\n\n".join(plain), "".join(html), files


def _leaves(part: EmailMessage, depth: int, left: list[int]) -> Iterator[EmailMessage]:
    left[0] -= 1
    if left[0] < 0:
        return
    if part.get_content_maintype() == "multipart" and part.is_multipart() and depth < MAX_DEPTH:
        for one in part.get_payload():
            yield from _leaves(cast(EmailMessage, one), depth + 1, left)
    elif part.get_content_maintype() != "multipart":
        yield part


def _bytes(part: EmailMessage) -> bytes:
    if part.is_multipart():  # A mail that was attached.
        inner = part.get_payload()
        first = inner[0] if isinstance(inner, list) and inner else part
        return cast(EmailMessage, first).as_bytes()
    found = part.get_payload(decode=True)
    return found if isinstance(found, bytes) else b""


def _decoded(part: EmailMessage) -> str:
    content = _bytes(part)
    for charset in (part.get_content_charset(), "utf-8", "latin-1"):
        try:
            text = content.decode(charset or "utf-8")
        except (LookupError, ValueError):  # Of bytes that are none, or of a name that is none.
            continue
        break
    # Some of the codecs that a mail can name make halves of characters.
    return text.encode("utf-8", "replace").decode().replace("\r\n", "\n")


def _header(mail: EmailMessage, name: str) -> str:
    try:
        found = str(mail.get(name, ""))
    except Exception:  # The library's parser of headers fails on some that are no headers.
        return ""
    return " ".join(found.split())[:MAX_HEADER]


def _name(part: EmailMessage) -> str:
    name = part.get_filename() or ""
    if not name and part.get_content_type() == "message/rfc822":
        name = "message.eml"
    if not name:
        name = f"attachment.{part.get_content_subtype()}"
    return " ".join(name.split())[:200]


def _of_plain(text: str, quotes: bool, footers: bool) -> str:
    # Blank lines are what it takes longest for: an hour where the text is nothing else.
    text = _BLANKS.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n")))
    lines = text.split("\n")
    if not quotes:
        kept = _reply(text)
        lines = _as_written(lines, kept) if kept else lines
        lines = _without_quotes(lines)
    if not footers:
        lines = _before_signature(lines)
    return "\n".join(line.rstrip() for line in lines)


def _reply(text: str) -> str:
    """What somebody has written above what they answer, every line without its indentation."""
    from mailparser_reply.parser import (  # type: ignore[import-untyped]  # it comes without types
        EmailMessage as Mail,
    )

    found = Mail(text=text, languages=list(_LANGUAGES), keep_hyphen_lists=True).read()
    return found.replies[0].full_body if found.replies else ""


def _as_written(lines: Sequence[str], kept: str) -> list[str]:
    """The lines of the beginning that was kept, as they were."""
    count = 0
    wanted = [line for line in kept.split("\n") if line.strip()]
    found: list[str] = []
    for line in lines:
        if count == len(wanted):
            break
        found.append(line)
        if line.strip() == wanted[count].strip():
            count += 1
    return found if count == len(wanted) else kept.split("\n")


def _without_quotes(lines: Sequence[str]) -> list[str]:
    """Without the quotation at its beginning or end; what is answered in between stays."""
    found = list(lines)
    while found and (not found[-1].strip() or _QUOTED.match(found[-1])):
        found.pop()
    if len(found) > 1 and len(found) < len(lines) and _WROTE.search(found[-1]):
        found.pop()
    return found or list(lines)


def _before_signature(lines: Sequence[str]) -> list[str]:
    for place, line in enumerate(lines):
        if line in {"-- ", "--"} and any(one.strip() for one in lines[:place]):
            return list(lines[:place])
    return list(lines)


def _of_html(html: str, quotes: bool, footers: bool) -> str:
    soup = soup_of(html)
    if not quotes:
        for element in soup.find_all(class_=_QUOTING_CLASSES):
            element.decompose()
        for element in soup.find_all("blockquote", attrs={"type": "cite"}):
            element.decompose()
        marked = soup.find(id=_QUOTING_IDS)
        if marked is not None:  # What follows it is what was answered.
            for string in list(marked.find_all_next(string=True)):
                string.extract()
            marked.decompose()
    if not footers:
        for element in soup.find_all(class_=_SIGNATURE_CLASSES):
            element.decompose()
        for element in soup.find_all(id=_SIGNATURE_IDS):
            element.decompose()
    return _RULE.sub("", whole_markdown(soup))
