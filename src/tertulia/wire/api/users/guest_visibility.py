"""Events of accounts that guests gain or lose access to."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from pyroaring import BitMap, FrozenBitMap

from tertulia.domain import permissions
from tertulia.model.changes import UserVisibilityChanged
from tertulia.model.users import Role, UserVisibility
from tertulia.state.state import State
from tertulia.state.user_visibility import bitmap
from tertulia.wire.api.events import EncodedEvent, Event, encoded
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer
from tertulia.wire.api.statuses import status_now, status_object
from tertulia.wire.api.users import account_events
from tertulia.wire.api.users.account_events import AccountView, wants_stand_ins


class _VisibilityView(NamedTuple):
    lost: FrozenBitMap
    gained: FrozenBitMap
    role: Role
    """The viewer's role, which decides which addresses they see."""
    client_gravatar: bool
    stand_ins: bool


class _SharedEvents:
    """The encoded events of one change, shared by all viewers who gain or lose the same account.

    Every account has its own range of event IDs, so a viewer's events have the same IDs even if
    access has changed again.
    """

    def __init__(self, change: UserVisibilityChanged, seq: int) -> None:
        self.change = change
        self.seq = seq
        """The version of the state that the events were made from."""
        self.gained = _by_viewer(change.gained)
        self.lost = _by_viewer(change.lost)
        user_ids = BitMap.union(BitMap(), *self.gained.values(), *self.lost.values())
        self.first_index = {user_id: number * 2 for number, user_id in enumerate(user_ids)}
        self.events: dict[Hashable, tuple[EncodedEvent, ...]] = {}


def _by_viewer(changed: Iterable[UserVisibility]) -> dict[int, BitMap]:
    user_ids = [(choice, bitmap(choice.users)) for choice in changed]
    return {viewer_id: users for user_id, users in user_ids for viewer_id in user_id.viewers}


class UserVisibilityChangedProjection(Projection[UserVisibilityChanged]):
    """Shows guests the accounts that they gained and lost. A gained account is sent only if it's
    still visible."""

    of = UserVisibilityChanged

    def __init__(self) -> None:
        self._last: _SharedEvents | None = None

    def _shared(self, context: ProjectionContext, change: UserVisibilityChanged) -> _SharedEvents:
        last = self._last
        if last is None or last.change is not change or last.seq != context.state.seq:
            last = self._last = _SharedEvents(change, context.state.seq)
        return last

    def audience(self, state: State, change: UserVisibilityChanged) -> Collection[int]:
        return {user_id for choice in (*change.gained, *change.lost) for user_id in choice.viewers}

    def view(
        self, context: ProjectionContext, change: UserVisibilityChanged, viewer: Viewer
    ) -> Hashable | None:
        state, user, shared = context.state, viewer.user, self._shared(context, change)
        gained = shared.gained.get(user.id, BitMap())
        if not permissions.sees_everybody(state, user):
            gained = gained & state.contacts.of(user.id)
        bitmap = BitMap([user.id])
        lost, gained = shared.lost.get(user.id, BitMap()) - bitmap, gained - bitmap
        if not gained and not lost:
            return None
        return _VisibilityView(
            lost=FrozenBitMap(lost),
            gained=FrozenBitMap(gained),
            role=permissions.role_of(state, user),
            client_gravatar=viewer.registration.client_gravatar,
            stand_ins=wants_stand_ins(viewer),
        )

    def encoded(
        self, context: ProjectionContext, change: UserVisibilityChanged, view: Any
    ) -> Sequence[EncodedEvent]:
        shared = self._shared(context, change)
        all_events: list[EncodedEvent] = []
        for user_id in view.lost | view.gained:
            key = (context.numbering, user_id, user_id in view.lost, *view[2:])
            events = shared.events.get(key)
            if events is None:
                first = shared.first_index[user_id]
                events = shared.events[key] = tuple(
                    encoded(event, context.numbering, context.entry.seq, first + number)
                    for number, event in enumerate(self._of_one(context, user_id, view))
                )
            all_events += events
        return all_events

    def events(
        self, context: ProjectionContext, change: UserVisibilityChanged, view: Any
    ) -> Iterable[Event]:
        for user_id in view.lost | view.gained:
            yield from self._of_one(context, user_id, view)

    def _of_one(
        self, context: ProjectionContext, user_id: int, view: _VisibilityView
    ) -> Iterable[Event]:
        """Return the events for one account: one or two."""
        state = context.state
        if user_id in view.lost:
            yield account_events.removed(user_id)
            if view.stand_ins:
                yield account_events.unknown(context, user_id)
            return
        user = state.users[user_id]
        address = permissions.shows_address(state, user, view.role)
        yield account_events.added(context, user, AccountView(address, view.client_gravatar))
        if status_object(state, user):
            yield status_now(state, user)


PROJECTIONS: Final[Projections] = (UserVisibilityChangedProjection(),)
