"""Telling by push: what is to be told becomes a row for each program of the person's, which is
written in words when it is pushed."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain import permissions
from tertulia.domain.notifications.rules import Way
from tertulia.integrations.payloads import short
from tertulia.log.log import Log
from tertulia.markup import addresses as narrow_links
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.outbound import addresses
from tertulia.outbound.http_client import Web
from tertulia.outbound.readable_html import readable
from tertulia.outbound.texts import language_for, texts
from tertulia.service.config import Config
from tertulia.service.node import Node
from tertulia.service.notifications.channels import IDLE_PATIENCE, Told
from tertulia.store import pushes
from tertulia.store.database import Connection
from tertulia.store.pushes import Wanted

PATIENCE: Final = 0.2


class ByPush:
    """Tells by push. `wanted` is called when there is something to be pushed."""

    way = Way.PUSH

    def __init__(self, log: Log, wanted: Callable[[], None]) -> None:
        self._log = log
        self.recorded = wanted
        self._version: object = None
        self._people = BitMap()

    @property
    def patience(self) -> float:
        return PATIENCE if self.reaches_somebody else IDLE_PATIENCE

    @property
    def reaches_somebody(self) -> bool:
        return bool(self._reached())

    def reached(self, people: BitMap) -> BitMap:
        """Those who have a program that is pushed to."""
        return people & self._reached()

    def _reached(self) -> BitMap:
        table = self._log.state.push_subscriptions
        if (table, table.version) != self._version:
            self._version = table, table.version
            self._people = BitMap(table.of_user)
        return self._people

    def records(self, told: Sequence[Told], now: float) -> Callable[[Connection], None]:
        own = self._log.state.push_subscriptions.of_user
        asked = [
            (subscription.id, one.user_id, one.conversation, one.message_ids)
            for one in told
            for subscription in own[one.user_id]
            if subscription.paused_until <= now
        ]

        def write(connection: Connection) -> None:
            for subscription_id, user_id, conversation, message_ids in asked:
                pushes.ask(
                    connection,
                    subscription_id,
                    user_id,
                    conversation,
                    Wanted.SHOW,
                    message_ids,
                    now,
                )

        return write


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


def encoded_payload(payload: Mapping[str, Any], most: int) -> bytes:
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


def push_services_web(config: Config) -> Web:
    """By any port, at public addresses and those that the operator lists. What is pushed twice has
    the same topic, and takes its own place."""
    networks = addresses.networks(config.web_push_networks)
    return Web(config.external_url, ports=None, networks=networks, keeps=True)


def may_be_plain(config: Config, host: str) -> bool:
    """Whether the host may be asked without TLS: a machine of the operator's, by its number."""
    address = addresses.parsed(host)
    return address is not None and any(
        address in network for network in addresses.networks(config.web_push_networks)
    )
