"""Encoding entries and transient events as the events of each queue."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from tertulia.delivery import queue as event_ids
from tertulia.delivery.encoder import CachedEntry
from tertulia.model.access_keys import Reach
from tertulia.model.change import Change
from tertulia.model.changes import AnyChange, Entry
from tertulia.model.queues import QueueRecord, Registration
from tertulia.model.transients import Transient
from tertulia.model.users import ReachedUser
from tertulia.service.config import Config
from tertulia.state.state import State
from tertulia.wire.api.bots.objects import hidden
from tertulia.wire.api.events import Event, HeartbeatEvent, with_id
from tertulia.wire.api.events import encoded as encoded_event
from tertulia.wire.api.known_objects import KnownObjects, gained_by
from tertulia.wire.api.organization.objects import server_methods
from tertulia.wire.api.projection import Grouping, Projection, ProjectionContext, Viewer, unseen

_UNSEEN: Projection[Any] = unseen(Change)
_MANY: Final = 32
"""The number of queues from which finding the users of the most common view group pays off."""


class TransientViews(ABC):
    """How transient events are shown to viewers."""

    @abstractmethod
    def audience(self, state: State, transient: Transient) -> Collection[int] | None:
        """Return the users that the event may concern, or None for everyone."""

    @abstractmethod
    def event(self, state: State, transient: Transient, viewer: Viewer, host: str) -> Event | None:
        """Return the event for this viewer, or None."""


class EventEncoder:
    """The API's part of event delivery: see `tertulia.delivery.encoder.Encoder`."""

    def __init__(
        self,
        state: Callable[[], State],
        config: Config,
        projections: Iterable[Projection[Any]],
        transients: TransientViews,
        is_reached: Callable[[Reach, Event], bool],
        unsealed: Callable[[str], str],
    ) -> None:
        """`is_reached` says whether a limited access key gets an event. `unsealed` decrypts values
        for accounts themselves, but not for their access keys."""
        self._state = state
        self._host = config.address_host
        self._server_methods = server_methods(config)
        self._projections = {projection.of: projection for projection in projections}
        self._transients = transients
        self._is_reached = is_reached
        self._unsealed = unsealed
        self._known_objects = KnownObjects()
        self.encoded = 0
        """The number of encoded events; tests check that queues share them."""

    def _projection(self, change: AnyChange) -> Projection[Any]:
        return self._projections.get(type(change), _UNSEEN)

    def audience(self, entry: Entry) -> Collection[int] | None:
        return self._projection(entry.change).audience(self._state(), entry.change)

    def events_of(
        self, cached: CachedEntry, count: int = 1
    ) -> Callable[[QueueRecord], Sequence[bytes]]:
        state = self._state()
        # In another state, the same group may see more or less.
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
            if (encoded := groups.get(key)) is None:
                encoded = groups[key] = self._viewed_alone(state, cached, queue)
            return encoded

        return events

    def _viewed_alone(
        self, state: State, cached: CachedEntry, queue: QueueRecord
    ) -> Sequence[bytes]:
        viewer = _viewer(state, queue)
        return () if viewer is None else self._viewed(cached, viewer)

    def _viewed_in_group(
        self, state: State, cached: CachedEntry, queue: QueueRecord
    ) -> Sequence[bytes]:
        """Like `_viewed_alone`, but shared within a view group."""
        viewer = _viewer(state, queue)
        if viewer is None:
            return ()
        grouping: Grouping = cached.grouping
        # Queues of an access key have their own registration, and so their own views.
        group = grouping.of(viewer.user, queue)
        if group is None:
            return self._viewed(cached, viewer)
        key = (group, queue.registration, queue.counted_from)
        if (encoded := cached.view_groups.get(key)) is None:
            encoded = cached.view_groups[key] = self._viewed(cached, viewer)
        return encoded

    def _viewed(self, cached: CachedEntry, viewer: Viewer) -> Sequence[bytes]:
        state, change, registration = self._state(), cached.entry.change, viewer.registration
        projection = self._projection(change)
        if registration.all_public_channels and not projection.for_all_public:
            # Delivery offers every entry to such queues, but most are only for their audience.
            audience = projection.audience(state, change)
            if audience is not None and viewer.user.id not in audience:
                return ()
        numbering = event_ids.numbering_of(viewer.queue)
        context = ProjectionContext(
            state,
            self._host,
            cached.entry,
            numbering,
            self._server_methods,
            hidden if registration.key_id else self._unsealed,
        )
        view = projection.view(context, change, viewer)
        if view is None:
            queue_id, seq = viewer.queue.id, cached.entry.seq
            if self._known_objects.concerns(queue_id, change, is_late=seq < state.seq):
                gained = gained_by(state, change, viewer.user)
                self._known_objects.sent(queue_id, seq, gained, ())
            return ()
        reach = viewer.user.reach
        if reach is not None:
            return self._within_reach(context, change, view, viewer.registration, reach)
        encoded = cached.views.get((numbering, view))
        if encoded is None:
            encoded = cached.views[numbering, view] = projection.encoded(context, change, view)
            self.encoded += len(encoded)
            cached.size += sum(len(body) for _, body in encoded)
        queue_id, seq = viewer.queue.id, cached.entry.seq
        if self._known_objects.concerns(queue_id, change, is_late=seq < state.seq):
            gained = gained_by(state, change, viewer.user)
            events = list(projection.events(context, change, view))
            sent = self._known_objects.sent(queue_id, seq, gained, events)
            encoded = [
                value if event is kept else encoded_event(kept, numbering, seq, index)
                for index, (value, event, kept) in enumerate(
                    zip(encoded, events, sent, strict=True)
                )
                if kept is not None
            ]
        # Event types aren't part of the view: clients can choose any set of them, and the events
        # of each set would be cached.
        types = registration.event_types
        return [body for tag, body in encoded if types is None or tag in types]

    def _within_reach(
        self,
        context: ProjectionContext,
        change: AnyChange,
        view: Hashable,
        registration: Registration,
        reach: Reach,
    ) -> Sequence[bytes]:
        """Return the events of a view that a key with this reach gets."""
        types = registration.event_types
        return [
            item.body
            for event, item in self._projection(change).numbered(context, change, view)
            if self._is_reached(reach, event) and (types is None or item.type in types)
        ]

    def transient_audience(self, transient: Transient) -> Collection[int] | None:
        return self._transients.audience(self._state(), transient)

    def transient(self, transient: Transient, queue: QueueRecord, event_id: int) -> bytes | None:
        state = self._state()
        viewer = _viewer(state, queue)
        if viewer is None:
            return None
        event = self._transients.event(state, transient, viewer, self._host)
        reach = viewer.user.reach
        if event is None or (reach is not None and not self._is_reached(reach, event)):
            return None
        types = queue.registration.event_types
        if types is not None and event.__struct_config__.tag not in types:
            return None
        return with_id(event, event_id)

    def heartbeat(self, event_id: int) -> bytes:
        return with_id(HeartbeatEvent(), event_id)


def _viewer(state: State, queue: QueueRecord) -> Viewer | None:
    """Return the viewer of the queue's events; None if its user or its access key has lost
    access."""
    user = state.users.get(queue.user_id)
    if user is None or not user.is_active:
        return None
    key_id = queue.registration.key_id
    if key_id is not None:
        key = state.access_keys.get(key_id)
        if key is None:
            return None
        user = ReachedUser.of(user, key.reach)
    return Viewer(user, queue)
