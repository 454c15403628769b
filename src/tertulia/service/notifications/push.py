"""Push notifications: queueing them for a person's devices, and their payloads."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain import permissions
from tertulia.domain.notifications.rules import NotificationMethod
from tertulia.integrations.payloads import short
from tertulia.log.log import Log
from tertulia.markup import addresses as narrow_links
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.outbound import addresses
from tertulia.outbound.http_client import Web
from tertulia.outbound.readable_html import readable
from tertulia.service.config import Config
from tertulia.service.node import Node
from tertulia.service.notifications.conversations import Notification
from tertulia.service.notifications.notifier import IDLE_SECONDS
from tertulia.store import pushes
from tertulia.store.database import Connection
from tertulia.store.pushes import PushAction
from tertulia.texts import language_for, texts

PATIENCE: Final = 0.2


class PushChannel:
    """Notifies people by push. `wake` is called when pushes were queued."""

    method = NotificationMethod.PUSH

    def __init__(self, log: Log, wake: Callable[[], None]) -> None:
        self._log = log
        self.enqueued = wake
        self._version: object = None
        self._people = BitMap()

    @property
    def interval(self) -> float:
        return PATIENCE if self.has_recipients else IDLE_SECONDS

    @property
    def has_recipients(self) -> bool:
        return bool(self._subscribers())

    def reachable(self, people: BitMap) -> BitMap:
        """Return the people who have push subscriptions."""
        return people & self._subscribers()

    def _subscribers(self) -> BitMap:
        table = self._log.state.push_subscriptions
        if (table, table.version) != self._version:
            self._version = table, table.version
            self._people = BitMap(table.of_user)
        return self._people

    def enqueue(
        self, notifications: Sequence[Notification], now: float
    ) -> Callable[[Connection], None]:
        grouped = self._log.state.push_subscriptions.of_user
        queued = [
            (
                subscription.id,
                notification.user_id,
                notification.conversation,
                notification.message_ids,
            )
            for notification in notifications
            for subscription in grouped[notification.user_id]
            if subscription.paused_until <= now
        ]

        def write(connection: Connection) -> None:
            for subscription_id, user_id, conversation, message_ids in queued:
                pushes.request(
                    connection,
                    subscription_id,
                    user_id,
                    conversation,
                    PushAction.SHOW,
                    message_ids,
                    now,
                )

        return write


SHOWN: Final = 3
"""The number of a conversation's newest messages whose text is shown."""
MAX_TEXT: Final = 300
"""Maximum length of one message's text, in characters."""
MAX_NAME: Final = 120
MAX_OPEN: Final = 20
"""Maximum number of unread conversations in a payload."""


class PushSummary(Struct, frozen=True):
    """The current state of a device's notifications, which each push carries."""

    unread: int
    """The number of unread messages."""
    open_tags: Sequence[str]
    """Tags of the unread conversations: clients close notifications with other tags."""

    def fields(self) -> dict[str, Any]:
        return {"badge": self.unread, "open": list(self.open_tags[:MAX_OPEN])}


def conversation_tag(node: Node, user_id: int, message: Message) -> str:
    """Return the notification tag of the message's conversation, as the web client computes it."""
    if message.direct_id is not None:
        members = node.state.directs[message.direct_id].members
        others = sorted(member_id for member_id in members if member_id != user_id) or [user_id]
        return "d" + ",".join(map(str, others))
    return f"c{message.channel_id}/{message.topic.lower()}"


def message_payload(
    node: Node, user: User, messages: Sequence[Message], around: PushSummary
) -> dict[str, Any]:
    """Return the payload of a notification about messages of one conversation, in ascending
    order."""
    state, newest = node.state, messages[-1]
    words = texts(language_for(state, user), "pushes")

    def name_of(user_id: int) -> str:
        other = state.users[user_id]
        sees = permissions.sees_user(state, user, other)
        return short(other.full_name, MAX_NAME) if sees else words("unknown")

    sender, reply = name_of(newest.sender_id), _reply_to(node, user, newest)
    is_one_to_one = False
    if newest.direct_id is not None:
        members = state.directs[newest.direct_id].members
        others = [
            member_id for member_id in members if member_id not in {user.id, newest.sender_id}
        ]
        is_one_to_one = not others
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
        site = node.config.mail_site
        lines = [plain_text(message.rendered, site, MAX_TEXT) for message in messages[-SHOWN:]]
        if not is_one_to_one:
            shown = zip(messages[-SHOWN:], lines, strict=True)
            lines = [f"{name_of(message.sender_id)}: {line}" for message, line in shown]
        if (more := len(messages) - SHOWN) > 0:
            lines.append(words("more", count=more))
        body = "\n".join(lines)
    return {
        "type": "message",
        "tag": conversation_tag(node, user.id, newest),
        "title": title,
        "body": body,
        "organization": state.realm.name,
        "url": link,
        "sent_at": newest.sent_at,
        "message_ids": [message.id for message in messages],
        "to": reply,
        "words": {key: words(key) for key in ("reply", "read", "placeholder", "failed")},
        **around.fields(),
    }


def read_payload(tag: str, around: PushSummary) -> dict[str, Any]:
    """Return the payload that closes a notification."""
    return {"type": "read", "tag": tag, **around.fields()}


def test_payload(node: Node, user: User) -> dict[str, Any]:
    """Return the payload of a test notification."""
    text = texts(language_for(node.state, user), "pushes")("test")
    return {"type": "test", "tag": "test", "title": node.state.realm.name, "body": text, "url": "/"}


def encoded_payload(payload: Mapping[str, Any], most: int, text: str = "body") -> bytes:
    """Encode as JSON of up to `most` bytes, shortening the text with that name if needed."""
    whole = dict(payload)
    while len(encoded := msgspec.json.encode(whole)) > most and whole.get(text):
        whole[text] = short(whole[text], len(whole[text]) // 2)
        if len(whole[text]) < 10:
            whole[text] = ""
    return encoded


def is_hidden(node: Node, user: User, message: Message) -> bool:
    """Whether to leave out the message's text: always if the organization doesn't allow it to leave
    the server, and for direct messages if the user wants that."""
    if not node.state.realm.message_content_allowed_in_email_notifications:
        return True
    settings = node.state.settings[user.id]
    return message.direct_id is not None and not settings.direct_content_in_desktop_notifications


def _reply_to(node: Node, user: User, message: Message) -> dict[str, Any]:
    """Return the recipients of a reply."""
    if message.direct_id is not None:
        members = node.state.directs[message.direct_id].members
        return {
            "user_ids": sorted(member_id for member_id in members if member_id != user.id)
            or [user.id]
        }
    return {"channel_id": message.channel_id, "topic": message.topic}


@lru_cache(maxsize=256)
def plain_text(html: str, site: str, most: int) -> str:
    """Return a message's text, shortened to `most` characters. Cached, because a message is often
    pushed to many people."""
    return short(" ".join(readable(html, site, {}).text.split()), most)


def push_services_web(config: Config) -> Web:
    """Return the HTTP client for push services: any port, at public addresses and in
    `web_push_networks`. Repeating a push is safe, because it has the same topic."""
    networks = addresses.networks(config.web_push_networks)
    return Web(config.external_url, ports=None, networks=networks, keeps=True)


def may_be_plain(config: Config, host: str) -> bool:
    """Whether the host can be contacted without TLS: it's an IP address in `web_push_networks`."""
    address = addresses.parsed(host)
    return address is not None and any(
        address in network for network in addresses.networks(config.web_push_networks)
    )
