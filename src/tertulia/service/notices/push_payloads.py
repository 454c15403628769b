"""What a push says, in its recipient's language. The client's worker shows it
(`web/src/worker/pushes.ts`), and programs of others may: docs/integrating.md has its form."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from tertulia.domain import permissions
from tertulia.integrations.prose import short
from tertulia.markup import narrow_links
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.outbound.readable_html import readable
from tertulia.outbound.texts import language_for, texts
from tertulia.service.node import Node

SHOWN: Final = 3
"""Messages of a conversation whose text is shown: the newest."""
MAX_TEXT: Final = 300
"""Characters of one of them."""
MAX_NAME: Final = 120
MAX_OPEN: Final = 20
"""Conversations of which it is said that they are still unread."""


class Around(Struct, frozen=True):
    """What each push says besides: of all that the program was told."""

    unread: int
    """Messages."""
    open_tags: Sequence[str]
    """Of the conversations that are still unread: notes about others can be closed."""

    def fields(self) -> dict[str, Any]:
        """As they are pushed."""
        return {"badge": self.unread, "open": list(self.open_tags[:MAX_OPEN])}


def tag_of(node: Node, user_id: int, message: Message) -> str:
    """What the conversation is called among the user's notes: what the web client calls it."""
    if message.direct_id is not None:
        members = node.state.directs[message.direct_id].members
        others = sorted(one for one in members if one != user_id) or [user_id]
        return "d" + ",".join(map(str, others))
    return f"c{message.channel_id}/{message.topic.lower()}"


def of_messages(
    node: Node, user: User, messages: Sequence[Message], around: Around
) -> dict[str, Any]:
    """A note about messages of one conversation, ascending."""
    state, newest = node.state, messages[-1]
    words = texts(language_for(state, user), "pushes")

    def name_of(user_id: int) -> str:
        other = state.users[user_id]
        sees = permissions.sees_user(state, user, other)
        return short(other.full_name, MAX_NAME) if sees else words("unknown")

    sender, reply = name_of(newest.sender_id), _where(node, user, newest)
    is_alone = False
    if newest.direct_id is not None:
        members = state.directs[newest.direct_id].members
        others = [one for one in members if one not in {user.id, newest.sender_id}]
        is_alone = not others
        title = sender
        if others:
            title = words("group", name=sender, others=", ".join(map(name_of, others[:5])))
        link = narrow_links.direct_message_address(members, newest.id)
    else:
        channel = state.channels[newest.channel_id]
        topic = newest.topic or words("general")
        title = f"#{short(channel.name, MAX_NAME)} > {short(topic, MAX_NAME)}"
        link = narrow_links.message_address(channel, newest.topic, newest.id)
    if is_hidden(node, user, newest):
        count = len(messages)
        body = words("hidden", count=count)
    else:
        lines = [_text(one.rendered, node.config.mail_site) for one in messages[-SHOWN:]]
        if not is_alone:
            shown = zip(messages[-SHOWN:], lines, strict=True)
            lines = [f"{name_of(one.sender_id)}: {line}" for one, line in shown]
        if (more := len(messages) - SHOWN) > 0:
            lines.append(words("more", count=more))
        body = "\n".join(lines)
    return {
        "type": "message",
        "tag": tag_of(node, user.id, newest),
        "title": title,
        "body": body,
        "organization": state.realm.name,
        "url": link,
        "sent_at": newest.sent_at,
        "message_ids": [one.id for one in messages],
        "to": reply,
        "words": {key: words(key) for key in ("reply", "read", "placeholder", "failed")},
        **around.fields(),
    }


def of_read(tag: str, around: Around) -> dict[str, Any]:
    """What takes a note back."""
    return {"type": "read", "tag": tag, **around.fields()}


def of_test(node: Node, user: User) -> dict[str, Any]:
    """A note that shows that pushes arrive."""
    text = texts(language_for(node.state, user), "pushes")("test")
    return {"type": "test", "tag": "test", "title": node.state.realm.name, "body": text, "url": "/"}


def encoded(payload: Mapping[str, Any], most: int) -> bytes:
    """As JSON of so many bytes at most: where it is too long, text is left out."""
    whole = dict(payload)
    while len(found := msgspec.json.encode(whole)) > most and whole.get("body"):
        whole["body"] = short(whole["body"], len(whole["body"]) // 2)
        if len(whole["body"]) < 10:
            whole["body"] = ""
    return found


def is_hidden(node: Node, user: User, message: Message) -> bool:
    """Whether what people wrote is left out: of everything, where the organization does not want it
    to leave the server, and of direct messages, where the person does not want it in notes."""
    if not node.state.realm.message_content_allowed_in_email_notifications:
        return True
    settings = node.state.settings[user.id]
    return message.direct_id is not None and not settings.direct_content_in_desktop_notifications


def _where(node: Node, user: User, message: Message) -> dict[str, Any]:
    """Where an answer goes."""
    if message.direct_id is not None:
        members = node.state.directs[message.direct_id].members
        return {"user_ids": sorted(one for one in members if one != user.id) or [user.id]}
    return {"channel_id": message.channel_id, "topic": message.topic}


@lru_cache(maxsize=256)
def _text(html: str, site: str) -> str:
    """The same message is often told to many."""
    return short(" ".join(readable(html, site, {}).text.split()), MAX_TEXT)
