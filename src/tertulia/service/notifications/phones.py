"""Push notifications to phones through the push bouncer: their payloads, and registering phones."""

import base64
import logging
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.accounts import phones
from tertulia.domain.accounts.avatars import full_avatar_url
from tertulia.model.devices import Device, PhonePush, PushService
from tertulia.model.errors import (
    NoActivePhone,
    PushBouncerDown,
    PushBouncerRejects,
    PushBouncerUnreachable,
    Unavailable,
)
from tertulia.model.messages import Message
from tertulia.model.numbers import retry_pause
from tertulia.model.users import User
from tertulia.outbound.push_bouncer import (
    EXPIRED_REGISTRATION,
    MAX_PAYLOAD,
    BouncerFailed,
    BouncerRefused,
    push_request,
)
from tertulia.service.node import Node
from tertulia.service.notifications.push import encoded_payload, is_hidden, plain_text
from tertulia.texts import language_for, texts

logger = logging.getLogger("tertulia.push")

MAX_TEXT: Final = 200
"""The most characters of a message's text."""
FIRST_PAUSE: Final = 5.0
LONGEST_PAUSE: Final = 3600.0
"""Pauses between failed registrations double up to this many seconds."""
GIVEN_UP_SECONDS: Final = 86_400
"""A phone that the bouncer hasn't accepted within this many seconds has to register again."""
IDLE_SECONDS: Final = 600.0


class PhoneNotification(Struct, frozen=True):
    """A notification for a phone."""

    payload: dict[str, Any]
    is_shown: bool
    """Whether the phone shows the notification; otherwise it removes notifications that it
    shows."""
    is_urgent: bool


def message_notification(
    node: Node, user: User, message: Message, *, is_urgent: bool
) -> PhoneNotification:
    """Return the notification about a message, in the form that Zulip's apps expect."""
    state, sender = node.state, node.state.users[message.sender_id]
    words = texts(language_for(state, user), "pushes")
    sees = permissions.sees_user(state, user, sender)
    text = plain_text(message.rendered, node.config.mail_site, MAX_TEXT)
    avatar = full_avatar_url(sender, sees_address=False) if sees else "/static/person.svg"
    payload = {
        **_base(node, user, "message"),
        "message_id": message.id,
        "sender_id": sender.id,
        "sender_full_name": sender.full_name if sees else words("unknown"),
        "sender_avatar_url": f"{node.config.mail_site.rstrip('/')}{avatar}",
        "time": message.sent_at,
        "content": words("hidden", count=1) if is_hidden(node, user, message) else text,
    }
    if message.direct_id is None:
        payload |= {
            "recipient_type": "channel",
            "channel_id": message.channel_id,
            "channel_name": state.channels[message.channel_id].name,
            "topic": message.topic,
        }
    else:
        members = state.directs[message.direct_id].members
        payload["recipient_type"] = "direct"
        if len(members) > 2:
            payload["pm_users"] = ",".join(map(str, sorted(members)))
    return PhoneNotification(payload, is_shown=True, is_urgent=is_urgent)


def removal_notification(node: Node, user: User, message_ids: Sequence[int]) -> PhoneNotification:
    """Return a notification that removes the notifications about messages."""
    payload = {**_base(node, user, "remove"), "message_ids": list(message_ids)}
    return PhoneNotification(payload, is_shown=False, is_urgent=False)


def _test_notification(node: Node, user: User) -> PhoneNotification:
    payload = {**_base(node, user, "test"), "time": int(node.clock())}
    return PhoneNotification(payload, is_shown=True, is_urgent=True)


def _base(node: Node, user: User, kind: str) -> dict[str, Any]:
    return {
        "type": kind,
        "realm_name": node.state.realm.name,
        "realm_url": node.config.mail_site,
        "user_id": user.id,
    }


