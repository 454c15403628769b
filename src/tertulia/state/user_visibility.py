"""Finding the accounts that a change makes visible or invisible to guests. This can't be derived
later, so it's written to the log as a separate change: before the change that makes accounts
visible, and after the one that makes them invisible. Only limited guests are concerned
(`Memberships.limited_guests`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyroaring import BitMap

from tertulia.model import changes
from tertulia.model.change import Change
from tertulia.model.changes import AnyChange, UserVisibilityChanged
from tertulia.model.users import UserVisibility
from tertulia.state.folds import revised

if TYPE_CHECKING:
    from tertulia.state.state import State

Sets = dict[int, BitMap]
"""The accounts that each guest sees, by guest."""
BATCH_SIZE: Final = 40
"""The most accounts per entry, because an entry has a limited number of event IDs
(`delivery/queue.py`)."""


class VisibilityChange(NamedTuple):
    """The accounts that a change makes visible and invisible. Sets may contain the guest's own
    ID."""

    gained: Sets
    lost: Sets


_NOTHING = VisibilityChange({}, {})


def accompanied(state: State, decided: Iterable[AnyChange]) -> Iterator[AnyChange]:
    """Yield the changes, and a `UserVisibilityChanged` before or after each that needs one. The
    caller must fold each change before taking the next."""
    for change in decided:
        result = moved(state, change)
        if result is _NOTHING:
            yield change
            continue
        for part in _parts(result.gained):
            yield UserVisibilityChanged(gained=grouped(part))
        yield change
        for part in _parts(result.lost):
            yield UserVisibilityChanged(lost=grouped(part))


def _parts(sets: Sets) -> Iterator[Sets]:
    """Split the sets into parts with at most `BATCH_SIZE` accounts."""
    everybody = BitMap.union(BitMap(), *sets.values())
    for first in range(0, len(everybody), BATCH_SIZE):
        some = everybody[first : first + BATCH_SIZE]
        part = {viewer_id: user_ids & some for viewer_id, user_ids in sets.items()}
        yield {viewer_id: user_ids for viewer_id, user_ids in part.items() if user_ids}


def moved(state: State, change: AnyChange) -> VisibilityChange:
    """Return the accounts that the change makes visible and invisible to guests if it's folded
    next."""
    find = _FINDERS.get(type(change))
    if find is None or state.is_empty:
        return _NOTHING
    result: VisibilityChange = find(state, change)
    if not result.gained and not result.lost:
        return _NOTHING
    return VisibilityChange(_people(state, result.gained), _people(state, result.lost))


def _people(state: State, sets: Sets) -> Sets:
    """Return the sets without bots, which everyone sees, and without guests who see only
    themselves."""
    bots = state.users.bots.ids
    result = {guest_id: user_ids - bots for guest_id, user_ids in sets.items()}
    return {
        guest_id: user_ids
        for guest_id, user_ids in result.items()
        if user_ids and user_ids != BitMap([guest_id])
    }


def grouped(sets: Sets) -> tuple[UserVisibility, ...]:
    """Return one record for each group of guests with equal sets."""
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for guest_id, user_ids in sorted(sets.items()):
        groups.setdefault(id_ranges(user_ids), []).append(guest_id)
    return tuple(
        UserVisibility(viewers=tuple(viewers), users=users) for users, viewers in groups.items()
    )


def id_ranges(user_ids: BitMap) -> tuple[tuple[int, int], ...]:
    """Return the IDs as ranges, each with its first and last ID."""
    firsts, lasts = user_ids - user_ids.shift(1), user_ids - user_ids.shift(-1)
    return tuple(zip(firsts, lasts, strict=True))


def bitmap(users: Iterable[tuple[int, int]]) -> BitMap:
    """Return the IDs in these ranges."""
    bitmap = BitMap()
    for first, last in users:
        bitmap.add_range(first, last + 1)
    return bitmap


def _subscribed(state: State, change: changes.Subscribed) -> VisibilityChange:
    present = state.contacts.subscribers(change.channel_id)
    joined = BitMap(change.colors)
    everybody = present | joined
    gained = {
        guest_id: (everybody if guest_id in joined else joined) - state.contacts.of(guest_id)
        for guest_id in state.memberships.limited_guests & everybody
    }
    return VisibilityChange(gained, {})


def _unsubscribed(state: State, change: changes.Unsubscribed) -> VisibilityChange:
    present = state.contacts.subscribers(change.channel_id)
    left = BitMap(change.user_ids)
    lost = {
        guest_id: (present if guest_id in left else left)
        - state.contacts.apart_from(guest_id, {change.channel_id: left})
        for guest_id in state.memberships.limited_guests & present
    }
    return VisibilityChange({}, lost)


def _message_sent(state: State, change: changes.MessageSent) -> VisibilityChange:
    if change.new_conversation is None:
        return _NOTHING
    members = BitMap(change.new_conversation.members)
    gained = {
        guest_id: members - state.contacts.of(guest_id)
        for guest_id in state.memberships.limited_guests & members
    }
    return VisibilityChange(gained, {})


def _realm_changed(state: State, change: changes.RealmChanged) -> VisibilityChange:
    if "can_access_all_users_group" not in change.values:
        return _NOTHING
    ahead = state.with_changes(revised(state.realm, change.values))
    return _limited_otherwise(state, ahead, state.users.maybe_guests)


def _user_changed(state: State, change: changes.UserChanged) -> VisibilityChange:
    if change.values.keys().isdisjoint({"role", "bot"}):
        return _NOTHING
    ahead = state.with_changes(revised(state.users[change.user_id], change.values))
    bots = (state.users[bot_id] for bot_id in state.users.bots)
    owned = (bot.id for bot in bots if bot.bot and bot.bot.owner_id == change.user_id)
    return _limited_otherwise(state, ahead, [change.user_id, *owned])


def _limited_otherwise(state: State, ahead: State, user_ids: Iterable[int]) -> VisibilityChange:
    """Return the accounts that these accounts gain or lose sight of, because they become limited
    guests or no longer are."""
    before, everybody = state.memberships.limited_guests, BitMap(state.users.rows)
    gained, lost = Sets(), Sets()
    for user_id in user_ids:
        is_limited = ahead.memberships.is_limited_guest(ahead.users[user_id])
        if is_limited is not (user_id in before):
            result = lost if is_limited else gained
            result[user_id] = everybody - state.contacts.of(user_id)
    return VisibilityChange(gained, lost)


_FINDERS: Mapping[type[Change], Callable[[State, Any], VisibilityChange]] = {
    changes.Subscribed: _subscribed,
    changes.Unsubscribed: _unsubscribed,
    changes.MessageSent: _message_sent,
    changes.RealmChanged: _realm_changed,
    changes.UserChanged: _user_changed,
}
