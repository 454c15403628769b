"""Events of accounts."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pyroaring import BitMap, FrozenBitMap

from tertulia.domain import permissions
from tertulia.model.changes import (
    Named,
    UserChanged,
    UserCreated,
    UserDeactivated,
    UserReactivated,
    UserVisibility,
    UserVisibilityChanged,
)
from tertulia.model.users import Role, User
from tertulia.state.organization import State
from tertulia.state.visibility import bitmap
from tertulia.wire.api.events import EncodedEvent, Event, encoded
from tertulia.wire.api.objects.bots import BotObject, administers_bot, bot_object
from tertulia.wire.api.objects.channels import excluded
from tertulia.wire.api.objects.statuses import status_object
from tertulia.wire.api.objects.users import date_joined
from tertulia.wire.api.projection import (
    ForEverybody,
    Projection,
    ProjectionContext,
    Projections,
    Viewer,
)
from tertulia.wire.api.projections import people
from tertulia.wire.api.projections.bots import BotAddEvent, BotView, bot_events, bot_now, bot_view
from tertulia.wire.api.projections.groups import groups_known, members_added, members_removed
from tertulia.wire.api.projections.holders import holders_changed, named_in_sight
from tertulia.wire.api.projections.people import (
    PersonActivity,
    PersonBotOwner,
    PersonDeleted,
    PersonJoined,
    PersonRole,
    Sight,
    UserUpdateEvent,
    sight_of,
)
from tertulia.wire.api.projections.roles import OwnView, own_events, own_view
from tertulia.wire.api.projections.settings import Asked, asked_by, told_to_owner
from tertulia.wire.api.projections.status import status_now
from tertulia.wire.api.projections.subscriptions import PeerAddEvent, PeerRemoveEvent
from tertulia.wire.api.projections.visibility import sees_user


class _CreatedView(NamedTuple):
    sight: Sight | None
    unknown_too: bool
    bot: BotObject | None


class UserCreatedProjection(ForEverybody[UserCreated]):
    """A new account. Groups list all their members to everybody, so everybody hears of those."""

    of = UserCreated

    def view(
        self, context: ProjectionContext, change: UserCreated, viewer: Viewer
    ) -> Hashable | None:
        state, user = context.state, context.state.users[change.user.id]
        if viewer.user.id == user.id:
            return None  # Their queues are younger.
        shown = None
        if administers_bot(state, viewer.user, user):
            shown = bot_object(state, viewer.user, user, context.at)
        return _CreatedView(sight_of(context, user, viewer), _wants_unknown(viewer), shown)

    def events(self, context: ProjectionContext, change: UserCreated, view: Any) -> Iterable[Event]:
        if view.sight is not None:
            yield people.added(context, change.user.id, view.sight)
        elif view.unknown_too:
            yield people.unknown(context, change.user.id)
        yield from members_added(change.group_ids, change.user.id)
        if view.bot is not None:
            yield BotAddEvent(bot=view.bot)


class _ChangedView(NamedTuple):
    sight: Sight | None
    email_shown: bool
    bot: BotView | None
    own: OwnView | None
    asked: Asked | None
    """Of the one whose time zone is new: it is one of their settings."""


class UserChangedProjection(ForEverybody[UserChanged]):
    """News of an account, to those who may know of it; and of a new role, to the one who has it,
    what it shows and hides."""

    of = UserChanged

    def view(
        self, context: ProjectionContext, change: UserChanged, viewer: Viewer
    ) -> Hashable | None:
        user = context.state.users[change.user_id]
        return _ChangedView(
            sight=sight_of(context, user, viewer),
            email_shown=people.is_shown_to_all(context.state, user),
            bot=bot_view(context, change, viewer),
            own=own_view(context, change, viewer),
            asked=asked_by(viewer) if self._is_own_zone(change, viewer) else None,
        )

    def _is_own_zone(self, change: UserChanged, viewer: Viewer) -> bool:
        return viewer.user.id == change.user_id and "timezone" in change.values

    def events(self, context: ProjectionContext, change: UserChanged, view: Any) -> Iterable[Event]:
        if view.asked is not None:
            zone = change.values["timezone"]
            yield from told_to_owner(context, change.user_id, view.asked, "timezone", zone)
        if view.sight is not None:
            yield from self._seen(context, change, view)
        yield from members_removed(change.left, change.user_id)
        yield from members_added(change.joined, change.user_id)
        if view.bot is not None:
            yield from bot_events(change, view.bot)
        if view.own is not None:
            yield from own_events(context, view.own)

    def _seen(
        self, context: ProjectionContext, change: UserChanged, view: _ChangedView
    ) -> Iterable[Event]:
        user, values, sight = context.state.users[change.user_id], change.values, view.sight
        if sight is None:
            return
        if "is_deleted" in values:
            yield UserUpdateEvent(person=PersonDeleted(user_id=user.id))
        if "full_name" in values:
            yield people.named(user)
        if "address" in values:
            if sight.address:
                yield people.delivery_email(user, sight)
            if view.email_shown:
                yield people.email(context, user)
        if "joined_at" in values:
            joined = PersonJoined(user_id=user.id, date_joined=date_joined(user))
            yield UserUpdateEvent(person=joined)
        if "timezone" in values:
            yield people.timezone(context, user)
        if self._is_other_picture(user, values, sight):
            yield people.avatar(user, sight)
        if "role" in values:
            yield UserUpdateEvent(person=PersonRole(user_id=user.id, role=int(values["role"])))
        if "bot" in values:
            owner_id = bot_now(values["bot"]).owner_id
            if owner_id is not None and owner_id != bot_now(change.was["bot"]).owner_id:
                yield UserUpdateEvent(person=PersonBotOwner(user_id=user.id, bot_owner_id=owner_id))

    @staticmethod
    def _is_other_picture(user: User, values: Mapping[str, Any], sight: Sight) -> bool:
        """Whether the picture is another, or is drawn of another name."""
        if not values.keys().isdisjoint({"avatar_source", "avatar_version"}):
            return True
        by_address = user.avatar_source == "G" and sight.address
        drawn = user.avatar_source != "U" and not by_address
        return ("address" in values and by_address) or ("full_name" in values and drawn)


class _ActivityView(NamedTuple):
    sees: bool
    channel_ids: tuple[int, ...]
    group_ids: tuple[int, ...]
    named: Named


def _activity_view(
    context: ProjectionContext, change: UserDeactivated | UserReactivated, viewer: Viewer
) -> _ActivityView:
    state = context.state
    return _ActivityView(
        sees=_wants_unknown(viewer) or sees_user(context, viewer.user, state.users[change.user_id]),
        channel_ids=_lists_seen(context, change, viewer),
        group_ids=groups_known(change.group_ids, change.deactivated_groups, viewer),
        named=named_in_sight(context, change.named, change.deactivated_groups, viewer),
    )


def _lists_seen(
    context: ProjectionContext, change: UserDeactivated | UserReactivated, viewer: Viewer
) -> tuple[int, ...]:
    """The channels of whose subscribers the client keeps a list. Nobody is one's own peer."""
    if viewer.user.id == change.user_id:
        return ()
    state, user = context.state, viewer.user
    return tuple(
        channel_id
        for channel_id in change.channel_ids
        if not excluded(state.channels[channel_id], viewer.registration)
        and permissions.sees_subscribers(state, user, state.channels[channel_id], context.at)
    )


