"""Ending moves of large topics that were interrupted, as by the end of the node that made them."""

import logging
from typing import Final

from tertulia.jobs.supervisor import FailedItems, Job, is_outage
from tertulia.model.channels import topic_key
from tertulia.model.topic_moves import TopicMove
from tertulia.service.messages.editing import finish_move
from tertulia.service.node import Node

logger = logging.getLogger("tertulia.topic_moves")

PERIOD_SECONDS: Final = 15.0


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
                logger.exception("move %s of a topic could not be finished", move.id)
                set_aside.failed(move.id, error)
            else:
                set_aside.done(move.id)
        return PERIOD_SECONDS

    return Job("moves of topics", once, set_aside=set_aside)
