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
    if subscription is None or not subscription.spans:
        return []
    first = min(after for after, _ in subscription.spans)
    found: list[TopicByNewest] = []
    others: dict[str, str] = {}
    for topic in caller.state.topics.of_channel[channel.id].values():
        if subscription.covers(topic.last_message_id):
            found.append(TopicByNewest(topic.name, topic.last_message_id))
        elif topic.last_message_id > first:
            others[topic.key] = topic.name
    if others:  # Its newest message was sent while the user was not subscribed.
        newest = await caller.node.store.read(
            queries.newest_by_topic, channel.id, list(others), subscription.spans
        )
        found += [TopicByNewest(others[key], newest_id) for key, newest_id in newest.items()]
    return found
