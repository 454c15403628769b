"""Of which accounts guests come to know by a change, and of which they do not know any more.

What is found is written in the log, as a change of its own: before the change that lets a guest
know, and after the one that ends it. Nobody can tell it afterwards. It is found for guests whom
the organization limits, and for nobody else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pyroaring import BitMap

from tertulia.model import changes
from tertulia.model.changes import AnyChange, UserVisibility, UserVisibilityChanged
from tertulia.state.folds.registry import revised
from tertulia.state.organization import State

Sets = dict[int, BitMap]
"""Accounts, by the guest who knows of them."""


class Moved(NamedTuple):
    """What a change does to what guests see. Each set may contain the guest's own ID."""

    gained: Sets
    lost: Sets


_NOTHING = Moved({}, {})


def accompanied(state: State, decided: Iterable[AnyChange]) -> Iterator[AnyChange]:
    """The changes, with those that say what guests see because of them. Each must be folded before
    the next is asked for."""
    for change in decided:
        found = moved(state, change)
        if found.gained:
            yield UserVisibilityChanged(gained=grouped(found.gained))
        yield change
        if found.lost:
            yield UserVisibilityChanged(lost=grouped(found.lost))


def moved(state: State, change: AnyChange) -> Moved:
    """What guests would see otherwise if the change were folded next."""
    find = _FINDERS.get(type(change))
    if find is None or state.is_empty:
        return _NOTHING
    found: Moved = find(state, change)
    if not found.gained and not found.lost:
        return _NOTHING
    return Moved(_people(state, found.gained), _people(state, found.lost))


def _people(state: State, sets: Sets) -> Sets:
    """Without bots, of which everybody knows, and without guests who would see themselves only."""
    bots = BitMap(state.bots)
    found = {guest_id: user_ids - bots for guest_id, user_ids in sets.items()}
    return {
        guest_id: user_ids
        for guest_id, user_ids in found.items()
        if user_ids and user_ids != BitMap([guest_id])
    }


def grouped(sets: Sets) -> tuple[UserVisibility, ...]:
    """One record for all who see alike."""
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for guest_id, user_ids in sorted(sets.items()):
        groups.setdefault(stretches(user_ids), []).append(guest_id)
    return tuple(
        UserVisibility(viewers=tuple(viewers), users=users) for users, viewers in groups.items()
    )


def stretches(user_ids: BitMap) -> tuple[tuple[int, int], ...]:
    """The IDs as stretches, each with its first and its last."""
    firsts, lasts = user_ids - user_ids.shift(1), user_ids - user_ids.shift(-1)
    return tuple(zip(firsts, lasts, strict=True))


def bitmap(users: Iterable[tuple[int, int]]) -> BitMap:
    """The IDs in these stretches."""
    found = BitMap()
    for first, last in users:
        found.add_range(first, last + 1)
    return found


def _subscribed(state: State, change: changes.Subscribed) -> Moved:
    present = state.acquaintances.subscribers(change.channel_id)
    joined = BitMap(change.colors)
    everybody = present | joined
    gained = {
        guest_id: (everybody if guest_id in joined else joined) - state.acquaintances.of(guest_id)
        for guest_id in state.limited_guests & everybody
    }
    return Moved(gained, {})


def _unsubscribed(state: State, change: changes.Unsubscribed) -> Moved:
    present = state.acquaintances.subscribers(change.channel_id)
    left = BitMap(change.user_ids)
    lost = {
        guest_id: (present if guest_id in left else left)
        - state.acquaintances.apart_from(guest_id, {change.channel_id: left})
        for guest_id in state.limited_guests & present
    }
    return Moved({}, lost)


def _message_sent(state: State, change: changes.MessageSent) -> Moved:
    if change.new_conversation is None:
        return _NOTHING
    members = BitMap(change.new_conversation.members)
    gained = {
        guest_id: members - state.acquaintances.of(guest_id)
        for guest_id in state.limited_guests & members
    }
    return Moved(gained, {})


def _realm_changed(state: State, change: changes.RealmChanged) -> Moved:
    if "can_access_all_users_group" not in change.values:
        return _NOTHING
    ahead = state.with_changes(realm=revised(state.realm, change.values))
    return _limited_otherwise(state, ahead, state.maybe_guests)


def _user_changed(state: State, change: changes.UserChanged) -> Moved:
    if change.values.keys().isdisjoint({"role", "bot"}):
        return _NOTHING
    ahead = state.with_changes(users=[revised(state.users[change.user_id], change.values)])
    bots = (state.users[bot_id] for bot_id in state.bots)
    owned = (one.id for one in bots if one.bot and one.bot.owner_id == change.user_id)
    return _limited_otherwise(state, ahead, [change.user_id, *owned])


def _limited_otherwise(state: State, ahead: State, user_ids: Iterable[int]) -> Moved:
    """Of whom these come to know, or do not know any more, by being limited or not any more."""
    before, everybody = state.limited_guests, BitMap(state.users.rows)
    gained, lost = Sets(), Sets()
    for user_id in user_ids:
        is_limited = ahead.is_limited_guest(ahead.users[user_id])
        if is_limited is not (user_id in before):
            found = lost if is_limited else gained
            found[user_id] = everybody - state.acquaintances.of(user_id)
    return Moved(gained, lost)


_FINDERS: Mapping[type[changes.Change], Callable[[State, Any], Moved]] = {
    changes.Subscribed: _subscribed,
    changes.Unsubscribed: _unsubscribed,
    changes.MessageSent: _message_sent,
    changes.RealmChanged: _realm_changed,
    changes.UserChanged: _user_changed,
}
