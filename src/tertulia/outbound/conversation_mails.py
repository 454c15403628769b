"""Mails that show conversations: what somebody has missed, and the digest."""

import hashlib
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tertulia.outbound.mail_templates import (
    InlinePicture,
    RenderedMail,
    templates,
    unsubscribe_headers,
)

Words = Mapping[str, str]


class ShownMessage(Struct, frozen=True, kw_only=True):
    """A message in a mail."""

    sender: str
    time: str
    html: str
    text: str
    is_before: bool = False
    """Whether it is there for sense only: it was read, or does not concern the person."""


class ShownConversation(Struct, frozen=True, kw_only=True):
    """A conversation in a mail."""

    name: str
    link: str
    messages: tuple[ShownMessage, ...]
    more: str = ""
    """What is said of messages that are left out."""


class ConversationMail(Struct, frozen=True, kw_only=True):
    """What such a mail is made of, in the recipient's language."""

    to: str
    language: str
    title: str
    """Its subject."""
    opening: str
    conversations: tuple[ShownConversation, ...]
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


WORDS: Final[Mapping[str, Words]] = {
    "en": {
        "unknown": "Unknown user",
        "opening_direct": "{name} wrote to you in {organization}.",
        "opening_group": "There is something new in a conversation of yours in {organization}.",
        "opening_mentioned": "You were mentioned in {organization}.",
        "opening_wildcard": "Everybody in a conversation of yours was mentioned in {organization}.",
        "opening_followed": "There is something new in a topic that you follow in {organization}.",
        "opening_channel": "There is something new in a channel that you want to be told of,"
        " in {organization}.",
        "direct": "Direct messages with {names}",
        "general": "general chat",
        "button": "Open the conversation",
        "more": "… and {count} more.",
        "hidden_subject": "New messages",
        "hidden": "There are {count} new messages for you in {organization}.",
        "hidden_one": "There is a new message for you in {organization}.",
        "hidden_button": "Open {organization}",
        "hidden_by_realm": "The organization keeps what messages say out of mails.",
        "hidden_by_self": "You have chosen that mails do not show what messages say.",
        "no_reply": "Answer in {organization}: an answer to this mail is read by nobody.",
        "reply": "Answer this mail to answer there.",
        "why": "You got this mail because you were not there. How you are told is in the settings:"
        " {settings}",
        "unsubscribe": "No more such mails",
        "digest_subject": "What went on in {organization}",
        "digest_opening": "Hello {name}! Here is some of what was written in {organization} since"
        " you were last there.",
        "digest_messages": "{count} messages, by {people}",
        "digest_message": "one message, by {people}",
        "digest_and_others": "{people} and others",
        "digest_why": "You get a digest because you were away for a while. It can be turned off in"
        " the settings: {settings}",
    },
    "es": {
        "unknown": "Usuario desconocido",
        "opening_direct": "{name} te ha escrito en {organization}.",
        "opening_group": "Hay algo nuevo en una conversación tuya en {organization}.",
        "opening_mentioned": "Te han mencionado en {organization}.",
        "opening_wildcard": "Han mencionado a todos en una conversación tuya en {organization}.",
        "opening_followed": "Hay algo nuevo en un tema que sigues en {organization}.",
        "opening_channel": "Hay algo nuevo en un canal del que quieres recibir avisos, en"
        " {organization}.",
        "direct": "Mensajes directos con {names}",
        "general": "chat general",
        "button": "Abrir la conversación",
        "more": "… y {count} más.",
        "hidden_subject": "Mensajes nuevos",
        "hidden": "Hay {count} mensajes nuevos para ti en {organization}.",
        "hidden_one": "Hay un mensaje nuevo para ti en {organization}.",
        "hidden_button": "Abrir {organization}",
        "hidden_by_realm": "La organización no deja que los correos digan lo que dicen los"
        " mensajes.",
        "hidden_by_self": "Has elegido que los correos no digan lo que dicen los mensajes.",
        "no_reply": "Contesta en {organization}: nadie lee las respuestas a este correo.",
        "reply": "Contesta a este correo para contestar allí.",
        "why": "Has recibido este correo porque no estabas. Cómo se te avisa está en los ajustes:"
        " {settings}",
        "unsubscribe": "No quiero más correos así",
        "digest_subject": "Lo que ha pasado en {organization}",
        "digest_opening": "¡Hola, {name}! Esto es parte de lo que se ha escrito en {organization}"
        " desde que estuviste por última vez.",
        "digest_messages": "{count} mensajes, de {people}",
        "digest_message": "un mensaje, de {people}",
        "digest_and_others": "{people} y otros",
        "digest_why": "Recibes un resumen porque has estado fuera un tiempo. Se desactiva en los"
        " ajustes: {settings}",
    },
}
"""What such mails say, in each language."""
