"""Muted, unmuted, and followed topics."""

from collections.abc import Hashable, Iterable
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Struct

from tertulia.domain import channel_access
from tertulia.domain.channels import topics
from tertulia.model.changes import UserTopicChanged
from tertulia.model.errors import Refused
from tertulia.model.user_topics import UserTopic, Visibility
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, owner, projected
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.api.topics import display_topic
from tertulia.wire.http.parameters import Doc, Int
from tertulia.wire.http.routing import Call

MutedTopic = tuple[str, str, int]
"""The channel's name, the topic, and when it was muted (UNIX seconds)."""


class UserTopicObject(Struct, kw_only=True):
    """Your visibility setting for a topic: 1 muted, 2 unmuted even if the channel is muted, 3
    followed. `last_updated` is UNIX seconds."""

    stream_id: int
    topic_name: str
    last_updated: int
    visibility_policy: int


def user_topic(topic: UserTopic, *, empty_topic_name: bool) -> UserTopicObject:
    return UserTopicObject(
        stream_id=topic.channel_id,
        topic_name=display_topic(topic.name, empty_topic_name=empty_topic_name),
        last_updated=topic.changed_at,
        visibility_policy=int(topic.visibility),
    )


def muted_topics(state: State, user: User, *, empty_topic_name: bool) -> list[MutedTopic]:
    """Return the muted topics in the legacy format, in channels that the user can see."""
    return [
        (
            state.channels[topic.channel_id].name,
            display_topic(topic.name, empty_topic_name=empty_topic_name),
            topic.changed_at,
        )
        for topic in state.user_topics.of_user[user.id]
        if topic.visibility is Visibility.MUTED
        and channel_access.sees_channel(state, user, state.channels[topic.channel_id])
    ]


class UserTopicEvent(Event, kw_only=True, tag="user_topic"):
    """Your visibility setting for a topic changed. A policy of 0 removes it."""

    stream_id: int
    topic_name: str
    last_updated: int
    visibility_policy: int


class MutedTopicsEvent(Event, kw_only=True, tag="muted_topics"):
    """All of your muted topics, for clients that don't request `user_topic`."""

    muted_topics: list[MutedTopic]


class _View(NamedTuple):
    empty_topic_name: bool
    muted_topics: bool


def _changed_view(_: ProjectionContext, change: UserTopicChanged, viewer: Viewer) -> Hashable:
    types = viewer.registration.event_types
    is_legacy = types is None or "user_topic" not in types
    return _View(
        viewer.registration.capabilities.empty_topic_name,
        is_legacy and Visibility.MUTED in {change.visibility, change.was},
    )


def _changed(context: ProjectionContext, change: UserTopicChanged, view: Any) -> Iterable[Event]:
    yield UserTopicEvent(
        stream_id=change.channel_id,
        topic_name=display_topic(change.topic, empty_topic_name=view.empty_topic_name),
        last_updated=change.at,
        visibility_policy=int(change.visibility),
    )
    if view.muted_topics:
        user, empty_name = context.state.users[change.user_id], view.empty_topic_name
        muted = muted_topics(context.state, user, empty_topic_name=empty_name)
        yield MutedTopicsEvent(muted_topics=muted)


async def set_user_topic(
    call: Call,
    stream_id: Int,
    topic: str,
    visibility_policy: Annotated[
        Literal[0, 1, 2, 3], Doc("0 the channel's setting, 1 muted, 2 unmuted, 3 followed.")
    ],
) -> None:
    """Mute, unmute, or follow a topic, or remove the setting. The topic doesn't need to have
    messages."""
    await call.submit(
        topics.set_visibility,
        stream_id,
        topic,
        Visibility(visibility_policy),
    )


async def update_muted_topics(
    call: Call,
    topic: str,
    op: Literal["add", "remove"],
    stream_id: Int | None = None,
    stream: Annotated[str | None, Doc("The channel's name, instead of its ID.")] = None,
) -> None:
    """Mute or unmute a topic. Legacy form of POST /user_topics."""
    channel: int | str | None = stream if stream_id is None else stream_id
    if channel is None or (stream_id is not None and stream is not None):
        raise Refused("Give either the channel's ID or its name, but not both.")
    await call.submit(topics.mute_topic, channel, topic, op == "add")


def muted_topics_section(context: SectionContext) -> dict[str, Any]:
    """The legacy form of `user_topics`, for clients that don't ask for it."""
    event_types, viewer = context.registration.event_types, context.viewer
    if event_types is not None and "user_topic" in event_types:
        return {}
    if viewer is None:
        return {"muted_topics": []}
    empty_name = context.registration.capabilities.empty_topic_name
    return {"muted_topics": muted_topics(context.state, viewer, empty_topic_name=empty_name)}


def user_topics_section(context: SectionContext) -> dict[str, Any]:
    user_topics = context.state.user_topics.of_user[context.viewer_id]
    empty_name = context.registration.capabilities.empty_topic_name
    return {
        "user_topics": [
            user_topic(item, empty_topic_name=empty_name)
            for item in user_topics
            if context.viewer is None or context.viewer.reaches(item.channel_id)
        ]
    }


SECTIONS: Final[Sections] = {
    ("muted_topics",): muted_topics_section,
    ("user_topic",): user_topics_section,
}


PROJECTIONS: Final[Projections] = (
    projected(UserTopicChanged, _changed_view, _changed, audience=owner),
)
