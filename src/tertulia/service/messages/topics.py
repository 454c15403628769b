"""The topics of a channel that somebody can read."""

from collections.abc import Iterable

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.model.channels import Channel
from tertulia.model.users import User
from tertulia.service.caller import Caller
from tertulia.store import queries


class TopicByNewest(Struct, frozen=True):
    """A topic, and the newest of its messages that the reader can read."""

    name: str
    newest_id: int


async def topics_of(caller: Caller, channel_id: int) -> Iterable[TopicByNewest]:
    """The topics of the channel as of now, the most recent first. Refused where the caller cannot
    read it. A channel can have 100,000 topics: they are made while they are iterated over."""
    state = caller.state
    user = caller.user if caller.user_id is not None else None
    channel = permissions.readable_channel(state, user, channel_id)
    if user is None or channel.history_public:
        known = state.topics.by_newest_message[channel.id][::-1]
        return (TopicByNewest(topic.name, topic.last_message_id) for topic in known)
    found = await _received(caller, user, channel)
    return sorted(found, key=lambda one: -one.newest_id)


async def _received(caller: Caller, user: User, channel: Channel) -> list[TopicByNewest]:
    """The topics of the messages that the user received, with the newest of those."""
    subscription = caller.state.subscription(user.id, channel.id)
    spans = () if subscription is None else subscription.spans
    return await caller.node.log.snapshot(
        None,
        lambda connection: queries.newest_by_topic(connection, channel.id, spans),
        lambda state, found: [
            TopicByNewest(state.topics[(channel.id, key)].name, newest)
            for key, newest in found.items()
        ],
    )
