"""The topics of a channel."""

from typing import Annotated

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.model.channels import Channel
from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.store import queries
from tertulia.wire.api.objects.topics import topic_shown
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer


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
        permissions.open_to_spectators(channel)
        if user is None
        else permissions.reads_channel(state, user, channel)
    ):
        raise Refused("There is no such channel.")
    if user is None or channel.history_public:
        known = state.topics.of_channel[channel.id].values()
        found = [(topic.name, topic.last_message_id) for topic in known]
    else:
        found = await _received(call, user, channel)
    found.sort(key=lambda one: -one[1])
    return Topics(
        topics=[
            TopicEntry(
                name=topic_shown(name, empty_topic_name=params.allow_empty_topic_name),
                max_id=newest,
            )
            for name, newest in found
        ]
    )


async def _received(call: Call, user: User, channel: Channel) -> list[tuple[str, int]]:
    """The topics of the messages that the user received, with the newest of those."""
    subscription = call.state.subscription(user.id, channel.id)
    spans = () if subscription is None else subscription.spans
    return await call.node.log.snapshot(
        None,
        lambda connection: queries.newest_by_topic(connection, channel.id, spans),
        lambda state, found: [
            (state.topics[(channel.id, key)].name, newest) for key, newest in found.items()
        ],
    )
