"""Objects that clients know while they catch up, so that no event is about an object unknown to
them.

Events are made from the current state, so a client never learns of an object that its viewer gained
and lost again before the client polled. Then it must not get the loss either, nor other events
about the object. The log doesn't record which clients are behind, so the node remembers unknown
objects for each queue that isn't up to date.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from tertulia.domain import permissions
from tertulia.model import changes
from tertulia.model.change import Change
from tertulia.model.users import Role, User
from tertulia.state.state import State
from tertulia.state.user_visibility import bitmap
from tertulia.wire.api.bots.objects import (
    BotAddEvent,
    BotDeleteEvent,
    BotUpdateEvent,
    decode_bot,
)
from tertulia.wire.api.channels.events import ChannelUpdateEvent
from tertulia.wire.api.channels.subscription_events import (
    PeerAddEvent,
    PeerRemoveEvent,
    SubscriptionAddEvent,
    SubscriptionRemoveEvent,
    SubscriptionUpdateEvent,
)
from tertulia.wire.api.events import Event
from tertulia.wire.api.statuses import UserStatusEvent
from tertulia.wire.api.user_topics import UserTopicEvent
from tertulia.wire.api.users.account_events import (
    UserAddEvent,
    UserRemoveEvent,
    UserUpdateEvent,
)
from tertulia.wire.api.visibility import ChannelCreateEvent, ChannelDeleteEvent

QUEUES: Final = 1000
"""The most queues whose unknown objects are remembered. The least recently used are dropped."""
OBJECTS: Final = 1000
"""The most objects that are remembered for each queue."""

ObjectRef = tuple[str, int]
"""The kind and the ID of an object."""


class _About(NamedTuple):
    """The objects that an event is about."""

    needs: tuple[ObjectRef, ...] = ()
    """The client must know one of these. Empty if it doesn't have to know any."""
    adds: tuple[ObjectRef, ...] = ()
    removes: tuple[ObjectRef, ...] = ()


def _bot(bot_id: int) -> ObjectRef:
    return "bot", bot_id


def _user(user_id: int) -> ObjectRef:
    return "user", user_id


def _channels(ids: Iterable[int]) -> tuple[ObjectRef, ...]:
    return tuple(("channel", channel_id) for channel_id in ids)


def _subscriptions(ids: Iterable[int]) -> tuple[ObjectRef, ...]:
    return tuple(("subscription", channel_id) for channel_id in ids)


def _bot_deleted(event: BotDeleteEvent) -> _About:
    bot = (_bot(event.bot.user_id),)
    return _About(needs=bot, removes=bot)


def _channels_deleted(event: ChannelDeleteEvent) -> _About:
    channels = _channels(event.stream_ids)
    return _About(needs=channels, removes=(*channels, *_subscriptions(event.stream_ids)))


def _unsubscribed(event: SubscriptionRemoveEvent) -> _About:
    left = _subscriptions(subscription.stream_id for subscription in event.subscriptions)
    return _About(needs=left, removes=left)


def _user_removed(event: UserRemoveEvent) -> _About:
    user = (_user(event.person.user_id),)
    return _About(needs=user, removes=user)


_ABOUT: Final[Mapping[type[Event], Callable[[Any], _About]]] = {
    BotAddEvent: lambda event: _About(adds=(_bot(event.bot.user_id),)),
    BotUpdateEvent: lambda event: _About(needs=(_bot(event.bot.user_id),)),
    BotDeleteEvent: _bot_deleted,
    ChannelCreateEvent: lambda event: _About(adds=_channels(c.stream_id for c in event.streams)),
    ChannelUpdateEvent: lambda event: _About(needs=_channels([event.stream_id])),
    ChannelDeleteEvent: _channels_deleted,
    PeerAddEvent: lambda event: _About(needs=_channels(event.stream_ids)),
    PeerRemoveEvent: lambda event: _About(needs=_channels(event.stream_ids)),
    SubscriptionAddEvent: lambda event: _About(
        adds=_subscriptions(subscription.stream_id for subscription in event.subscriptions)
    ),
    SubscriptionUpdateEvent: lambda event: _About(needs=_subscriptions([event.stream_id])),
    SubscriptionRemoveEvent: _unsubscribed,
    UserAddEvent: lambda event: _About(adds=(_user(event.person.user_id),)),
    UserUpdateEvent: lambda event: _About(needs=(_user(event.person.user_id),)),
    UserRemoveEvent: _user_removed,
    UserStatusEvent: lambda event: _About(needs=(_user(event.user_id),)),
    UserTopicEvent: lambda event: _About(needs=_channels([event.stream_id])),
}

