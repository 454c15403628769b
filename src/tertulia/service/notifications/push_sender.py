"""Sending queued push notifications to people's devices, with retries."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any, Final

from msgspec import Struct

from tertulia.domain.accounts import pushes as subscriptions
from tertulia.domain.notifications.quiet import quiet_until
from tertulia.domain.notifications.rules import NotificationMethod, NotificationReason
from tertulia.model.changes import (
    Entry,
    MessagesDeleted,
    MessagesRead,
    PushUnsubscribed,
    SessionsEnded,
)
from tertulia.model.devices import Device, PushSubscription
from tertulia.model.errors import Refused, TooOften, Unavailable
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.outbound.http_responses import NotFetched, WebResponse, is_temporary, seconds_to_wait
from tertulia.outbound.push_bouncer import BouncerFailed, BouncerRefused
from tertulia.outbound.web_push import MAX_PAYLOAD, encrypted
from tertulia.service.node import Node
from tertulia.service.notifications import phones
from tertulia.service.notifications import push as push_payloads
from tertulia.service.notifications.mail import reason_now
from tertulia.service.notifications.push import PushSummary, conversation_tag
from tertulia.service.tasks import FairTasks, RetryLater
from tertulia.store import message_marks, pushes, queries
from tertulia.store.database import Connection
from tertulia.store.lanes import DEVICES
from tertulia.store.pushes import LeasedPushes, Push, PushAction

logger = logging.getLogger("tertulia.push")

MAX_CONCURRENT: Final = 16
"""The most devices that one node pushes to at the same time."""
PER_PERSON: Final = 4
"""The most of these that belong to one person, so that one person's slow push services don't delay
others."""
PER_TURN: Final = 8
"""The most pushes to one device in one turn."""
CALL_SECONDS: Final = 10.0
LEASE_SECONDS: Final = 120.0
"""The duration of a lease in seconds, longer than a turn takes."""
FIRST_PAUSE: Final = 5.0
LONGEST_PAUSE: Final = 3600.0
"""Pauses after failures double up to this many seconds, and up to the time that the push service
asks for."""
LIVES_SECONDS: Final = 86_400
"""A notification that wasn't delivered within this many seconds is dropped."""
_LANES_READ: Final = MAX_CONCURRENT // PER_PERSON * subscriptions.MAX_SUBSCRIPTIONS + MAX_CONCURRENT
"""The number of devices whose pushes are read at a time: enough to find one that `PER_PERSON`
doesn't exclude."""
MAX_RESPONSE: Final = 16_384
LONGEST_SLEEP: Final = 30.0
"""The longest sleep in seconds, since another node may have left something."""
GONE: Final = frozenset({404, 410})
URGENT: Final = frozenset({NotificationReason.DIRECT, NotificationReason.MENTIONED})
_CLOCK_IS_WRONG: Final = frozenset({401, 403})
"""Statuses that can mean that this server's clock is wrong, and are worth a retry."""
_NEVER_SILENT: Final = ("push.apple.com",)
"""Push services that block apps whose pushes show nothing. For these, the next push that shows a
notification closes others."""


class _Known(Struct, frozen=True):
    """The messages of one device's pushes, and the user's relations to them."""

    messages: Mapping[int, Message]
    relations: Mapping[int, message_marks.Relation]


class _Gone(Exception):
    """The push service no longer knows the device."""


