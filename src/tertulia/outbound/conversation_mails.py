"""Emails with conversations: missed messages, and digests."""

import hashlib

from msgspec import Struct

from tertulia.outbound.mail_templates import (
    InlinePicture,
    RenderedMail,
    templates,
    unsubscribe_headers,
)


class QuotedMessage(Struct, frozen=True, kw_only=True):
    """A message in an email."""

    sender: str
    time: str
    html: str
    text: str
    is_before: bool = False
    """Whether it is only context."""


class QuotedConversation(Struct, frozen=True, kw_only=True):
    """A conversation in an email."""

    name: str
    link: str
    messages: tuple[QuotedMessage, ...]
    more: str = ""
    """A sentence about messages that are left out."""

    @property
    def direction(self) -> str:
        """The text direction of the name: automatic for channels and topics, and left-to-right for
        the server's own sentences."""
        return "auto" if self.name.startswith("#") else "ltr"


class ConversationMail(Struct, frozen=True, kw_only=True):
    """The content of an email, in the recipient's language."""

    to: str
    language: str
    title: str
    """The subject."""
    opening: str
    conversations: tuple[QuotedConversation, ...]
    link: str
    """The URL that the button leads to."""
    button: str
    endings: tuple[str, ...]
    unsubscribe: str
    """The link that turns off these emails without signing in."""
    unsubscribe_words: str
    organization: str
    site: str
    list_id: str
    thread: str = ""
    """Identifies the conversation, for threading; may be empty."""
    reply_to: str = ""
    """The address for replies; empty if they aren't accepted."""
    pictures: tuple[InlinePicture, ...] = ()


def rendered(mail: ConversationMail, host: str) -> RenderedMail:
    """Render the email. `host` is used in `List-Id` and message IDs."""
    facts = {"mail": mail}
    headers = [
        ("List-Id", f"<{mail.list_id}.{host}>"),
        *unsubscribe_headers(mail.unsubscribe),
    ]
    if mail.thread:
        root = f"<{thread_id(mail.to, mail.thread)}@{host}>"
        headers += [("In-Reply-To", root), ("References", root)]
    if mail.reply_to:
        headers.append(("Reply-To", mail.reply_to))
    return RenderedMail(
        to=mail.to,
        subject=" ".join(mail.title.split()),
        text=templates().get_template("conversations.txt").render(facts),
        html=templates().get_template("conversations.html").render(facts),
        headers=tuple(headers),
        pictures=mail.pictures,
    )


def thread_id(to: str, thread: str) -> str:
    """Return the thread's ID in headers, which reveals nothing about it."""
    digest = hashlib.sha256(f"{to}\0{thread}".encode()).hexdigest()
    return f"thread-{digest[:32]}"
