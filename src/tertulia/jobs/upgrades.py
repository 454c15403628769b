"""Ending an upgrade when the last node of the older version is gone, and forgetting nodes that have
been gone for long."""

import logging
from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.log.log import Log
from tertulia.store import nodes

logger = logging.getLogger("tertulia.jobs")

PERIOD_SECONDS: Final = 15.0


def upgrades(log: Log) -> Job:
    """What older nodes could not live with waits for this."""

    async def once() -> float:
        await log.store.tend_list(nodes.forget_old)
        await log.store.settle(logger.info)
        return PERIOD_SECONDS

    return Job("upgrades", once)
