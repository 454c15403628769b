"""The topics of a channel."""

from typing import Annotated

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.model.errors import Refused
from tertulia.wire.call import Call
from tertulia.wire.objects.messages import (
    topic_shown,
)
from tertulia.wire.parameters import Int, Params, Path
from tertulia.wire.routing import Answer


class GetTopics(Params, kw_only=True, frozen=True):
    """The topics of a channel."""

    stream_id: Annotated[Int, Path()]
    allow_empty_topic_name: bool = False


class TopicEntry(Struct, kw_only=True):
    """A topic by its newest message."""

    name: str
    max_id: int


class Topics(Answer, kw_only=True):
    """Topics, the most recent first."""

    topics: list[TopicEntry]


async def get_topics(call: Call, params: GetTopics) -> Topics:
    """The topics of a channel that the caller can read, the most recent first."""
    state = call.state
    channel = state.channels.get(params.stream_id)
    user = call.user if call.user_id is not None else None
    if channel is None or not (
        channel.is_web_public
        if user is None
        else permissions.reads_channel(state, user, channel, call.now)
    ):
        raise Refused("There is no such channel.")
    topics = list(state.topics_of_channel.get(channel.id, {}).values())
    if user is not None and not channel.history_public:
        subscription = state.subscription(user.id, channel.id)
        topics = [
            t for t in topics if subscription is not None and subscription.covers(t.last_message_id)
        ]
    topics.sort(key=lambda topic: -topic.last_message_id)
    return Topics(
        topics=[
            TopicEntry(
                name=topic_shown(t.name, empty_topic_name=params.allow_empty_topic_name),
                max_id=t.last_message_id,
            )
            for t in topics
        ]
    )
