"""Deleting messages when they have been kept as long as the organization wants."""

import asyncio
import logging
from typing import Final

from tertulia.domain import deleting
from tertulia.log.writer import Log
from tertulia.model.errors import Overtaken, Refused, Unavailable
from tertulia.store import editing
from tertulia.wire import gathering

logger = logging.getLogger("tertulia.retention")

PERIOD_SECONDS: Final = 3600
BATCH: Final = 1000
"""Messages that are deleted at once, so that others can write in between."""


async def keep_retained(log: Log) -> None:
    """Delete what is too old, now and every hour, until cancelled."""
    while True:
        try:
            await expired_once(log)
        except (Unavailable, Refused):  # It is tried again in an hour.
            logger.exception("old messages could not be deleted")
        await asyncio.sleep(PERIOD_SECONDS)


async def expired_once(log: Log) -> None:
    """Delete what is too old by now."""
    state = log.state
    for channel_id in [None, *(channel.id for channel in state.channels)]:
        before = deleting.kept_since(log.state, channel_id, log.clock())
        if before is None:
            continue
        while found := await log.store.read(editing.older_than, channel_id, before, BATCH):
            for message_ids in found:
                try:
                    doomed = await gathering.to_delete(log, message_ids)
                    if len(doomed.messages) != len(message_ids):
                        continue
                    await log.submit(None, deleting.expire, doomed, before)
                except Overtaken:
                    continue
            if deleting.kept_since(log.state, channel_id, log.clock()) is None:
                break
