"""Deleting messages when they have been kept as long as the organization wants."""

import logging
from typing import Final

from tertulia.jobs.supervisor import FailedItems, Job, is_outage
from tertulia.log.log import Log
from tertulia.service.messages.deleting import expire_messages

logger = logging.getLogger("tertulia.retention")

PERIOD_SECONDS: Final = 3600.0
DIRECT: Final = 0
"""Stands for the direct conversations, where channels have their IDs."""


def retention(log: Log) -> Job:
    """Deleting what is too old, every hour."""
    set_aside = FailedItems()

    async def once() -> float:
        await expired_once(log, set_aside)
        return PERIOD_SECONDS

    return Job("retention", once, set_aside=set_aside)


async def expired_once(log: Log, set_aside: FailedItems | None = None) -> None:
    """Delete what is too old by now. A channel of which that fails is set aside."""
    for channel_id in [None, *(channel.id for channel in log.state.channels)]:
        key = f"channel {channel_id or DIRECT}"
        if set_aside is not None and set_aside.is_resting(key):
            continue
        try:
            await expire_messages(log, channel_id)
        except Exception as error:
            if set_aside is None or is_outage(error):
                raise
            logger.exception("old messages of channel %s could not be deleted", channel_id)
            set_aside.failed(key, error)
        else:
            if set_aside is not None:
                set_aside.done(key)