CONCERNED: Final[frozenset[type[Change]]] = frozenset(
    {
        changes.ChannelChanged,
        changes.ChannelCreated,
        changes.FullMembersChanged,
        changes.StatusChanged,
        changes.Subscribed,
        changes.SubscriptionChanged,
        changes.Unsubscribed,
        changes.UserChanged,
        changes.UserCreated,
        changes.UserDeactivated,
        changes.UserGroupMembersChanged,
        changes.UserReactivated,
        changes.UserTopicChanged,
        changes.UserVisibilityChanged,
    }
)
"""Changes that have such events, or that give a viewer access to an object."""


class KnownObjects:
    """The objects that the clients of queues don't know."""

    def __init__(self) -> None:
        self._unknown: OrderedDict[str, dict[ObjectRef, int]] = OrderedDict()
        """The unknown objects of each queue, each with the number of the entry since when it's
        unknown."""

    def concerns(self, queue_id: str, change: Change, *, is_late: bool) -> bool:
        """Whether a queue's events of the change must be checked. `is_late` says whether the state
        is newer than the change."""
        return type(change) in CONCERNED and (is_late or queue_id in self._unknown)

    def sent(
        self, queue_id: str, seq: int, gained: Iterable[ObjectRef], events: Iterable[Event]
    ) -> list[Event | None]:
        """Return the events of entry `seq` as the queue's client gets them, with None for events
        about an object that it doesn't know.

        `gained` are the objects that the viewer couldn't see before the entry.
        """
        unknown = self._unknown.pop(queue_id, {})
        for thing in gained:
            unknown.setdefault(thing, seq)
        sent: list[Event | None] = []
        for event in events:
            look = _ABOUT.get(type(event))
            about = _About() if look is None else look(event)
            # A client that lost a response asks for it again. Objects that became unknown with this
            # entry were known before it.
            known = [need for need in about.needs if unknown.get(need, seq) >= seq]
            if about.needs and not known:
                sent.append(None)
                continue
            if len(known) < len(about.needs) and isinstance(event, PeerAddEvent | PeerRemoveEvent):
                # Deactivating someone changes many channels with one event.
                event = replace(event, stream_ids=[channel_id for _, channel_id in known])
            sent.append(event)
            if unknown or about.removes:
                for thing in about.adds:
                    unknown.pop(thing, None)
                for thing in about.removes:
                    unknown.setdefault(thing, seq)
        while len(unknown) > OBJECTS:
            del unknown[next(iter(unknown))]
        if unknown:
            self._unknown[queue_id] = unknown
            if len(self._unknown) > QUEUES:
                self._unknown.popitem(last=False)
        return sent


def gained_by(state: State, change: Change, viewer: User) -> Iterable[ObjectRef]:
    """Yield the objects that the viewer couldn't see before the change. The state may be newer than
    the change."""
    match change:
        case changes.UserCreated(user=user):
            yield _bot(user.id)
        case changes.ChannelCreated(channel=channel):
            yield from _channels([channel.id])
        case changes.ChannelChanged(channel_id=channel_id, gained=gained):
            yield from _channels([channel_id] if viewer.id in gained else [])
        case changes.Subscribed(channel_id=channel_id):
            if viewer.id in change.user_ids:
                yield from _subscriptions([channel_id])
            if viewer.id in change.gained:
                yield from _channels([channel_id])
        case changes.UserChanged(user_id=user_id):
            if user_id == viewer.id:
                yield from _channels(change.gained)
                yield from _bots_of_others(state, change, viewer)
            if "bot" in change.values and decode_bot(change.was["bot"]).owner_id != viewer.id:
                yield from [] if permissions.is_administrator(state, viewer) else [_bot(user_id)]
        case changes.UserVisibilityChanged(gained=seen):
            for choice in seen:
                if viewer.id in choice.viewers:
                    yield from map(_user, bitmap(choice.users))
        case _:
            pass
    for sight in getattr(change, "sight", ()):
        if _is_in(sight.gained, viewer.id):
            yield from _channels([sight.channel_id])


def _bots_of_others(state: State, change: changes.UserChanged, viewer: User) -> Iterable[ObjectRef]:
    was, became = (values.get("role", Role.OWNER) for values in (change.was, change.values))
    if became <= Role.ADMINISTRATOR < was:
        for user_id in state.users.bots:
            bot = state.users[user_id].bot
            if bot is not None and bot.owner_id != viewer.id:
                yield _bot(user_id)


def _is_in(ascending: Sequence[int], user_id: int) -> bool:
    index = bisect_left(ascending, user_id)
    return index < len(ascending) and ascending[index] == user_id