class PushSender:
    """Sends the push notifications of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.tasks = FairTasks(
            MAX_CONCURRENT, PER_PERSON, self._person_of, logger, "could not push to a device"
        )
        """Running tasks, by subscription ID."""
        self._readers: set[int] = set()
        """People who have read messages since the last round."""
        self._deleted: set[int] = set()
        """Messages that were deleted since the last round."""
        self._has_ended = True
        """Whether subscriptions may have ended that still have queued pushes."""

    def follow(self, entries: Sequence[Entry]) -> None:
        """Record which messages were read or deleted, and call `tasks.wake` if a round is
        needed."""
        subscriptions = self._node.state.push_subscriptions
        for entry in entries:
            match entry.change:
                case MessagesRead(user_id=user_id) if subscriptions.of_user.count(user_id):
                    self._readers.add(user_id)
                case MessagesDeleted(message_ids=message_ids) if subscriptions.rows:
                    self._deleted.update(message_ids)
                case PushUnsubscribed() | SessionsEnded():
                    self._has_ended = True
        if self._readers or self._deleted or self._has_ended:
            self.tasks.wake()

    async def once(self) -> float:
        """Start sending what is due. Return the seconds until the next round."""
        await self._close_read()
        if self._node.state.is_closed:
            return LONGEST_SLEEP
        store = self._node.store
        return await self.tasks.round(
            lambda: store.read(DEVICES.due, _LANES_READ),
            self._leased,
            self._lane,
            self._node.clock,
            LONGEST_SLEEP,
        )

    async def _leased(self, ids: list[int], now: float) -> list[tuple[int, LeasedPushes]]:
        lanes = await self._node.store.write(lambda c: pushes.lease(c, now, LEASE_SECONDS, ids))
        return [(lane.lease.receiver_id, lane) for lane in lanes]

    def _person_of(self, subscription_id: int) -> int:
        """Return the user ID, or a unique number if the subscription has ended."""
        subscription = self._node.state.push_subscriptions.get(subscription_id)
        return -subscription_id if subscription is None else subscription.user_id

    # Messages that were read elsewhere

    async def _close_read(self) -> None:
        node = self._node
        if self._has_ended:
            self._has_ended = False
            await self._forget_ended()
        readers, deleted = self._readers, self._deleted
        if not (readers or deleted):
            return
        self._readers, self._deleted = set(), set()
        try:
            shown = await node.store.read(lambda c: _shown_pushes(c, readers, deleted))
            dropped: list[Push] = []
            for user_id in {push.user_id for push in shown}:
                of_user = [push for push in shown if push.user_id == user_id]
                known = await self._known(user_id, of_user)
                user = node.state.users[user_id]
                for push in of_user:
                    if not self._still(user, push, known):
                        dropped.append(push)
                    await asyncio.sleep(0)
            if dropped:
                await node.store.write(partial(pushes.retract, shown=dropped, at=node.clock()))
        except BaseException:
            self._readers |= readers
            self._deleted |= deleted
            raise

    async def _forget_ended(self) -> None:
        store, subscriptions = self._node.store, self._node.state.push_subscriptions
        highest = subscriptions.highest  # Other nodes may know of later ones.
        there = await store.read(pushes.subscription_ids)
        if gone := [
            user_id for user_id in there if user_id <= highest and user_id not in subscriptions.rows
        ]:
            await store.write(partial(pushes.forget, subscription_ids=gone))

    async def _known(self, user_id: int, waiting: Iterable[Push]) -> _Known:
        ids = sorted({message_id for push in waiting for message_id in push.message_ids})

        def look(connection: Connection) -> _Known:
            messages = {message.id: message for message in queries.messages(connection, ids)}
            return _Known(messages, message_marks.relations(connection, user_id, ids))

        return await self._node.store.read(look)

    def _still(
        self, user: User, push: Push, known: _Known
    ) -> list[tuple[Message, NotificationReason]]:
        """Return the push's messages that the user is still to be notified about, with reasons."""
        result: list[tuple[Message, NotificationReason]] = []
        for message_id in push.message_ids:
            message = known.messages.get(message_id)
            if message is not None:
                relation = known.relations[message_id]
                reason = reason_now(
                    self._node.state, user, message, relation, NotificationMethod.PUSH
                )
                if reason is not None:
                    result.append((message, reason))
        return result

    # One program

    async def _lane(self, lane: LeasedPushes) -> None:
        node = self._node
        subscription = node.state.push_subscriptions.get(lane.lease.receiver_id)
        user = None if subscription is None else node.state.users[subscription.user_id]
        if (
            subscription is None
            or user is None
            or not user.is_active
            or not _is_served(node, subscription)
        ):
            await node.store.write(lambda c: pushes.forget(c, [lane.lease.receiver_id]))
            return
        known = await self._known(user.id, lane.pushes)
        still: dict[str, list[tuple[Message, NotificationReason]]] = {}
        for push in lane.pushes:
            still[push.conversation] = self._still(user, push, known)
            await asyncio.sleep(0)  # Let the event loop do other work.
        unread = [some for some in still.values() if some]
        around = PushSummary(
            sum(map(len, unread)),
            [conversation_tag(node, user.id, some[-1][0]) for some in unread[::-1]],
        )
        shown: list[Push] = []
        dropped: list[Push] = []
        failed: RetryLater | None = None
        waiting = [push for push in lane.pushes if push.wanted is not PushAction.SHOWN]
        for push in waiting[:PER_TURN]:
            try:
                is_shown = await self._one(
                    subscription, user, push, still[push.conversation], around, known
                )
            except RetryLater as error:
                failed = error
                break
            except _Gone:
                await self._forget(subscription)
                return
            except Exception:  # A bug must not cause endless retries.
                logger.exception("could not send a push")
                is_shown = False
            (shown if is_shown else dropped).append(push)
        now = node.clock()
        until = None
        if failed is not None:
            until = now + failed.pause(
                lane.lease.failures + 1, FIRST_PAUSE, LONGEST_PAUSE, LIVES_SECONDS, spread=0.25
            )
        trouble = "" if failed is None else str(failed)
        await node.store.write(
            lambda c: pushes.finish(c, lane, shown, dropped, now, until, trouble)
        )

    async def _one(
        self,
        subscription: PushSubscription,
        user: User,
        push: Push,
        still: Sequence[tuple[Message, NotificationReason]],
        around: PushSummary,
        known: _Known,
    ) -> bool:
        """Send one push. Return whether the device shows it now. Raise RetryLater and _Gone."""
        node = self._node
        left = int(LIVES_SECONDS - (node.clock() - push.asked_at))
        if left <= 0 or subscription.paused_until > node.clock():
            return False
        if still:
            channel_id = still[-1][0].channel_id
            if quiet_until(node.state, user.id, node.clock(), channel_id) is not None:
                # Notifications that are already shown stay.
                return push.wanted is not PushAction.SHOW
        is_urgent = any(reason in URGENT for _, reason in still)
        if still:
            if push.wanted is PushAction.TAKE_BACK:
                return True  # It is unread again.
            messages = [message for message, _ in still]
            if subscription.device_id is not None:
                new = [message for message in messages if message.id > push.shown_to]
                notifications = [
                    phones.message_notification(node, user, message, is_urgent=is_urgent)
                    for message in new
                ]
                await self._notify_phone(subscription.device_id, notifications)
            else:
                payload = push_payloads.message_payload(node, user, messages, around)
                urgency = "high" if is_urgent else "normal"
                await self._push(subscription, payload, left, push.conversation, urgency)
            return True
        if push.wanted is PushAction.SHOW or _must_show(subscription):
            return False
        if subscription.device_id is not None:
            removal = phones.removal_notification(node, user, push.message_ids)
            await self._notify_phone(subscription.device_id, [removal])
            return False
        newest = known.messages.get(push.message_ids[-1]) if push.message_ids else None
        tag = "" if newest is None else conversation_tag(node, user.id, newest)
        payload = push_payloads.read_payload(tag, around)
        await self._push(subscription, payload, left, push.conversation, "normal")
        return False

    async def _notify_phone(
        self, device_id: int, notifications: Sequence[phones.PhoneNotification]
    ) -> None:
        device = self._node.state.devices.get(device_id)
        if device is None or device.push is None:
            raise _Gone
        if not notifications:
            return
        outcome = "failed"
        try:
            if not await phones.notify_phone(self._node, device.push, notifications):
                outcome = "gone"
                raise _Gone
            outcome = "pushed"
        except BouncerRefused as error:
            outcome = "refused"
            logger.warning("push bouncer rejected a push: %s", error)
        except BouncerFailed as error:
            raise RetryLater(f"The push bouncer failed: {error}.", error.wait) from None
        except Unavailable as error:
            raise RetryLater(str(error)) from None
        finally:
            self._node.pushed[outcome] += 1

    async def _push(
        self,
        subscription: PushSubscription,
        payload: Mapping[str, Any],
        seconds: int,
        conversation: str,
        urgency: str,
    ) -> None:
        topic = self._node.vault.mark(f"push {subscription.id} {conversation}")
        outcome = "failed"
        try:
            reply = await send_push(self._node, subscription, payload, seconds, topic, urgency)
            if reply.status in GONE:
                outcome = "gone"
                raise _Gone
            if is_temporary(reply.status) or reply.status in _CLOCK_IS_WRONG:
                raise RetryLater(
                    f"The push service responded with status {reply.status}.",
                    seconds_to_wait(reply.headers),
                )
            outcome = "pushed" if 200 <= reply.status < 300 else "refused"
            if outcome == "refused":
                logger.warning(
                    "push service rejected a push", extra={"fields": _facts(subscription, reply)}
                )
        except NotFetched as error:
            raise RetryLater(f"Couldn't reach the push service: {error}.") from None
        except Unavailable as error:
            raise RetryLater(str(error)) from None
        finally:
            self._node.pushed[outcome] += 1

    async def _forget(self, subscription: PushSubscription) -> None:
        node = self._node
        logger.info(
            "push subscription no longer exists",
            extra={"fields": {"subscription": subscription.id}},
        )
        await node.log.submit(
            None, subscriptions.forget_gone, subscription.id, subscription.endpoint
        )
        await node.store.write(lambda c: pushes.forget(c, [subscription.id]))


