"""Deleting messages: single ones, topics, a person's messages, and expired ones."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tertulia.domain import names, permissions
from tertulia.domain.channels import channels
from tertulia.domain.messages import deleting
from tertulia.domain.messages.deleting import BATCH, DeletionScope
from tertulia.log.log import Log
from tertulia.model.channels import topic_key
from tertulia.model.errors import Conflict, NoSuchMessage
from tertulia.model.narrow import LARGEST
from tertulia.service.messages import preconditions
from tertulia.service.node import Caller, retry_on_conflict
from tertulia.store import editing, topics

TOPIC_SECONDS = 20.0
"""The number of seconds for which one request deletes messages, in batches."""
WRITTEN_SECONDS = 5.0
"""The same for a person's messages, whose deletion may take minutes. Clients show its progress
after each request."""
_FOUND: Final = 5000
"""The number of an account's messages that are read at a time. People write in many conversations,
and those of one conversation are deleted together."""
_CONVERSATIONS: Final = 8
"""The number of conversations whose messages are deleted at the same time."""


async def delete_message(caller: Caller, message_id: int) -> None:
    """Delete a message. Raise NoSuchMessage, and as `tertulia.domain.messages.deleting.delete`."""

    async def attempt() -> None:
        doomed = await preconditions.to_delete(caller.node.log, [message_id])
        if not doomed.messages:
            raise NoSuchMessage
        await caller.submit(deleting.delete, doomed)

    await retry_on_conflict(attempt)


async def delete_topic(caller: Caller, channel_id: int, topic: str) -> bool:
    """Delete all messages of a topic, newest first. Return whether the topic is empty; if not,
    because `TOPIC_SECONDS` have passed, call this again. Raise Refused; NotPermitted without
    permission."""
    channel = channels.existing_channel(caller.state, caller.user, channel_id)
    deleting.require_may_delete_any(caller.context(), channel.id)
    key = topic_key(names.topic_name(topic))
    conversation = (channel.id, key, None)
    loop = asyncio.get_running_loop()
    until = loop.time() + TOPIC_SECONDS

    async def piece() -> int:
        """Delete a batch, and return its size."""
        # Newest first, so that clients see the beginning of the remaining messages.
        ids = await caller.node.store.read(
            topics.newest_of_topic, channel.id, key, [(0, LARGEST)], BATCH
        )
        if ids:
            doomed = await preconditions.to_delete(caller.node.log, ids)
            if [message.conversation for message in doomed.messages] != [conversation] * len(ids):
                raise Conflict
            await caller.submit(deleting.delete, doomed)
        return len(ids)

    while await retry_on_conflict(piece):
        if loop.time() > until:
            return False
    return True


async def delete_written(
    caller: Caller,
    user_ids: Iterable[int],
    scope: DeletionScope,
    worked: Callable[[int], Awaitable[None]],
) -> bool:
    """Delete the messages of these accounts in `scope`. Return whether all are deleted; if not,
    because `WRITTEN_SECONDS` have passed, call this again. `worked` is called after each batch,
    with its size. Raise NotPermitted if the caller isn't an administrator."""
    permissions.require_administrator(caller.state, caller.user)
    loop = asyncio.get_running_loop()
    until = loop.time() + WRITTEN_SECONDS
    for user_id in user_ids:
        after = 0
        while lines := await caller.node.store.read(editing.written_by, user_id, after, _FOUND):
            after = lines[-1][0]
            result: dict[tuple[object, ...], list[int]] = defaultdict(list)
            for message_id, channel_id, *conversation in lines:
                if scope.have(caller.state, channel_id):
                    result[channel_id, *conversation].append(message_id)
            for some in _together(result):
                if loop.time() > until:
                    return False
                deletions = (_delete_written(caller, message_ids, scope) for message_ids in some)
                for ended in await asyncio.gather(*deletions, return_exceptions=True):
                    if ended is not None:
                        raise ended
                await worked(sum(map(len, some)))
    return True


def _together(
    conversations: Mapping[tuple[object, ...], Sequence[int]],
) -> Iterator[list[Sequence[int]]]:
    """Yield the messages in groups that can be deleted at the same time and share a commit: up to
    `BATCH` messages of a few conversations.

    The keys begin with the channel. Deletions in one channel follow each other, because each may
    need the channel's first message afterwards.
    """
    some: list[Sequence[int]] = []
    channel_ids: set[object] = set()
    for (channel_id, *_), every in conversations.items():
        for first in range(0, len(every), BATCH):
            part = every[first : first + BATCH]
            if (
                len(some) == _CONVERSATIONS
                or channel_id in channel_ids
                or sum(map(len, some)) + len(part) > BATCH
            ):
                yield some
                some, channel_ids = [], set()
            some.append(part)
            channel_ids.add(channel_id)
    if some:
        yield some


async def _delete_written(caller: Caller, message_ids: Sequence[int], scope: DeletionScope) -> None:
    async def attempt() -> None:
        doomed = await preconditions.to_delete(caller.node.log, message_ids)
        if doomed.messages:
            await caller.submit(deleting.delete_written, doomed, scope)

    await retry_on_conflict(attempt)


async def expire_messages(log: Log, channel_id: int | None) -> None:
    """Delete expired messages of a channel (None: direct messages), as the server."""
    # The retention time may have changed since the last batch.
    while (before := deleting.kept_since(log.state, channel_id, log.clock())) is not None:
        results = await log.store.read(editing.older_than, channel_id, before, BATCH)
        deleted = [await _expire(log, message_ids, before) for message_ids in results]
        if not any(deleted):
            return


async def _expire(log: Log, message_ids: Sequence[int], before: int) -> bool:
    """Delete the messages, and return whether any was deleted; False if the retention period has
    changed."""

    async def attempt() -> bool:
        doomed = await preconditions.to_delete(log, message_ids)
        # They may already be deleted.
        if not doomed.messages:
            return False
        return await log.submit(None, deleting.expire, doomed, before)

    return await retry_on_conflict(attempt)
