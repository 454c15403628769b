"""How changes are presented to clients.

A projection decides which users a change may concern, the view that each queue has of it, and the
events of that view. Views are hashable and few: events are encoded once per view, and all queues
with that view share the bytes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct
from pyroaring import BitMap

from tertulia.delivery.queue import Numbering
from tertulia.model.change import Change
from tertulia.model.changes import Entry
from tertulia.model.queues import QueueRecord, Registration
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.api.events import EncodedEvent, Event, encoded

C = TypeVar("C", bound=Change)


class ProjectionContext(Struct, frozen=True):
    """The current state and the entry to present.

    The state may be newer than the entry, so information that a newer state no longer has must be
    in the change.
    """

    state: State
    host: str
    """The host of placeholder email addresses."""
    entry: Entry
    numbering: Numbering
    server_methods: tuple[str, ...]
    """The sign-in methods that the server's operator has enabled."""
    unsealed: Callable[[str], str]
    """Decrypts values that the viewer may see."""

    @property
    def at(self) -> float:
        return self.entry.at


class Viewer(Struct, frozen=True):
    """A queue and the user it belongs to."""

    user: User
    queue: QueueRecord

    @property
    def registration(self) -> Registration:
        return self.queue.registration


class Grouping(NamedTuple):
    """How to find users with the same view: those of one view group whose queues have the same
    registration."""

    of: Callable[[User, QueueRecord], Hashable | None]
    """Returns the view group of a user, or None if their view has to be computed separately. It's
    called for each waiting user, so it has to be fast."""
    usual: Callable[[], BitMap]
    """Returns the users of the most common view group, except those whose queue has a narrow. With
    very many users, a lookup in a bitmap is much faster than `of`."""


class Projection(ABC, Generic[C]):
    """How one kind of change is presented."""

    of: type[C]
    for_all_public: bool = False
    """Whether queues that follow all public channels are included in addition to the audience."""

    @abstractmethod
    def audience(self, state: State, change: C) -> Collection[int] | None:
        """Return the users that the change may concern, or None for everyone. `view` decides for
        each user."""

    @abstractmethod
    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        """Return the queue's view of the change, or None if it gets no events."""

    def grouping(self, state: State, change: C) -> Grouping | None:
        """Return how to group users in this state, or None to compute each view separately."""
        return None

    @abstractmethod
    def events(self, context: ProjectionContext, change: C, view: Any) -> Iterable[Event]:
        """Return the events of a view, in order. Their number may depend only on the change and the
        view."""

    def numbered(
        self, context: ProjectionContext, change: C, view: Any
    ) -> Iterable[tuple[Event, EncodedEvent]]:
        """Return the events, and each encoded."""
        for index, event in enumerate(self.events(context, change, view)):
            yield event, encoded(event, context.numbering, context.entry.seq, index)

    def encoded(self, context: ProjectionContext, change: C, view: Any) -> Sequence[EncodedEvent]:
        """Return the encoded events."""
        return [item for _, item in self.numbered(context, change, view)]


Projections = tuple[Projection[Any], ...]


# Declarations

AudienceOf = Callable[[State, C], Collection[int] | None]
ViewOf = Callable[[ProjectionContext, C, Viewer], Hashable | None]
EventsOf = Callable[[ProjectionContext, C, Any], Iterable[Event]]
EventOf = Callable[[ProjectionContext, C], Event]
Condition = Callable[[ProjectionContext, C, Viewer], bool]


class _Declared(Projection[C]):
    def __init__(
        self,
        of: type[C],
        audience: AudienceOf[C],
        view: ViewOf[C],
        events: EventsOf[C],
        *,
        for_all_public: bool = False,
    ) -> None:
        self.of, self.for_all_public = of, for_all_public
        self._audience, self._view, self._events = audience, view, events

    def audience(self, state: State, change: C) -> Collection[int] | None:
        return self._audience(state, change)

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        return self._view(context, change, viewer)

    def events(self, context: ProjectionContext, change: C, view: Any) -> Iterable[Event]:
        return self._events(context, change, view)


def everybody(state: State, change: Change) -> None:
    """The audience of a change that may concern everyone."""
    return


def owner(state: State, change: Any) -> Collection[int]:
    """The audience of a change that concerns only the account with its `user_id`."""
    return (change.user_id,)


def projected(
    of: type[C],
    view: ViewOf[C],
    events: EventsOf[C],
    *,
    audience: AudienceOf[C] = everybody,
    for_all_public: bool = False,
) -> Projection[C]:
    """Declare a projection with functions."""
    return _Declared(of, audience, view, events, for_all_public=for_all_public)


def _one_event(
    of: type[C], event: EventOf[C], only_if: Condition[C] | None, audience: AudienceOf[C]
) -> Projection[C]:
    def view(context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        return () if only_if is None or only_if(context, change, viewer) else None

    return _Declared(of, audience, view, lambda context, change, _: (event(context, change),))


def to_everybody(
    of: type[C], event: EventOf[C], *, only_if: Condition[C] | None = None
) -> Projection[C]:
    """Declare a change that makes one event, for every viewer that meets the condition."""
    return _one_event(of, event, only_if, everybody)


def to_owner(
    of: type[C], event: EventOf[C], *, only_if: Condition[C] | None = None
) -> Projection[C]:
    """Declare a change that makes one event for the account with its `user_id`, if the condition
    is met."""
    return _one_event(of, event, only_if, owner)


def unseen(of: type[C]) -> Projection[C]:
    """Declare a change that makes no events."""
    return _Declared(of, lambda *_: (), lambda *_: None, lambda *_: ())