def _wants_unknown(viewer: Viewer) -> bool:
    """Whether the client needs something in the place of accounts that are out of sight."""
    return not viewer.registration.capabilities.user_list_incomplete


class _VisibilityView(NamedTuple):
    lost: FrozenBitMap
    gained: FrozenBitMap
    role: Role
    """The viewer's, by which addresses are shown."""
    client_gravatar: bool
    unknown_too: bool


class _Shared:
    """One such change, and what its events are, so that each is made once for however many viewers
    gain or lose the same account.

    Every account has places of its own among the events: so the events of one viewer have the same
    numbers whatever came into sight or went out of it since.
    """

    def __init__(self, change: UserVisibilityChanged, seq: int) -> None:
        self.change = change
        self.seq = seq
        """Of the state in which the events were made."""
        self.gained = _by_viewer(change.gained)
        self.lost = _by_viewer(change.lost)
        user_ids = BitMap.union(BitMap(), *self.gained.values(), *self.lost.values())
        self.places = {user_id: place * 2 for place, user_id in enumerate(user_ids)}
        self.events: dict[Hashable, tuple[EncodedEvent, ...]] = {}


def _by_viewer(found: Iterable[UserVisibility]) -> dict[int, BitMap]:
    user_ids = [(one, bitmap(one.users)) for one in found]
    return {viewer_id: users for one, users in user_ids for viewer_id in one.viewers}


