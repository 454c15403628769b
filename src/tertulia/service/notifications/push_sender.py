"""Sending queued push notifications to people's devices, with retries."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence, Set
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
from tertulia.model.devices import PushSubscription
from tertulia.model.errors import Refused, TooOften, Unavailable
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.outbound.http_responses import NotFetched, WebResponse, is_temporary, seconds_to_wait
from tertulia.outbound.web_push import MAX_PAYLOAD, encrypted
from tertulia.service.node import Node
from tertulia.service.notifications import push as push_payloads
from tertulia.service.notifications.mail import reason_now
from tertulia.service.notifications.push import PushSummary, conversation_tag
from tertulia.service.tasks import FairTasks, RetryLater
from tertulia.store import message_marks, pushes, queries
from tertulia.store.database import Connection
from tertulia.store.lanes import DEVICES
from tertulia.store.pushes import LeasedPushes, Push, PushAction

logger = logging.getLogger("tertulia.push")

AT_ONCE: Final = 16
"""Devices that one node pushes to at the same time."""
PER_PERSON: Final = 4
"""Of these, devices of one person, so that slow push services of one person don't delay others."""
PER_TURN: Final = 8
"""Pushes to one device in one turn."""
CALL_SECONDS: Final = 10.0
LEASE_SECONDS: Final = 120.0
"""Longer than a turn takes."""
FIRST_PAUSE: Final = 5.0
LONGEST_PAUSE: Final = 3600.0
"""Pauses after failures double up to this, or as long as the push service asks for."""
LIVES_SECONDS: Final = 86_400
"""A notification that has not arrived within this time is dropped."""
_LANES_READ: Final = AT_ONCE // PER_PERSON * subscriptions.MAX_SUBSCRIPTIONS + AT_ONCE
"""Lanes that are read at a time: enough to find one that `PER_PERSON` does not hold back."""
MAX_RESPONSE: Final = 16_384
LONGEST_SLEEP: Final = 30.0
"""Another node may have left something."""
GONE: Final = frozenset({404, 410})
URGENT: Final = frozenset({NotificationReason.DIRECT, NotificationReason.MENTIONED})
_CLOCK_IS_WRONG: Final = frozenset({401, 403})
"""Statuses that can mean that this server's clock is wrong, and are worth a retry."""
_NEVER_SILENT: Final = ("push.apple.com",)
"""Push services that block apps whose pushes show nothing. There, notifications are closed by the
next push that shows one."""


class _Known(Struct, frozen=True):
    """The messages of a lane, and the user's relations to them."""

    messages: Mapping[int, Message]
    relations: Mapping[int, message_marks.Relation]


class _Gone(Exception):
    """The push service no longer knows the device."""


class PushSender:
    """Sends the push notifications of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.tasks = FairTasks(
            AT_ONCE, PER_PERSON, self._person_of, logger, "could not push to a device"
        )
        """Running tasks, by subscription ID."""
        self._readers: set[int] = set()
        """People who have read something since the last round."""
        self._deleted: set[int] = set()
        """Messages that were deleted since the last round."""
        self._has_ended = True
        """Whether subscriptions may have ended that still have queued pushes."""

    def follow(self, entries: Sequence[Entry]) -> None:
        """Note what was read or deleted, and call `tasks.wake` if a round is needed."""
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
        """The user ID, or a unique number if the subscription has ended."""
        subscription = self._node.state.push_subscriptions.get(subscription_id)
        return -subscription_id if subscription is None else subscription.user_id

    # What was read elsewhere

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
        highest = subscriptions.highest  # Others may know of some that came later.
        there = await store.read(pushes.subscription_ids)
        if gone := [one for one in there if one <= highest and one not in subscriptions.rows]:
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
        """The push's messages to notify the user of as of now, with reasons."""
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
        if subscription is None or user is None or not user.is_active:
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
            except Exception:  # A bug must not be retried forever.
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
        """Send one push. Return whether the device shows it now. Raises RetryLater and _Gone."""
        node = self._node
        left = int(LIVES_SECONDS - (node.clock() - push.asked_at))
        if left <= 0 or subscription.paused_until > node.clock():
            return False
        if still and quiet_until(node.state, user.id, node.clock()) is not None:
            return push.wanted is not PushAction.SHOW  # What is shown already stays.
        topic = node.vault.mark(f"push {subscription.id} {push.conversation}")
        if still:
            if push.wanted is PushAction.TAKE_BACK:
                return True  # It is unread again.
            payload = push_payloads.message_payload(
                node, user, [message for message, _ in still], around
            )
            is_urgent = any(reason in URGENT for _, reason in still)
            await self._push(subscription, payload, left, topic, "high" if is_urgent else "normal")
            return True
        if push.wanted is PushAction.SHOW or _must_show(subscription):
            return False
        newest = known.messages.get(push.message_ids[-1]) if push.message_ids else None
        tag = "" if newest is None else conversation_tag(node, user.id, newest)
        await self._push(
            subscription, push_payloads.read_payload(tag, around), left, topic, "normal"
        )
        return False

    async def _push(
        self,
        subscription: PushSubscription,
        payload: Mapping[str, Any],
        seconds: int,
        topic: str,
        urgency: str,
    ) -> None:
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
    """Push the payload, and return the push service's response. Raises NotFetched without a
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

    Raises Refused with the push service's status, and removes a device that the service no longer
    knows. Raises TooOften while another test of this user is being sent.
    """
    if user.id in node.push_tests:
        raise TooOften(
            CALL_SECONDS, "A test notification is already being sent. Wait until it finishes."
        )
    payload = push_payloads.test_payload(node, user)
    topic = node.vault.mark(f"push {subscription.id} test")
    node.push_tests.add(user.id)
    try:
        reply = await send_push(node, subscription, payload, 300, topic, "high")
    except NotFetched as error:
        raise Refused(f"Couldn't reach the push service: {error}.") from None
    finally:
        node.push_tests.discard(user.id)
    if reply.status in GONE:
        await node.log.submit(
            None, subscriptions.forget_gone, subscription.id, subscription.endpoint
        )
        raise Refused("The push service no longer knows this device, so the device was removed.")
    if not 200 <= reply.status < 300:
        raise Refused(f"The push service responded with status {reply.status}.")


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
    """The contact for operators of push services."""
    site = node.config.mail_site
    return site if site.startswith("https:") else f"mailto:noreply@{node.config.address_host}"


def _must_show(subscription: PushSubscription) -> bool:
    host = subscription.service
    return any(host == item or host.endswith(f".{item}") for item in _NEVER_SILENT)


def _facts(subscription: PushSubscription, reply: WebResponse) -> dict[str, Any]:
    """Fields to log. The endpoint is a secret."""
    return {"subscription": subscription.id, "status": reply.status}
