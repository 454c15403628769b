"""How each change looks to a client: one projection per change, next to its siblings.

A projection says whom a change may concern, which of the possible views a given queue has of it,
and what events it is in that view. Views are hashable and few, so that the events of a change are
encoded once for each and the bytes are shared.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from tertulia.delivery import event_ids
from tertulia.delivery.cached_entry import CachedEntry
from tertulia.model.changes import AnyChange, Change, Entry
from tertulia.model.queues import QueueRecord, Registration
from tertulia.model.transients import Transient
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.state.organization import State

C = TypeVar("C", bound=Change)

_encoder = msgspec.json.Encoder()


class Event(Struct, kw_only=True, tag_field="type"):
    """The base of all events. Each gets its `id` when it is encoded."""


class Encoded(NamedTuple):
    """An event of an entry as it is sent, with its ID."""

    type: str
    body: bytes


@dataclass(frozen=True)
class ProjectionContext:
    """What a projection looks at: the organization as it is now, and the entry's circumstances.

    The state may be later than the entry; whatever cannot be told from a later state is in the
    change itself.
    """

    state: State
    host: str
    """Of the addresses that stand for hidden ones."""
    entry: Entry
    dev: bool = False
    """Whether the server is for developers."""

    @property
    def at(self) -> float:
        return self.entry.at


@dataclass(frozen=True)
class Viewer:
    """Whose queue it is, and how it was registered."""

    user: User
    queue: QueueRecord

    @property
    def registration(self) -> Registration:
        return self.queue.registration


class Projection(ABC, Generic[C]):
    """How one kind of change is shown."""

    of: ClassVar[type[Change]]
    for_all_public: ClassVar[bool] = False
    """Whether queues that follow all public channels are asked too, beyond the audience."""

    @abstractmethod
    def audience(self, state: State, change: C) -> Collection[int] | None:
        """The users whom it may concern; None for everybody. `view` decides for each."""

    @abstractmethod
    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        """Which view the queue has of it; None for none."""

    def view_group(
        self, state: State, change: C, user: User, queue: QueueRecord
    ) -> Hashable | None:
        """What the user has in common with others: those of the same crowd whose queues were
        registered in the same way have the same view. None for one who must be looked at by
        themselves. It is asked for each who waits, and must cost next to nothing."""
        return None

    @abstractmethod
    def events(self, context: ProjectionContext, change: C, view: Any) -> Iterable[Event]:
        """The events in that view, in order. Their number must depend on nothing but the change
        and the view."""

    def encoded(self, context: ProjectionContext, change: C, view: Any) -> Sequence[Encoded]:
        """The same as they are sent."""
        return [
            encoded(event, context.entry.seq, place)
            for place, event in enumerate(self.events(context, change, view))
        ]


class Unseen(Projection[Change]):
    """A change that no client hears of."""

    def audience(self, state: State, change: Change) -> Collection[int]:
        return ()

    def view(self, context: ProjectionContext, change: Change, viewer: Viewer) -> None:
        return None

    def events(self, context: ProjectionContext, change: Change, view: Any) -> Iterable[Event]:
        return ()


class ForAll(Projection[C]):
    """A change that everybody hears of in the same words."""

    def audience(self, state: State, change: C) -> None:
        return None

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        return ()


class ForOwner(Projection[C]):
    """A change of what belongs to one account, and is nobody else's business."""

    def audience(self, state: State, change: C) -> Collection[int]:
        owner: int = change.user_id  # type: ignore[attr-defined]  # every such change has one
        return (owner,)

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        return ()


_UNSEEN = Unseen()


class HeartbeatEvent(Event, kw_only=True, tag="heartbeat"):
    """Nothing happened, and the connection is alive."""


def with_id(event: Event, event_id: int) -> bytes:
    """The event as it is sent, beginning with its ID."""
    return b'{"id":%d,' % event_id + _encoder.encode(event)[1:]


def encoded(event: Event, seq: int, place: int) -> Encoded:
    """An event as it is sent, at its place among those of an entry."""
    body = with_id(event, event_ids.of_entry(seq, place))
    return Encoded(str(event.__struct_config__.tag), body)


class EventEncoder:
    """The wire's side of delivery. See `tertulia.delivery.cached_entry.Encoder`."""

    def __init__(
        self,
        state: Callable[[], State],
        config: Config,
        projections: Iterable[Projection[Any]],
        transients: "TransientViews",
    ) -> None:
        self._state = state
        self._host = config.address_host
        self._dev = config.dev
        self._projections = {projection.of: projection for projection in projections}
        self._transients = transients
        self.encoded = 0
        """How many events were encoded, for those who want to see that they are shared."""

    def _projection(self, change: AnyChange) -> Projection[Any]:
        return self._projections.get(type(change), _UNSEEN)

    def audience(self, entry: Entry) -> Collection[int] | None:
        return self._projection(entry.change).audience(self._state(), entry.change)

    def events(self, posted: CachedEntry, queue: QueueRecord) -> Sequence[bytes]:
        state = self._state()
        user = state.users.get(queue.user_id)
        if user is None or not user.is_active:
            return ()
        change = posted.entry.change
        projection = self._projection(change)
        view_group = projection.view_group(state, change, user, queue)
        if view_group is None:
            return self._seen(projection, posted, Viewer(user, queue))
        # What it comes to is true of one state: another one may show more, or less.
        if posted.view_groups_at != state.seq:
            posted.view_groups.clear()
            posted.view_groups_at = state.seq
        key = (view_group, queue.registration)
        found = posted.view_groups.get(key)
        if found is None:
            found = self._seen(projection, posted, Viewer(user, queue))
            posted.view_groups[key] = found
        return found

    def _seen(
        self, projection: Projection[Any], posted: CachedEntry, viewer: Viewer
    ) -> Sequence[bytes]:
        state, change, registration = self._state(), posted.entry.change, viewer.registration
        if registration.all_public_channels and not projection.for_all_public:
            # Delivery asks such queues of everything: most is for its audience alone.
            audience = projection.audience(state, change)
            if audience is not None and viewer.user.id not in audience:
                return ()
        context = ProjectionContext(state, self._host, posted.entry, self._dev)
        view = projection.view(context, change, viewer)
        if view is None:
            return ()
        found = posted.views.get(view)
        if found is None:
            found = projection.encoded(context, change, view)
            posted.views[view] = found
            self.encoded += len(found)
        # A queue's choice of types is no part of the view: it is the client's to make up, and would
        # be kept for each.
        types = registration.event_types
        return [event for tag, event in found if types is None or tag in types]

    def transient_audience(self, transient: Transient) -> Collection[int] | None:
        return self._transients.audience(self._state(), transient)

    def transient(self, transient: Transient, queue: QueueRecord, event_id: int) -> bytes | None:
        state = self._state()
        user = state.users.get(queue.user_id)
        if user is None or not user.is_active:
            return None
        event = self._transients.event(state, transient, Viewer(user, queue), self._host)
        if event is None:
            return None
        types = queue.registration.event_types
        if types is not None and event.__struct_config__.tag not in types:
            return None
        return with_id(event, event_id)

    def heartbeat(self, event_id: int) -> bytes:
        return with_id(HeartbeatEvent(), event_id)


class TransientViews(ABC):
    """How what is not written down is shown."""

    @abstractmethod
    def audience(self, state: State, transient: Transient) -> Collection[int] | None:
        """The users whom it may concern; None for everybody."""

    @abstractmethod
    def event(self, state: State, transient: Transient, viewer: Viewer, host: str) -> Event | None:
        """The viewer's event, if they have one."""
