"""From entries and transient events to the bytes of each queue's events."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final

from tertulia.delivery import event_ids
from tertulia.delivery.cached_entry import CachedEntry
from tertulia.model.changes import AnyChange, Change, Entry
from tertulia.model.queues import QueueRecord
from tertulia.model.transients import Transient
from tertulia.service.config import Config
from tertulia.state.state import State
from tertulia.wire.api.events import Event, HeartbeatEvent, with_id
from tertulia.wire.api.projection import Grouping, Projection, ProjectionContext, Viewer, unseen

_UNSEEN: Projection[Any] = unseen(Change)
_MANY: Final = 32
"""From so many queues on it is worth finding who is of the usual view group."""


class TransientViews(ABC):
    """How transient events are shown."""

    @abstractmethod
    def audience(self, state: State, transient: Transient) -> Collection[int] | None:
        """The users whom it may concern; None for everybody."""

    @abstractmethod
    def event(self, state: State, transient: Transient, viewer: Viewer, host: str) -> Event | None:
        """The viewer's event, if they have one."""


class EventEncoder:
    """The API's side of delivery. See `tertulia.delivery.encoder.Encoder`."""

    def __init__(
        self,
        state: Callable[[], State],
        config: Config,
        projections: Iterable[Projection[Any]],
        transients: TransientViews,
    ) -> None:
        self._state = state
        self._host = config.address_host
        self._dev = config.dev
        self._projections = {projection.of: projection for projection in projections}
        self._transients = transients
        self.encoded = 0
        """How many events were encoded: tests see by it that queues share them."""

    def _projection(self, change: AnyChange) -> Projection[Any]:
        return self._projections.get(type(change), _UNSEEN)

    def audience(self, entry: Entry) -> Collection[int] | None:
        return self._projection(entry.change).audience(self._state(), entry.change)

    def events_of(
        self, cached: CachedEntry, count: int = 1
    ) -> Callable[[QueueRecord], Sequence[bytes]]:
        state = self._state()
        # A group's events hold for one state: in another, the same group may see more, or less.
        if cached.view_groups_at != state.seq:
            change = cached.entry.change
            cached.view_groups.clear()
            cached.grouping = self._projection(change).grouping(state, change)
            cached.view_groups_at = state.seq
        grouping: Grouping | None = cached.grouping
        if grouping is None:
            return partial(self._viewed_alone, state, cached)
        if count < _MANY:
            return partial(self._viewed_in_group, state, cached)
        groups, usual = cached.view_groups, grouping.usual()

        def events(queue: QueueRecord) -> Sequence[bytes]:
            registration = queue.registration
            if queue.user_id not in usual or registration.narrow:
                return self._viewed_in_group(state, cached, queue)
            key = (None, registration, queue.counted_from)
            found = groups.get(key)
            if found is None:
                found = groups[key] = self._viewed_alone(state, cached, queue)
            return found

        return events

    def _viewed_alone(
        self, state: State, cached: CachedEntry, queue: QueueRecord
    ) -> Sequence[bytes]:
        """The queue's events of the entry."""
        user = state.users.get(queue.user_id)
        if user is None or not user.is_active:
            return ()
        return self._viewed(cached, Viewer(user, queue))

    def _viewed_in_group(
        self, state: State, cached: CachedEntry, queue: QueueRecord
    ) -> Sequence[bytes]:
        """The same, shared with those of the same view group."""
        user = state.users.get(queue.user_id)
        if user is None or not user.is_active:
            return ()
        grouping: Grouping = cached.grouping
        group = grouping.of(user, queue)
        if group is None:
            return self._viewed(cached, Viewer(user, queue))
        key = (group, queue.registration, queue.counted_from)
        found = cached.view_groups.get(key)
        if found is None:
            found = cached.view_groups[key] = self._viewed(cached, Viewer(user, queue))
        return found

    def _viewed(self, cached: CachedEntry, viewer: Viewer) -> Sequence[bytes]:
        """The events that the viewer has of the entry."""
        state, change, registration = self._state(), cached.entry.change, viewer.registration
        projection = self._projection(change)
        if registration.all_public_channels and not projection.for_all_public:
            # Delivery asks such queues of every entry; most are for their audience alone.
            audience = projection.audience(state, change)
            if audience is not None and viewer.user.id not in audience:
                return ()
        numbering = event_ids.of_queue(viewer.queue)
        context = ProjectionContext(state, self._host, cached.entry, numbering, self._dev)
        view = projection.view(context, change, viewer)
        if view is None:
            return ()
        found = cached.views.get((numbering, view))
        if found is None:
            found = projection.encoded(context, change, view)
            cached.views[numbering, view] = found
            self.encoded += len(found)
            cached.size += sum(len(body) for _, body in found)
        # A queue's event types are no part of the view: a client may choose any of them, and each
        # choice would be kept.
        types = registration.event_types
        return [body for tag, body in found if types is None or tag in types]

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