async def notify_phone(
    node: Node, push: PhonePush, notifications: Sequence[PhoneNotification]
) -> bool:
    """Send notifications to a phone. Return False if its token no longer exists. Raise
    PushBouncerMissing, BouncerFailed, BouncerRefused; Unavailable while too many other requests
    wait."""
    requests = [_request(push, notification) for notification in notifications]
    return push.token_id not in await node.bouncer.notify(requests)


def _request(push: PhonePush, notification: PhoneNotification) -> dict[str, Any]:
    return push_request(
        encoded_payload(notification.payload, MAX_PAYLOAD, "content"),
        push.token_id or "",
        push.key_id,
        base64.b64decode(push.key)[1:],
        is_apple=push.service is PushService.APNS,
        is_shown=notification.is_shown,
        is_urgent=notification.is_urgent,
    )


async def send_test(node: Node, user: User, devices: Sequence[Device]) -> None:
    """Send a test notification to one person's phones that the bouncer knows. Raise
    PushBouncerMissing; PushBouncerFailed; NoActivePhone if none of them exists anymore."""
    notification = _test_notification(node, user)
    pushes = {device.id: device.push for device in devices if device.push and device.push.token_id}
    try:
        gone = await node.bouncer.notify([_request(push, notification) for push in pushes.values()])
    except BouncerRefused as error:
        logger.warning("the push bouncer refused a test: %s", error)
        raise PushBouncerRejects() from None
    except BouncerFailed as error:
        logger.warning("could not send a test to the push bouncer: %s", error)
        if not error.status:
            raise PushBouncerUnreachable() from None
        raise (PushBouncerRejects() if error.status < 429 else PushBouncerDown()) from None
    for device in devices:
        push = pushes.get(device.id)
        if push is not None and push.token_id in gone:
            await node.log.submit(None, phones.forget_gone, device.id, push.token_id)
    if gone.issuperset(push.token_id for push in pushes.values()):
        raise NoActivePhone()


class PhoneRegistrations:
    """Registers phones' tokens with the push bouncer."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._failures: dict[tuple[int, str], tuple[int, float]] = {}
        """The number of failures for a device and a token, and when to try again."""

    async def once(self) -> float:
        """Register the phones that are due. Return the seconds until the next one."""
        node = self._node
        waiting = {
            (device.id, device.push.pending_token_id or ""): device.push
            for device in node.state.devices.waiting
            if device.push is not None
        }
        self._failures = {key: value for key, value in self._failures.items() if key in waiting}
        for (device_id, token_id), push in waiting.items():
            failures, due_at = self._failures.get((device_id, token_id), (0, 0.0))
            if due_at > node.clock():
                continue
            if node.clock() - push.token_given_at > GIVEN_UP_SECONDS:
                await self._refused(device_id, token_id, EXPIRED_REGISTRATION)
                continue
            try:
                await node.bouncer.register(token_id, push.bouncer_public_key, push.registration)
            except BouncerRefused as error:
                logger.warning("the push bouncer refused a phone: %s", error)
                await self._refused(device_id, token_id, error.code)
            except (BouncerFailed, Unavailable) as error:
                logger.warning("the push bouncer didn't register a phone: %s", error)
                pause = retry_pause(failures + 1, FIRST_PAUSE, LONGEST_PAUSE)
                if isinstance(error, BouncerFailed):
                    pause = max(pause, min(error.wait, GIVEN_UP_SECONDS))
                self._failures[device_id, token_id] = failures + 1, node.clock() + pause
                if not isinstance(error, BouncerFailed) or not error.status:
                    return pause  # Other phones would fail as well.
            else:
                await node.log.submit(None, phones.accept_token, device_id, token_id)
        now = node.clock()
        return min(
            (max(due - now, 0.1) for _, due in self._failures.values()), default=IDLE_SECONDS
        )

    async def _refused(self, device_id: int, token_id: str, code: str) -> None:
        await self._node.log.submit(None, phones.refuse_token, device_id, token_id, code)
