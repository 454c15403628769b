"""Typing and presence events."""

from collections.abc import Collection, Sequence

import msgspec
from msgspec import Struct

from tertulia.delivery.presence import OFFLINE_SECONDS
from tertulia.domain import channel_access, permissions
from tertulia.model.messages import Message
from tertulia.model.transients import EditTyping, PresenceChanged, Transient, Typing
from tertulia.state.state import State
from tertulia.wire.api.event_encoder import TransientViews
from tertulia.wire.api.events import Event, HeartbeatEvent
from tertulia.wire.api.projection import Viewer
from tertulia.wire.api.topics import display_topic
from tertulia.wire.api.users.objects import api_email, presence_email

TYPING_LIMIT = 100
"""The number of subscribers above which a channel doesn't show typing."""


class TypingPerson(Struct, kw_only=True):
    """A participant of a direct conversation that someone is typing in."""

    user_id: int
    email: str


class TypingDirectEvent(Event, kw_only=True, tag="typing"):
    """Someone started or stopped typing in a direct conversation."""

    op: str
    message_type: str = "direct"
    sender: TypingPerson
    recipients: list[TypingPerson]


class TypingChannelEvent(Event, kw_only=True, tag="typing"):
    """Someone started or stopped typing in a topic."""

    op: str
    message_type: str = "stream"
    sender: TypingPerson
    stream_id: int
    topic: str


class EditedInChannel(Struct, kw_only=True):
    """The channel and topic of a message that is being edited."""

    type: str = "channel"
    channel_id: int
    topic: str


class EditedDirect(Struct, kw_only=True):
    """The participants of the conversation of a direct message that is being edited."""

    type: str = "direct"
    user_ids: list[int]


class TypingEditEvent(Event, kw_only=True, tag="typing_edit_message"):
    """Someone started or stopped editing a message."""

    op: str
    sender_id: int
    message_id: int
    recipient: EditedInChannel | EditedDirect


class PresenceDetail(Struct, kw_only=True):
    """A client's report of a user's presence. The only client is `website`."""

    client: str = "website"
    status: str
    timestamp: int
    pushable: bool = False


class PresenceEvent(Event, kw_only=True, tag="presence"):
    """A user is active or idle, in the legacy format."""

    user_id: int
    email: str | msgspec.UnsetType = msgspec.UNSET
    server_timestamp: float
    presence: dict[str, PresenceDetail]


class PresenceTimes(Struct, kw_only=True):
    """When a user was last active and last online, in UNIX seconds."""

    active_timestamp: int
    idle_timestamp: int


class SimplePresenceEvent(Event, kw_only=True, tag="presence"):
    """Users are active or idle, by ID."""

    presences: dict[str, PresenceTimes]


TRANSIENT_EVENTS: Sequence[type[Event]] = (
    HeartbeatEvent,
    TypingDirectEvent,
    TypingChannelEvent,
    TypingEditEvent,
    PresenceEvent,
    SimplePresenceEvent,
)


def typing_person(state: State, user_id: int, host: str) -> TypingPerson:
    return TypingPerson(user_id=user_id, email=api_email(state, state.users[user_id], host))


class TypingAndPresence(TransientViews):
    """How typing and presence are shown. With `limited`, users get presence only of accounts that
    they can see."""

    def __init__(self, *, limited: bool) -> None:
        self._limited = limited

    def audience(self, state: State, transient: Transient) -> Collection[int] | None:
        match transient:
            case Typing(channel_id=None, recipients=recipients):
                return recipients
            case EditTyping(channel_id=None, direct_id=direct_id):
                return state.directs[direct_id].members
            case Typing(channel_id=channel_id) | EditTyping(channel_id=channel_id):
                subscribers = state.subscribers(channel_id or 0)
                return subscribers if len(subscribers) <= TYPING_LIMIT else ()
            case PresenceChanged():
                return None
            case _:
                return ()

    def event(self, state: State, transient: Transient, viewer: Viewer, host: str) -> Event | None:
        match transient:
            case Typing():
                return self._typing(state, transient, viewer, host)
            case EditTyping():
                return self._edit_typing(state, transient, viewer)
            case PresenceChanged():
                return self._presence(state, transient, viewer, host)
            case _:
                return None

    def _typing(self, state: State, typing: Typing, viewer: Viewer, host: str) -> Event | None:
        if not _receives_typing(state, viewer, typing):
            return None
        sender = typing_person(state, typing.sender_id, host)
        op = "start" if typing.started else "stop"
        if typing.channel_id is None:
            people = [typing_person(state, user_id, host) for user_id in typing.recipients]
            return TypingDirectEvent(op=op, sender=sender, recipients=people)
        capabilities = viewer.registration.capabilities
        if not capabilities.channel_typing_notifications:
            return None
        topic = display_topic(typing.topic, empty_topic_name=capabilities.empty_topic_name)
        return TypingChannelEvent(op=op, sender=sender, stream_id=typing.channel_id, topic=topic)

    def _edit_typing(self, state: State, typing: EditTyping, viewer: Viewer) -> Event | None:
        message = Message(
            id=typing.message_id,
            sender_id=typing.sender_id,
            sent_at=0,
            channel_id=typing.channel_id,
            direct_id=typing.direct_id,
        )
        if not _receives_typing(state, viewer, typing) or not channel_access.reads_message(
            state, viewer.user, message
        ):
            return None
        recipient: EditedInChannel | EditedDirect
        if typing.channel_id is None:
            recipient = EditedDirect(user_ids=list(state.directs[typing.direct_id].members))
        else:
            empty = viewer.registration.capabilities.empty_topic_name
            topic = display_topic(typing.topic, empty_topic_name=empty)
            recipient = EditedInChannel(channel_id=typing.channel_id, topic=topic)
        return TypingEditEvent(
            op="start" if typing.started else "stop",
            sender_id=typing.sender_id,
            message_id=typing.message_id,
            recipient=recipient,
        )

    def _presence(
        self, state: State, change: PresenceChanged, viewer: Viewer, host: str
    ) -> Event | None:
        user = state.users[change.user_id]
        now = change.at
        if state.realm.presence_disabled:
            return None
        if self._limited and not permissions.sees_user(state, viewer.user, user):
            return None
        if viewer.registration.capabilities.simplified_presence_events:
            times = PresenceTimes(active_timestamp=change.active_at, idle_timestamp=change.idle_at)
            return SimplePresenceEvent(presences={str(user.id): times})
        is_active = now - change.active_at < OFFLINE_SECONDS
        detail = PresenceDetail(
            status="active" if is_active else "idle",
            timestamp=change.active_at if is_active else change.idle_at,
        )
        slim = viewer.registration.slim_presence
        return PresenceEvent(
            user_id=user.id,
            email=msgspec.UNSET if slim else presence_email(state, viewer.user, user, host),
            server_timestamp=float(now),
            presence={"website": detail},
        )


def _receives_typing(state: State, viewer: Viewer, typing: Typing | EditTyping) -> bool:
    settings = state.settings.get(viewer.user.id)
    if settings is not None and not settings.receives_typing_notifications:
        return False
    return permissions.sees_user(state, viewer.user, state.users[typing.sender_id])
