"""Continuing deletions of people's messages and files, if the request that began one has ended, or
its node was killed."""

import logging
from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.model.errors import Refused
from tertulia.service import deletions as service
from tertulia.service.accounts import leave
from tertulia.service.deletions import PendingDeletion
from tertulia.service.node import Caller, Node

logger = logging.getLogger("tertulia.accounts")

PERIOD_SECONDS: Final = 60.0
ROUND_SECONDS: Final = 12 * 3600.0
ABANDONED_SECONDS: Final = 60.0
"""The number of seconds without progress after which a node continues a deletion."""


def deletions(node: Node) -> Job:
    """Return the job that continues abandoned deletions, in the name of the administrators who
    requested them."""

    async def once() -> float:
        for deletion in await service.pending(node.store):
            if node.clock() - deletion.seen_at >= ABANDONED_SECONDS:
                await _continue(node, deletion)
        return PERIOD_SECONDS

    return Job("deletions", once, round_seconds=ROUND_SECONDS)


async def _continue(node: Node, deletion: PendingDeletion) -> None:
    caller = Caller(node=node, user_id=deletion.actor_id)
    fields = {"user": deletion.user_id, "by": deletion.actor_id}
    try:
        while not await leave(
            caller,
            deletion.user_id,
            deletion.places,
            erased=deletion.erased,
            comment=None,
            files=deletion.files,
        ):
            pass
    except Refused as refused:
        # For example, because the administrator's role changed.
        await service.forget(node.store, deletion.user_id)
        logger.warning("could not continue a deletion: %s", refused, extra={"fields": fields})
    else:
        logger.info("completed a deletion", extra={"fields": fields})
