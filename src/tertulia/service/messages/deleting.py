"""Deleting messages: one, a topic, a person's, and expired ones."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence

from tertulia.domain import channel_access, names, permissions
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
"""How long one request deletes messages, in batches."""


async def delete_message(caller: Caller, message_id: int) -> None:
    """Delete a message. Raises NoSuchMessage, and as `tertulia.domain.messages.deleting.delete`."""

    async def attempt() -> None:
        doomed = await preconditions.to_delete(caller.node.log, [message_id])
        if not doomed.messages:
            raise NoSuchMessage
        await caller.submit(deleting.delete, doomed)

    await retry_on_conflict(attempt)


async def delete_topic(caller: Caller, channel_id: int, topic: str) -> bool:
    """Delete all messages of a topic, the newest first. Return whether the topic is empty; if not,
    because `TOPIC_SECONDS` have passed, call it again. Raises NoSuchChannel and Refused."""
    channel = channel_access.visible_channel(caller.state, caller.user, channel_id=channel_id)
    deleting.require_may_delete_any(caller.context(), channel.id)
    key = topic_key(names.topic_name(topic))
    conversation = (channel.id, key, None)
    loop = asyncio.get_running_loop()
    until = loop.time() + TOPIC_SECONDS

    async def piece() -> int:
        """Delete a batch, and return its size."""
        # Newest first, so that clients see the beginning of what is left.
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
    places: DeletionScope,
    worked: Callable[[int], Awaitable[None]],
) -> bool:
    """Delete the messages of these accounts in `places`. Return whether all are deleted, as in
    `delete_topic`. `worked` is called after each batch, with its size. Raises NotPermitted if the
    caller isn't an administrator."""
    permissions.require_administrator(caller.state, caller.user)
    loop = asyncio.get_running_loop()
    until = loop.time() + TOPIC_SECONDS
    for user_id in user_ids:
        after = 0
        while lines := await caller.node.store.read(editing.written_by, user_id, after, BATCH):
            if loop.time() > until:
                return False
            after = lines[-1][0]
            result: dict[tuple[object, ...], list[int]] = defaultdict(list)
            for message_id, channel_id, *conversation in lines:
                if places.have(caller.state, channel_id):
                    result[channel_id, *conversation].append(message_id)
            for message_ids in result.values():
                await _delete_written(caller, message_ids, places)
            await worked(sum(map(len, result.values())))
    return True


async def _delete_written(
    caller: Caller, message_ids: Sequence[int], places: DeletionScope
) -> None:
    async def attempt() -> None:
        doomed = await preconditions.to_delete(caller.node.log, message_ids)
        if doomed.messages:
            await caller.submit(deleting.delete_written, doomed, places)

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
    """Return whether any message was deleted; False if the retention time has changed."""

    async def attempt() -> bool:
        doomed = await preconditions.to_delete(log, message_ids)
        # They may be gone already.
        if not doomed.messages:
            return False
        return await log.submit(None, deleting.expire, doomed, before)

    return await retry_on_conflict(attempt)
