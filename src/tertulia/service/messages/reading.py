"""Reading messages, with permissions checked after reading, and listing a channel's topics."""

import asyncio
import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain import channel_access
from tertulia.model.channels import Channel
from tertulia.model.errors import Conflict
from tertulia.model.messages import Message
from tertulia.model.narrow import MessageSearch
from tertulia.model.users import User, as_present
from tertulia.service.node import Caller, Node, retry_on_conflict
from tertulia.state.messages import entries_of
from tertulia.state.unread_bitmaps import ReadState
from tertulia.store import message_marks, queries, topics
from tertulia.store.database import Connection
from tertulia.store.message_details import MessageDetails
from tertulia.store.message_marks import MessageMarks, Relation

R = TypeVar("R")


async def read_unchanged(
    node: Node,
    look: Callable[[Connection], R],
    messages: Callable[[R], Iterable[Message]],
    search: MessageSearch | None = None,
) -> R:
    """Return the result of `look` once none of its messages changed while it read. Raise Conflict
    if they keep changing. `search` is None for messages by ID."""

    async def attempt() -> R:
        seq = node.state.seq
        await node.log.durability.settled()
        result = await (
            node.store.read(look) if search is None else node.store.search(search, look)
        )
        things = {thing for message in messages(result) for thing in entries_of(message)}
        if node.state.recent_writes.since(seq, things):
            raise Conflict
        return result

    return await retry_on_conflict(attempt)


def may_read(node: Node, user: User | None, message: Message) -> bool:
    """Whether the user (None: a spectator) can read the message now."""
    if user is not None:
        present = as_present(user, node.state.users[user.id])
        return present.is_active and channel_access.reads_message(node.state, present, message)
    channel = node.state.channels.get(message.channel_id)
    return (
        node.admits_spectators
        and channel is not None
        and channel_access.open_to_spectators(channel)
    )


def readable(node: Node, user: User | None, messages: Iterable[Message]) -> list[Message]:
    """Return the messages for which `may_read` is true. Data about channels is cached."""
    if user is None:
        return [message for message in messages if may_read(node, user, message)]
    state, present = node.state, as_present(user, node.state.users[user.id])
    if not present.is_active:
        return []
    is_open: dict[int | None, bool] = {None: False}
    result = []
    for message in messages:
        channel_id = message.channel_id
        if channel_id not in is_open:
            is_open[channel_id] = channel_access.reads_whole_history(
                state, present, state.channels[channel_id]
            )
        if is_open[channel_id] or channel_access.reads_message(state, present, message):
            result.append(message)
    return result


async def readable_message(node: Node, user: User | None, message_id: int) -> Message | None:
    """Return the message, if it exists and the user (None: a spectator) can read it."""
    result = await read_unchanged(
        node,
        lambda connection: queries.messages(connection, [message_id]),
        lambda messages: messages,
    )
    return result[0] if result and may_read(node, user, result[0]) else None


async def stored_message(node: Node, message_id: int) -> Message | None:
    """Return the message without checking permissions, which the verb does."""
    messages = await node.store.read(queries.messages, [message_id])
    return messages[0] if messages else None


LOOKUPS: Final = 5000
"""The number of lookups per step: topics times spans of a subscription."""


class TopicByNewest(Struct, frozen=True):
    """A topic, and its newest message that the reader can read."""

    name: str
    newest_id: int


async def topics_of(caller: Caller, channel_id: int) -> Iterable[TopicByNewest]:
    """Return the topics of the channel, the most recent first. A channel can have 100,000 topics,
    so the result is lazy. Raise Refused if the caller can't read the channel."""
    state = caller.state
    user = caller.user if caller.user_id is not None else None
    channel = channel_access.readable_channel(state, user, channel_id)
    if user is None or channel.history_public:
        known = state.topics.by_newest_message[channel.id][::-1]
        return (TopicByNewest(topic.name, topic.last_message_id) for topic in known)
    return await _received(caller, user, channel)


async def _received(caller: Caller, user: User, channel: Channel) -> Iterable[TopicByNewest]:
    """Yield topics with messages that the user received, in steps between which the event loop does
    other work."""
    subscription = caller.state.subscription(user.id, channel.id)
    if subscription is None or not subscription.spans:
        return ()
    first = min(after for after, _ in subscription.spans)
    results: list[TopicByNewest] = []
    others: list[tuple[str, str]] = []
    known = caller.state.topics.by_newest_message[channel.id][::-1]
    batch = max(LOOKUPS // len(subscription.spans), 1)
    for begin in range(0, len(known), batch):
        for topic in known[begin : begin + batch]:
            if subscription.covers(topic.last_message_id):
                results.append(TopicByNewest(topic.name, topic.last_message_id))
            elif topic.last_message_id > first:
                others.append((topic.key, topic.name))
        await asyncio.sleep(0)
    # The newest message of the other topics was sent while the user was not subscribed.
    parts = [results]
    for begin in range(0, len(others), batch):
        some = dict(others[begin : begin + batch])
        newest = await caller.node.store.read(
            topics.newest_by_topic, channel.id, list(some), subscription.spans
        )
        part = [TopicByNewest(some[key], newest_id) for key, newest_id in newest.items()]
        parts.append(sorted(part, key=_newest_first))
    return heapq.merge(*parts, key=_newest_first)


def _newest_first(topic: TopicByNewest) -> int:
    return -topic.newest_id


Relations = Mapping[int, Relation]
"""Relations by message ID."""
Details = Mapping[int, MessageDetails]
"""Details by message ID; messages without details are missing."""


class MessageExtras(Struct, frozen=True):
    """Data that responses show in addition to messages."""

    relations: Relations
    """The reader's relations; empty for spectators."""
    details: Details


NO_EXTRAS = MessageExtras({}, {})


def is_loaded(node: Node, user_id: int) -> bool:
    """Whether the user's flags are in memory."""
    return user_id in node.state.unread.readers


async def relations_now(
    node: Node, user: User | None, ids: Sequence[int], read: Relations
) -> Relations:
    """Return the user's relations to the messages: from memory if loaded, otherwise `read` from the
    database."""
    if user is None or read or not ids:
        return read
    reader = node.state.unread.readers.get(user.id)
    if reader is None:
        return await node.store.read(message_marks.relations, user.id, ids)
    return loaded_relations(reader, ids)


def loaded_relations(reader: ReadState, ids: Iterable[int]) -> dict[int, Relation]:
    wanted = BitMap(ids)
    flags: dict[int, int] = defaultdict(int)
    for flag, flagged in reader.flagged.items():
        for message_id in flagged & wanted:
            flags[message_id] |= flag
    marks = MessageMarks(flags, reader.read)
    return {message_id: marks.relation(message_id) for message_id in wanted}