async def send_push(
    node: Node,
    subscription: PushSubscription,
    payload: Mapping[str, Any],
    seconds: int,
    topic: str,
    urgency: str,
) -> WebResponse:
    """Push the payload, and return the push service's response. Raise NotFetched without a
    response, and Unavailable if this server has too many open requests."""
    body = encrypted(
        push_payloads.encoded_payload(payload, MAX_PAYLOAD),
        subscriptions.decoded(subscription.p256dh),
        subscriptions.decoded(subscription.auth),
    )
    headers = {
        "Authorization": node.push_key.authorization(
            subscription.endpoint, _contact(node), node.clock()
        ),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(seconds),
        "Urgency": urgency,
        "Topic": topic,
    }
    return await node.push_web.send(
        subscription.endpoint, body, headers, seconds=CALL_SECONDS, limit=MAX_RESPONSE
    )


async def send_test_push(node: Node, user: User, subscription: PushSubscription) -> None:
    """Send a test notification.

    Raise Refused with the push service's status (for a phone, as `send_test_to_phones`), and
    removes a device that the service no longer knows. Raise TooOften while another test of this
    user is being sent.
    """
    if (device := node.state.devices.get(subscription.device_id)) is not None:
        await send_test_to_phones(node, user, [device])
        return
    payload = push_payloads.test_payload(node, user)
    topic = node.vault.mark(f"push {subscription.id} test")
    with _testing(node, user):
        try:
            reply = await send_push(node, subscription, payload, 300, topic, "high")
        except NotFetched as error:
            raise Refused(f"Couldn't reach the push service: {error}.") from None
    if reply.status in GONE:
        await node.log.submit(
            None, subscriptions.forget_gone, subscription.id, subscription.endpoint
        )
        raise Refused("The push service no longer knows this device, so the device was removed.")
    if not 200 <= reply.status < 300:
        raise Refused(f"The push service responded with status {reply.status}.")


