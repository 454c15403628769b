"""What people have set a time for, done when it has come: messages to send, and reminders."""

import logging
from functools import partial
from typing import Final

from tertulia.jobs.due import DueItems, due_items_job
from tertulia.jobs.supervisor import FailedItems, Job, is_outage
from tertulia.log.log import Log
from tertulia.model.channels import topic_key
from tertulia.model.edits import TopicMove
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.service.messages.deleting import expire_messages
from tertulia.service.messages.editing import finish_move
from tertulia.service.messages.scheduled import (
    deliver_reminder,
    give_up_reminder,
    give_up_scheduled,
    send_scheduled,
)
from tertulia.service.node import Node


def messages_to_send(node: Node) -> Job:
    """Sending what was scheduled."""
    waiting: DueItems[ScheduledMessage] = DueItems(
        in_order=lambda state: state.scheduled_messages.by_time,
        time=lambda message: message.deliver_at,
        key=lambda message: message.id,
        do=partial(send_scheduled, node),
        give_up=partial(give_up_scheduled, node),
    )
    return due_items_job(node.log, "scheduled messages", waiting)


def messages_to_be_reminded_of(node: Node) -> Job:
    """Bringing reminders."""

    async def give_up(reminder: Reminder, _reason: str) -> None:
        await give_up_reminder(node, reminder)

    waiting: DueItems[Reminder] = DueItems(
        in_order=lambda state: state.reminders.by_time,
        time=lambda reminder: reminder.deliver_at,
        key=lambda reminder: reminder.id,
        do=partial(deliver_reminder, node),
        give_up=give_up,
    )
    return due_items_job(node.log, "reminders", waiting)


moves_logger = logging.getLogger("tertulia.topic_moves")

TOPIC_MOVES_PERIOD_SECONDS: Final = 15.0


def topic_moves(node: Node) -> Job:
    """Continue moves that made no progress between two rounds. A move that fails is set aside."""
    seen: dict[int, tuple[TopicMove, int]] = {}
    set_aside = FailedItems()

    async def once() -> float:
        before = dict(seen)
        seen.clear()
        set_aside.keep_only(move.id for move in node.state.topic_moves)
        for move in list(node.state.topic_moves):
            topic = node.state.topics.get((move.channel_id, topic_key(move.topic)))
            left = 0 if topic is None else topic.message_count
            was, was_left = before.get(move.id, (move, left + 1))
            if was != move or left < was_left or set_aside.is_resting(move.id):
                seen[move.id] = (move, left)
                continue
            try:
                await finish_move(node, move.id)
            except Exception as error:
                if is_outage(error):
                    raise
                moves_logger.exception("move %s of a topic could not be finished", move.id)
                set_aside.failed(move.id, error)
            else:
                set_aside.done(move.id)
        return TOPIC_MOVES_PERIOD_SECONDS

    return Job("moves of topics", once, set_aside=set_aside)


logger = logging.getLogger("tertulia.retention")

RETENTION_PERIOD_SECONDS: Final = 3600.0
DIRECT: Final = 0
"""Stands for the direct conversations, where channels have their IDs."""


def retention(log: Log) -> Job:
    """Deleting what is too old, every hour."""
    set_aside = FailedItems()

    async def once() -> float:
        await expired_once(log, set_aside)
        return RETENTION_PERIOD_SECONDS

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
