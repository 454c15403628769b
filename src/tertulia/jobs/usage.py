"""Counting how much the organization is used."""

import contextlib
from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.log.log import Log
from tertulia.service import usage as counting
from tertulia.service.usage import CountedElsewhere
from tertulia.store import usage

PERIOD_SECONDS: Final = 300.0
FIRST_SECONDS: Final = 20.0
"""After a start: there is more urgent work then."""
LONGEST_SECONDS: Final = 6 * 3600.0
"""A large organization that was never counted takes its time; what a round that was ended has
counted stays."""


def usage_counts(log: Log) -> Job:
    """Counting what is new, every five minutes, by one of the nodes."""

    async def once() -> float:
        last = await log.store.read(usage.counted)
        left = last.at + PERIOD_SECONDS - log.clock()
        if 0 < left <= PERIOD_SECONDS:
            return left
        with contextlib.suppress(CountedElsewhere):
            await counting.count(log.store, lambda: log.state, log.clock())
        return PERIOD_SECONDS

    return Job("usage", once, round_seconds=LONGEST_SECONDS, first_seconds=FIRST_SECONDS)