async def send_test_to_phones(node: Node, user: User, devices: Sequence[Device]) -> None:
    """Send a test notification to phones of one person.

    Raise PushBouncerMissing; PushBouncerFailed; NoActivePhone if none of them exists any longer;
    TooOften while another test of this user is being sent.
    """
    with _testing(node, user):
        await phones.send_test(node, user, devices)


@contextlib.contextmanager
def _testing(node: Node, user: User) -> Iterator[None]:
    """Raise TooOften while another test of this user is being sent."""
    if user.id in node.push_tests:
        raise TooOften(
            CALL_SECONDS, "A test notification is already being sent. Wait until it finishes."
        )
    node.push_tests.add(user.id)
    try:
        yield
    finally:
        node.push_tests.discard(user.id)


def _shown_pushes(connection: Connection, readers: Set[int], deleted: Set[int]) -> list[Push]:
    """Pushes that are shown to `readers`, and those about `deleted` messages that others see."""
    shown_pushes = pushes.shown_to(connection, readers)
    if deleted:
        some = pushes.all_shown(connection)
        shown_pushes += [
            push
            for push in some
            if push.user_id not in readers and not deleted.isdisjoint(push.message_ids)
        ]
    return shown_pushes


def _contact(node: Node) -> str:
    """Return the contact for operators of push services."""
    site = node.config.mail_site
    return site if site.startswith("https:") else f"mailto:noreply@{node.config.address_host}"


def _is_served(node: Node, subscription: PushSubscription) -> bool:
    """Whether this server sends pushes of that kind."""
    if subscription.device_id is None:
        return node.config.web_push
    return bool(node.config.push_bouncer_url)


def _must_show(subscription: PushSubscription) -> bool:
    host = subscription.service
    return any(host == item or host.endswith(f".{item}") for item in _NEVER_SILENT)


def _facts(subscription: PushSubscription, reply: WebResponse) -> dict[str, Any]:
    """Return the fields to log. The endpoint is secret and left out."""
    return {"subscription": subscription.id, "status": reply.status}
