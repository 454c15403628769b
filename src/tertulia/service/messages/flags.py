"""Message flags: marking as read or unread, starring, and collapsing."""

import asyncio
from collections.abc import Iterable
from typing import Any, TypeVar

from pyroaring import BitMap

from tertulia.domain.accounts import personal
from tertulia.domain.messages import flags
from tertulia.domain.messages.flags import KnownMessage
from tertulia.model.channels import Subscription
from tertulia.model.errors import NoSuchMessage
from tertulia.model.messages import ANY_MENTION, Flag, Message
from tertulia.service.messages.reading import readable
from tertulia.service.node import Caller, Node, retry_on_conflict
from tertulia.state.decision import CommandContext, Decision, Verb
from tertulia.state.state import State
from tertulia.store import message_details, message_marks, queries
from tertulia.store.database import Connection
from tertulia.store.message_marks import Relation

T = TypeVar("T")


async def known_messages(caller: Caller, message_ids: Iterable[int]) -> list[KnownMessage]:
    """Return the messages with the caller's flags, for verbs that change the flags. Raise
    NoSuchMessage if the caller can't read one."""
    user = caller.user
    ids = sorted(set(message_ids))

    def look(connection: Connection) -> tuple[list[Message], dict[int, Relation]]:
        messages = queries.messages(connection, ids)
        return messages, message_marks.relations(
            connection, user.id, [message.id for message in messages]
        )

    messages, relations = await caller.node.store.read(look)
    if len(readable(caller.node, user, messages)) != len(ids):
        raise NoSuchMessage
    reader = ReaderFlags(caller.state, user.id)
    known: list[KnownMessage] = []
    for message in messages:
        relation = relations[message.id]
        flags_by_now, is_read, _ = reader.of(message, relation)
        is_mentioned = bool(flags_by_now & ANY_MENTION)
        known.append(
            KnownMessage(
                message=message, flags=relation.flags, is_read=is_read, is_mentioned=is_mentioned
            )
        )
    return known


class ReaderFlags:
    """A user's flags on messages, for one state. Data about channels is cached."""

    def __init__(self, state: State, user_id: int) -> None:
        self._state, self._user_id = state, user_id
        self._channels: dict[int, tuple[Subscription | None, int, bool]] = {}

    def of(self, message: Message, relation: Relation) -> tuple[Flag, bool, bool]:
        """Return the flags, including a wildcard mention that reached the user; whether the message
        counts as read; and whether the user received it.

        Messages are unread if they arrived while the user was subscribed, or in the user's
        conversations, until they are marked as read; and if the user marked them as unread.
        """
        flags, is_read, channel_id = relation.flags, relation.read, message.channel_id
        if channel_id is None:
            is_received = self._state.received(self._user_id, message)
        else:
            known = self._channels.get(channel_id)
            if known is None:
                known = self._channels[channel_id] = self._in_channel(channel_id)
            subscription, unread_since, is_active = known
            is_received = subscription is not None and subscription.covers(message.id)
            if not is_read:
                is_read = not is_active or (message.id <= unread_since and not flags & Flag.RECORD)
        if is_received and message.mentions_all:
            flags |= Flag.CHANNEL_WILDCARD_MENTIONED
        return flags, is_read, is_received

    def _in_channel(self, channel_id: int) -> tuple[Subscription | None, int, bool]:
        """Return the user's subscription, the last message that counts as read by default, and
        whether the subscription is active. Otherwise, all of the channel counts as read."""
        subscription = self._state.subscription(self._user_id, channel_id)
        if subscription is None or not subscription.is_active:
            return subscription, 0, False
        return subscription, self._state.unread_since(subscription), True


def is_read(state: State, user_id: int, message: Message, relation: Relation) -> bool:
    return ReaderFlags(state, user_id).of(message, relation)[1]


# Unread messages


async def mute_user(caller: Caller, muted_id: int) -> None:
    """Mute a user, so that their messages, including future ones, count as read."""
    await caller.submit(personal.mute_user, muted_id)

    unread = await unread_ids(caller.node, caller.user.id)
    theirs = await caller.node.store.read(message_details.from_sender, muted_id, list(unread))
    await submit_with_unread(caller, flags.mark_given_read, theirs)


async def unread_ids(node: Node, user_id: int) -> BitMap:
    return await node.log.with_unread(
        user_id, lambda state: state.unread.unread_ids(state, user_id)
    )


async def submit_with_unread(caller: Caller, verb: Verb[T], *arguments: Any) -> T:
    """Submit a verb that needs the caller's unread messages, and keep them loaded until it has
    decided."""

    async def attempt() -> T:
        decided = asyncio.Event()

        def decide(context: CommandContext, *given: Any) -> Decision[T]:
            decided.set()
            return verb(context, *given)

        async with caller.node.log.unread_held(caller.user.id):
            command = asyncio.create_task(caller.submit(decide, *arguments))
            command.add_done_callback(lambda _: decided.set())
            try:
                await decided.wait()
            except asyncio.CancelledError:
                command.cancel()
                raise
        return await command

    return await retry_on_conflict(attempt)
