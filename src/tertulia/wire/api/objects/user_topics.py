"""How somebody wants to hear of topics, on the wire."""

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.model.user_topics import UserTopic, Visibility
from tertulia.model.users import User
from tertulia.state.organization import State
from tertulia.wire.api.objects.topics import topic_shown

MutedTopic = tuple[str, str, int]
"""The channel's name, the topic, and since when (UNIX seconds)."""


class UserTopicObject(Struct, kw_only=True):
    """How one wants to hear of a topic: 1 not at all, 2 even where the channel is muted, 3 it is
    followed. `last_updated` is UNIX seconds."""

    stream_id: int
    topic_name: str
    last_updated: int
    visibility_policy: int


def user_topic(topic: UserTopic, *, empty_topic_name: bool) -> UserTopicObject:
    """One topic's setting."""
    return UserTopicObject(
        stream_id=topic.channel_id,
        topic_name=topic_shown(topic.name, empty_topic_name=empty_topic_name),
        last_updated=topic.changed_at,
        visibility_policy=int(topic.visibility),
    )


def muted_topics(state: State, user: User, *, empty_topic_name: bool) -> list[MutedTopic]:
    """The muted topics in the legacy format, of channels that the user sees."""
    return [
        (
            state.channels[topic.channel_id].name,
            topic_shown(topic.name, empty_topic_name=empty_topic_name),
            topic.changed_at,
        )
        for topic in state.user_topics.of_user[user.id]
        if topic.visibility is Visibility.MUTED
        and permissions.sees_channel(state, user, state.channels[topic.channel_id])
    ]