class UserVisibilityChangedProjection(Projection[UserVisibilityChanged]):
    """To guests, the accounts of which they may know now, and those of which they may not any
    more. What was gained then is shown if it is still in sight."""

    of = UserVisibilityChanged

    def __init__(self) -> None:
        self._last: _Shared | None = None

    def _shared(self, context: ProjectionContext, change: UserVisibilityChanged) -> _Shared:
        last = self._last
        if last is None or last.change is not change or last.seq != context.state.seq:
            last = self._last = _Shared(change, context.state.seq)
        return last

    def audience(self, state: State, change: UserVisibilityChanged) -> Collection[int]:
        return {user_id for one in (*change.gained, *change.lost) for user_id in one.viewers}

    def view(
        self, context: ProjectionContext, change: UserVisibilityChanged, viewer: Viewer
    ) -> Hashable | None:
        state, user, shared = context.state, viewer.user, self._shared(context, change)
        gained = shared.gained.get(user.id, BitMap())
        if not permissions.sees_everybody(state, user, context.at):
            gained = gained & state.acquaintances.of(user.id)
        own = BitMap([user.id])
        lost, gained = shared.lost.get(user.id, BitMap()) - own, gained - own
        if not gained and not lost:
            return None
        return _VisibilityView(
            lost=FrozenBitMap(lost),
            gained=FrozenBitMap(gained),
            role=permissions.role_of(state, user),
            client_gravatar=viewer.registration.client_gravatar,
            unknown_too=_wants_unknown(viewer),
        )

    def encoded(
        self, context: ProjectionContext, change: UserVisibilityChanged, view: Any
    ) -> Sequence[EncodedEvent]:
        shared = self._shared(context, change)
        found: list[EncodedEvent] = []
        for user_id in view.lost | view.gained:
            key = (user_id, user_id in view.lost, *view[2:])
            events = shared.events.get(key)
            if events is None:
                place = shared.places[user_id]
                events = shared.events[key] = tuple(
                    encoded(event, context.entry.seq, place + number)
                    for number, event in enumerate(self._of_one(context, user_id, view))
                )
            found += events
        return found

    def events(
        self, context: ProjectionContext, change: UserVisibilityChanged, view: Any
    ) -> Iterable[Event]:
        for user_id in view.lost | view.gained:
            yield from self._of_one(context, user_id, view)

    def _of_one(
        self, context: ProjectionContext, user_id: int, view: _VisibilityView
    ) -> Iterable[Event]:
        """Two events at most."""
        state = context.state
        if user_id in view.lost:
            yield people.removed(user_id)
            if view.unknown_too:
                yield people.unknown(context, user_id)
            return
        user = state.users[user_id]
        shown = permissions.shows_address(state, user, view.role)
        yield people.added(context, user_id, Sight(shown, view.client_gravatar))
        if status_object(state, user):
            yield status_now(state, user)


class UserDeactivatedProjection(ForEverybody[UserDeactivated]):
    """An account went. It is in no list of subscribers or members any more."""

    of = UserDeactivated

    def view(
        self, context: ProjectionContext, change: UserDeactivated, viewer: Viewer
    ) -> Hashable | None:
        return _activity_view(context, change, viewer)

    def events(
        self, context: ProjectionContext, change: UserDeactivated, view: Any
    ) -> Iterable[Event]:
        user_id = change.user_id
        if view.channel_ids:
            yield PeerRemoveEvent(stream_ids=list(view.channel_ids), user_ids=[user_id])
        yield from members_removed(view.group_ids, user_id)
        yield from holders_changed(context, view.named)
        if view.sees:
            yield UserUpdateEvent(person=PersonActivity(user_id=user_id, is_active=False))


class UserReactivatedProjection(ForEverybody[UserReactivated]):
    """An account came back, to where it was."""

    of = UserReactivated

    def view(
        self, context: ProjectionContext, change: UserReactivated, viewer: Viewer
    ) -> Hashable | None:
        return _activity_view(context, change, viewer)

    def events(
        self, context: ProjectionContext, change: UserReactivated, view: Any
    ) -> Iterable[Event]:
        user_id = change.user_id
        if view.sees:
            yield UserUpdateEvent(person=PersonActivity(user_id=user_id, is_active=True))
        yield from members_added(view.group_ids, user_id)
        yield from holders_changed(context, view.named)
        if view.channel_ids:
            yield PeerAddEvent(stream_ids=list(view.channel_ids), user_ids=[user_id])


PROJECTIONS: Final[Projections] = (
    UserCreatedProjection(),
    UserChangedProjection(),
    UserDeactivatedProjection(),
    UserReactivatedProjection(),
    UserVisibilityChangedProjection(),
)
