"""Events of how somebody wants to hear of topics."""

from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple

from tertulia.model.changes import UserTopicChanged
from tertulia.model.user_topics import Visibility
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.topics import topic_shown
from tertulia.wire.api.objects.user_topics import MutedTopic, muted_topics
from tertulia.wire.api.projection import ForOwner, ProjectionContext, Projections, Viewer


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


PROJECTIONS: Final[Projections] = (UserTopicChangedProjection(),)
