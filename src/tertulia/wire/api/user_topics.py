"""How somebody wants to hear of topics, on the wire."""

from collections.abc import Hashable, Iterable
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta, Struct

from tertulia.domain import channel_access
from tertulia.domain.channels import topics
from tertulia.model.changes import UserTopicChanged
from tertulia.model.errors import Refused
from tertulia.model.user_topics import UserTopic, Visibility
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ForOwner, ProjectionContext, Projections, Viewer
from tertulia.wire.api.topics import topic_shown
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params
from tertulia.wire.http.routing import ApiResponse

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
        and channel_access.sees_channel(state, user, state.channels[topic.channel_id])
    ]


class UserTopicEvent(Event, kw_only=True, tag="user_topic"):
    """One's own setting of a topic is new; a policy of 0 takes it away."""

    stream_id: int
    topic_name: str
    last_updated: int
    visibility_policy: int


class MutedTopicsEvent(Event, kw_only=True, tag="muted_topics"):
    """All of one's muted topics, for clients that do not ask for `user_topic` by name."""

    muted_topics: list[MutedTopic]


class _View(NamedTuple):
    empty_topic_name: bool
    of_old: bool


class UserTopicChangedProjection(ForOwner[UserTopicChanged]):
    """One's setting, to one's own clients."""

    of = UserTopicChanged

    def view(
        self, context: ProjectionContext, change: UserTopicChanged, viewer: Viewer
    ) -> Hashable | None:
        types = viewer.registration.event_types
        return _View(
            viewer.registration.capabilities.empty_topic_name,
            (types is None or "user_topic" not in types)
            and Visibility.MUTED in {change.visibility, change.was},
        )

    def events(
        self, context: ProjectionContext, change: UserTopicChanged, view: Any
    ) -> Iterable[Event]:
        yield UserTopicEvent(
            stream_id=change.channel_id,
            topic_name=topic_shown(change.topic, empty_topic_name=view.empty_topic_name),
            last_updated=change.at,
            visibility_policy=int(change.visibility),
        )
        if view.of_old:
            user = context.state.users[change.user_id]
            yield MutedTopicsEvent(
                muted_topics=muted_topics(
                    context.state, user, empty_topic_name=view.empty_topic_name
                )
            )


class SetUserTopic(Params, kw_only=True, frozen=True):
    """How to hear of a topic, which need not have messages."""

    stream_id: Int
    topic: str
    visibility_policy: Annotated[
        Literal[0, 1, 2, 3],
        Meta(description="0 as of its channel, 1 muted, 2 unmuted, 3 followed."),
    ]


async def set_user_topic(call: Call, params: SetUserTopic) -> ApiResponse:
    """Follow, mute or unmute a topic for oneself."""
    await call.submit(
        topics.set_visibility,
        params.stream_id,
        params.topic,
        Visibility(params.visibility_policy),
    )
    return ApiResponse()


class UpdateMutedTopics(Params, kw_only=True, frozen=True):
    """A topic of a channel, which is named by its ID or its name."""

    topic: str
    op: Literal["add", "remove"]
    stream_id: Int | None = None
    stream: str | None = None


async def update_muted_topics(call: Call, params: UpdateMutedTopics) -> ApiResponse:
    """Mute a topic for oneself, or not any more: the older form of POST /user_topics."""
    channel: int | str | None = params.stream if params.stream_id is None else params.stream_id
    if channel is None or (params.stream_id is not None and params.stream is not None):
        raise Refused("Give either the channel's ID or its name, but not both.")
    await call.submit(topics.mute_topic, channel, params.topic, params.op == "add")
    return ApiResponse()


PROJECTIONS: Final[Projections] = (UserTopicChangedProjection(),)
