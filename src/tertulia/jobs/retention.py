"""Deleting messages when they have been kept as long as the organization wants."""

import logging
from collections.abc import Sequence
from typing import Final

from tertulia.domain.messages import deleting
from tertulia.jobs.supervisor import Job, SetAside, is_outage
from tertulia.log.log import Log
from tertulia.service import preconditions
from tertulia.service.conflicts import retry_on_conflict
from tertulia.store import editing

logger = logging.getLogger("tertulia.retention")

PERIOD_SECONDS: Final = 3600.0
BATCH: Final = 1000
"""Messages that are deleted at once, so that others can write in between."""
DIRECT: Final = 0
"""Stands for the direct conversations, where channels have their IDs."""


def retention(log: Log) -> Job:
    """Deleting what is too old, every hour."""
    set_aside = SetAside()

    async def once() -> float:
        await expired_once(log, set_aside)
        return PERIOD_SECONDS

    return Job("retention", once, set_aside=set_aside)


async def expired_once(log: Log, set_aside: SetAside | None = None) -> None:
    """Delete what is too old by now. A channel of which that fails is set aside."""
    for channel_id in [None, *(channel.id for channel in log.state.channels)]:
        key = f"channel {channel_id or DIRECT}"
        if set_aside is not None and set_aside.is_resting(key):
            continue
        try:
            await _expire(log, channel_id)
        except Exception as error:
            if set_aside is None or is_outage(error):
                raise
            logger.exception("old messages of channel %s could not be deleted", channel_id)
            set_aside.failed(key, error)
        else:
            if set_aside is not None:
                set_aside.done(key)


async def _expire(log: Log, channel_id: int | None) -> None:
    # Looked at anew for each batch: they may be kept for longer by now.
    while (before := deleting.kept_since(log.state, channel_id, log.clock())) is not None:
        found = await log.store.read(editing.older_than, channel_id, before, BATCH)
        deleted = [await _delete(log, message_ids, before) for message_ids in found]
        if not any(deleted):
            return


async def _delete(log: Log, message_ids: Sequence[int], before: int) -> bool:
    """Whether any of them were deleted. False where that is not so because they are kept."""

    async def attempt() -> bool:
        doomed = await preconditions.to_delete(log, message_ids)
        # Those that are gone by now are missing; of none there is nothing to decide.
        if not doomed.messages:
            return False
        return await log.submit(None, deleting.expire, doomed, before)

    return await retry_on_conflict(attempt)
