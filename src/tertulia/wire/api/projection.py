"""How a change is shown to clients: what a projection says of it, and short ways to declare one.

A projection says whom a change may concern, which of the possible views a given queue has of it,
and what events the change makes in that view. Views are hashable and few: the events of a change
are encoded once for each view, and all queues that have it share the bytes.

A change that makes one event, the same for all who get it, is declared by `to_everybody` or
`to_owner`; one that makes none by `unseen`. Where there is more to say, there is a class.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from msgspec import Struct
from pyroaring import BitMap

from tertulia.delivery.event_ids import Numbering
from tertulia.model.changes import Change, Entry
from tertulia.model.queues import QueueRecord, Registration
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.api.events import EncodedEvent, Event, encoded

C = TypeVar("C", bound=Change)


class ProjectionContext(Struct, frozen=True):
    """What a projection looks at: the organization as it is now, and the entry's circumstances.

    The state may be later than the entry; whatever cannot be told from a later state is in the
    change itself.
    """

    state: State
    host: str
    """Of the addresses that stand for hidden ones."""
    entry: Entry
    numbering: Numbering
    """How the queue's events are numbered."""
    dev: bool = False
    """Whether the server is for developers."""

    @property
    def at(self) -> float:
        return self.entry.at


class Viewer(Struct, frozen=True):
    """The user whose queue it is, and how the queue was registered."""

    user: User
    queue: QueueRecord

    @property
    def registration(self) -> Registration:
        return self.queue.registration


class Grouping(NamedTuple):
    """What users have in common: those of the same view group whose queues were registered alike
    have the same view."""

    of: Callable[[User, QueueRecord], Hashable | None]
    """The view group of a user; None where their view must be looked up by itself. It is asked for
    each user who waits, and must cost next to nothing."""
    usual: Callable[[], BitMap]
    """Finds the users whose view group is the usual one, unless their queue has a narrow. That is
    worth it where very many are asked about: it stays in the processor's cache, and what else is
    known of them does not."""


class Projection(ABC, Generic[C]):
    """How one kind of change is shown."""

    of: type[C]
    for_all_public: ClassVar[bool] = False
    """Whether queues that follow all public channels are asked too, beyond the audience."""

    @abstractmethod
    def audience(self, state: State, change: C) -> Collection[int] | None:
        """The users whom it may concern; None for everybody. `view` decides for each."""

    @abstractmethod
    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        """Which view the queue has of the change; None for none."""

    def grouping(self, state: State, change: C) -> Grouping | None:
        """How to find what users have in common, as long as the state is that one; None where each
        view must be looked up by itself."""
        return None

    @abstractmethod
    def events(self, context: ProjectionContext, change: C, view: Any) -> Iterable[Event]:
        """The events in that view, in order. Their number must depend on nothing but the change
        and the view."""

    def encoded(self, context: ProjectionContext, change: C, view: Any) -> Sequence[EncodedEvent]:
        """The same events as they are sent."""
        return [
            encoded(event, context.numbering, context.entry.seq, place)
            for place, event in enumerate(self.events(context, change, view))
        ]


Projections = tuple[Projection[Any], ...]


class ForEverybody(Projection[C]):
    """A change that everybody sees, unless its `view` says otherwise."""

    def audience(self, state: State, change: C) -> None:
        return None

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        return ()


class ForOwner(Projection[C]):
    """A change of what belongs to one account, its `user_id`, and is shown to nobody else."""

    def audience(self, state: State, change: C) -> Collection[int]:
        owner: int = change.user_id  # type: ignore[attr-defined]  # every such change has one
        return (owner,)

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        return ()


# Declared in a line

EventOf = Callable[[ProjectionContext, C], Event]
Condition = Callable[[ProjectionContext, C, Viewer], bool]


class _ToEverybody(ForEverybody[C]):
    def __init__(self, of: type[C], event: EventOf[C], only_if: Condition[C] | None) -> None:
        self.of = of
        self._event = event
        self._only_if = only_if

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        return () if self._only_if is None or self._only_if(context, change, viewer) else None

    def events(self, context: ProjectionContext, change: C, view: Any) -> Iterable[Event]:
        return (self._event(context, change),)


class _ToOwner(ForOwner[C]):
    def __init__(self, of: type[C], event: EventOf[C], only_if: Condition[C] | None) -> None:
        self.of = of
        self._event = event
        self._only_if = only_if

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        return () if self._only_if is None or self._only_if(context, change, viewer) else None

    def events(self, context: ProjectionContext, change: C, view: Any) -> Iterable[Event]:
        return (self._event(context, change),)


class _Unseen(Projection[C]):
    def __init__(self, of: type[C]) -> None:
        self.of = of

    def audience(self, state: State, change: C) -> Collection[int]:
        return ()

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> None:
        return None

    def events(self, context: ProjectionContext, change: C, view: Any) -> Iterable[Event]:
        return ()


def to_everybody(
    of: type[C], event: EventOf[C], *, only_if: Condition[C] | None = None
) -> Projection[C]:
    """The change makes this one event for everybody, or for the viewers that meet the condition."""
    return _ToEverybody(of, event, only_if)


def to_owner(
    of: type[C], event: EventOf[C], *, only_if: Condition[C] | None = None
) -> Projection[C]:
    """The change makes this one event for the account whose `user_id` it has, if the condition is
    met."""
    return _ToOwner(of, event, only_if)


def unseen(of: type[C]) -> Projection[C]:
    """No client gets an event of the change."""
    return _Unseen(of)
