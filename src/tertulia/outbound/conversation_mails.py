"""Mails that show conversations: what somebody has missed, and the digest."""

import hashlib

from msgspec import Struct

from tertulia.outbound.mail_templates import (
    InlinePicture,
    RenderedMail,
    templates,
    unsubscribe_headers,
)


class QuotedMessage(Struct, frozen=True, kw_only=True):
    """A message in a mail."""

    sender: str
    time: str
    html: str
    text: str
    is_before: bool = False
    """Whether it is there for sense only: it was read, or does not concern the person."""


class QuotedConversation(Struct, frozen=True, kw_only=True):
    """A conversation in a mail."""

    name: str
    link: str
    messages: tuple[QuotedMessage, ...]
    more: str = ""
    """What is said of messages that are left out."""

    @property
    def direction(self) -> str:
        """In which its name is written: that of a channel and topic as its letters are, while a
        sentence of ours has its own, whoever is named in it."""
        return "auto" if self.name.startswith("#") else "ltr"


class ConversationMail(Struct, frozen=True, kw_only=True):
    """What such a mail is made of, in the recipient's language."""

    to: str
    language: str
    title: str
    """Its subject."""
    opening: str
    conversations: tuple[QuotedConversation, ...]
    link: str
    """Where its button leads."""
    button: str
    endings: tuple[str, ...]
    unsubscribe: str
    """Where such mails are turned off without signing in."""
    unsubscribe_words: str
    organization: str
    site: str
    list_id: str
    thread: str = ""
    """What all mails of one conversation to one person have in common; empty for none."""
    reply_to: str = ""
    """Where an answer goes; empty where none arrives."""
    pictures: tuple[InlinePicture, ...] = ()


def rendered(mail: ConversationMail, host: str) -> RenderedMail:
    """The mail in words. `host` is that of the identifiers in its header."""
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
    """What stands for a thread in the header of mails: it says nothing of what is in it."""
    digest = hashlib.sha256(f"{to}\0{thread}".encode()).hexdigest()
    return f"thread-{digest[:32]}"
