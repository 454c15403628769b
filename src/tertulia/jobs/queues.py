"""Looking after the event queues."""

from tertulia.delivery.delivery import Delivery
from tertulia.delivery.registry import SWEEP_SECONDS
from tertulia.delivery.waiting_polls import HEARTBEAT_ROUND_SECONDS
from tertulia.jobs.supervisor import Job


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
