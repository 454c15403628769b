"""Ending moves of large topics that were interrupted, as by the end of the node that made them."""

from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.model.channels import topic_key
from tertulia.model.topic_moves import TopicMove
from tertulia.service.messages.editing import finish_move
from tertulia.service.node import Node

PERIOD_SECONDS: Final = 15.0


def topic_moves(node: Node) -> Job:
    """Going on with moves that did not get on between two rounds."""
    seen: dict[int, tuple[TopicMove, int]] = {}

    async def once() -> float:
        before = dict(seen)
        seen.clear()
        for move in list(node.state.topic_moves):
            topic = node.state.topics.get((move.channel_id, topic_key(move.topic)))
            left = 0 if topic is None else topic.message_count
            was, was_left = before.get(move.id, (move, left + 1))
            if was == move and left >= was_left:
                await finish_move(node, move.id)
            else:
                seen[move.id] = (move, left)
        return PERIOD_SECONDS

    return Job("moves of topics", once)
