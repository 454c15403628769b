"""Looking after the event queues."""

from tertulia.delivery.delivery import Delivery
from tertulia.delivery.registry import SWEEP_SECONDS
from tertulia.delivery.waiting_polls import HEARTBEAT_ROUND_SECONDS
from tertulia.jobs.supervisor import Job


def heartbeats(delivery: Delivery) -> Job:
    """Letting those hear something who have waited for long."""

    async def once() -> float:
        delivery.send_heartbeats()
        return HEARTBEAT_ROUND_SECONDS

    return Job("heartbeats", once)


def idle_queues(delivery: Delivery) -> Job:
    """Deleting queues that nobody polls any more, and writing down when the others were seen."""

    async def once() -> float:
        await delivery.sweep()
        return SWEEP_SECONDS

    return Job("idle queues", once)
