"""Looking after the event queues."""

import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Final

from tertulia.delivery.delivery import Delivery
from tertulia.delivery.registry import SWEEP_SECONDS
from tertulia.delivery.waiting_polls import HEARTBEAT_ROUND_SECONDS
from tertulia.jobs.supervisor import Job
from tertulia.log.log import Log
from tertulia.service import usage as counting
from tertulia.service.usage import CountedElsewhere
from tertulia.store import installation, nodes, usage
from tertulia.store.database import Connection
from tertulia.store.notes import FactSet


def heartbeats(delivery: Delivery) -> Job:
    """Sending heartbeats to polls that have waited for long."""

    async def once() -> float:
        delivery.send_heartbeats()
        return HEARTBEAT_ROUND_SECONDS

    return Job("heartbeats", once)


def event_ids(delivery: Delivery) -> Job:
    """Seeing to it that there are IDs for events that are not in the log."""

    async def once() -> float:
        await delivery.renew_ids()
        return HEARTBEAT_ROUND_SECONDS

    return Job("event IDs", once)


def idle_queues(delivery: Delivery) -> Job:
    """Deleting queues that are not polled any more; storing when the others were polled, and when
    users were last present."""

    async def once() -> float:
        await delivery.sweep()
        return SWEEP_SECONDS

    return Job("idle queues", once)


PREFIX: Final = "job."
"""Before the names of jobs, among the facts about the installation."""


def troubles(connection: Connection) -> dict[str, str]:
    """The jobs that were in trouble by their last report, each with what is wrong."""
    facts = installation.values(connection, PREFIX)
    return {key.removeprefix(PREFIX): value for key, value in facts.items() if value}


def reporter(log: Log, known: Iterable[str]) -> Callable[[Job], None]:
    """Stores what is wrong with a job, and when that is over. `known` are the jobs that were in
    trouble when the node started."""
    reported = set(known)

    def report(job: Job) -> None:
        if job.trouble is not None:
            reported.add(job.name)
        elif job.name in reported:
            reported.remove(job.name)
        else:
            return
        log.note(FactSet(PREFIX + job.name, job.trouble or ""))

    return report


logger = logging.getLogger("tertulia.jobs")

UPGRADES_PERIOD_SECONDS: Final = 15.0


def upgrades(log: Log) -> Job:
    """What older nodes could not live with waits for this."""

    async def once() -> float:
        await log.store.tend_list(nodes.forget_old)
        await log.store.settle(logger.info)
        return UPGRADES_PERIOD_SECONDS

    return Job("upgrades", once)


USAGE_PERIOD_SECONDS: Final = 300.0
FIRST_SECONDS: Final = 20.0
"""After a start: there is more urgent work then."""
LONGEST_SECONDS: Final = 6 * 3600.0
"""A large organization that was never counted takes its time; what a round that was ended has
counted stays."""


def usage_counts(log: Log) -> Job:
    """Counting what is new, every five minutes, by one of the nodes."""

    async def once() -> float:
        last = await log.store.read(usage.progress)
        left = last.at + USAGE_PERIOD_SECONDS - log.clock()
        if 0 < left <= USAGE_PERIOD_SECONDS:
            return left
        with contextlib.suppress(CountedElsewhere):
            await counting.count(log.store, lambda: log.state, log.clock())
        return USAGE_PERIOD_SECONDS

    return Job("usage", once, round_seconds=LONGEST_SECONDS, first_seconds=FIRST_SECONDS)
