"""Looking after the event queues."""

from tertulia.delivery.queues import BEAT_SECONDS, SWEEP_SECONDS, Delivery
from tertulia.jobs.supervisor import Job


def heartbeats(delivery: Delivery) -> Job:
    """Letting those hear something who have waited for long."""

    async def once() -> float:
        delivery.beat()
        return BEAT_SECONDS

    return Job("heartbeats", once)


def idle_queues(delivery: Delivery) -> Job:
    """Deleting queues that nobody polls any more, and writing down when the others were seen."""

    async def once() -> float:
        await delivery.sweep()
        return SWEEP_SECONDS

    return Job("idle queues", once)
