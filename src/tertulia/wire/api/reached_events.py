"""The events and initial data (POST /register) that limited access keys get: keys for some channels
only, or without direct messages.

Views decide what the limited account sees, as they do for everyone. The rules here are a second
check: an event without a rule, or about another channel, isn't sent.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import UNSET, UnsetType

from tertulia.model.access_keys import Reach
from tertulia.model.errors import KeyInsufficient
from tertulia.wire.api.channels.events import ChannelUpdateEvent
from tertulia.wire.api.channels.subscription_events import (
    PeerAddEvent,
    PeerRemoveEvent,
    SubscriptionAddEvent,
    SubscriptionRemoveEvent,
    SubscriptionUpdateEvent,
)
from tertulia.wire.api.events import Event, HeartbeatEvent
from tertulia.wire.api.messages.deletions import DeleteMessageEvent, DeleteMessagesEvent
from tertulia.wire.api.messages.edits import UpdateMessageEvent
from tertulia.wire.api.messages.events import MessageEvent
from tertulia.wire.api.pins import PinsEvent
from tertulia.wire.api.reactions import ReactionEvent, SubmessageEvent
from tertulia.wire.api.transients import TypingChannelEvent, TypingDirectEvent
from tertulia.wire.api.user_topics import UserTopicEvent
from tertulia.wire.api.visibility import ChannelCreateEvent, ChannelDeleteEvent

Places = Iterable[int | UnsetType | None]
"""The channels that an event is about; None or UNSET for direct messages."""


def _nowhere(_: Any) -> Places:
    """Return no places, for events about a message that don't say where it is. Only people who can
    read the message get them."""
    return ()


_PLACES: Final[Mapping[type[Event], Callable[[Any], Places]]] = {
    HeartbeatEvent: _nowhere,
    MessageEvent: lambda event: (event.message.stream_id,),
    UpdateMessageEvent: lambda event: (
        event.stream_id,
        *(() if event.new_stream_id is UNSET else (event.new_stream_id,)),
    ),
    DeleteMessageEvent: lambda event: (event.stream_id,),
    DeleteMessagesEvent: lambda event: (event.stream_id,),
    ReactionEvent: _nowhere,
    SubmessageEvent: _nowhere,
    PinsEvent: lambda event: (event.pin.stream_id,),
    TypingDirectEvent: lambda _: (None,),
    TypingChannelEvent: lambda event: (event.stream_id,),
    UserTopicEvent: lambda event: (event.stream_id,),
    ChannelCreateEvent: lambda event: [stream.stream_id for stream in event.streams],
    ChannelDeleteEvent: lambda event: event.stream_ids,
    ChannelUpdateEvent: lambda event: (event.stream_id,),
    SubscriptionAddEvent: lambda event: [
        subscription.stream_id for subscription in event.subscriptions
    ],
    SubscriptionRemoveEvent: lambda event: [
        subscription.stream_id for subscription in event.subscriptions
    ],
    SubscriptionUpdateEvent: lambda event: (event.stream_id,),
    PeerAddEvent: lambda event: event.stream_ids,
    PeerRemoveEvent: lambda event: event.stream_ids,
}

EVENT_TYPES: Final = frozenset(str(item.__struct_config__.tag) for item in _PLACES)
"""The types of events that a limited key can ask for."""

FETCH_TYPES: Final = frozenset(
    {
        *("alert_words", "custom_profile_fields", "default_streams", "message", "muted_users"),
        *("realm", "realm_emoji", "realm_filters", "realm_linkifiers", "realm_playgrounds"),
        *("realm_user", "recent_private_conversations", "stream", "subscription"),
        *("user_settings", "user_topic", "video_calls"),
    }
)
"""The types of initial data that a limited key can ask for. They aren't about channels or direct
messages, or only about those within the key's reach."""


def is_reached(reach: Reach, event: Event) -> bool:
    """Whether a key with this reach gets the event."""
    places = _PLACES.get(type(event))
    return places is not None and all(
        reach.reaches(None if isinstance(place, UnsetType) else place) for place in places(event)
    )


def allowed_types(
    events: Iterable[str] | None, data: Iterable[str] | None
) -> tuple[list[str], frozenset[str]]:
    """Return the types of events and of initial data that a limited key gets. None asks for all
    events, and for the data that they update. Raise KeyInsufficient for other types."""
    event_types = _allowed(events, EVENT_TYPES, "events")
    fetched = FETCH_TYPES if events is None else FETCH_TYPES & event_types
    return sorted(event_types), fetched if data is None else _allowed(data, FETCH_TYPES, "data")


def _allowed(wanted: Iterable[str] | None, known: frozenset[str], what: str) -> frozenset[str]:
    if wanted is None:
        return known
    others = sorted(set(wanted) - known)
    if others:
        raise KeyInsufficient(
            f"This key is limited to some channels or without direct messages, and can't get {what}"
            f" of the types {', '.join(others)[:300]}."
        )
    return frozenset(wanted)
