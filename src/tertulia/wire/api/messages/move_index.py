"""An index of the messages that a move affects, by user."""

from collections import defaultdict
from collections.abc import Hashable

from pyroaring import BitMap

from tertulia.domain import channel_access
from tertulia.model.changes import MessagesMoved
from tertulia.model.messages import Flag
from tertulia.model.ranges import (
    IdRanges,
    Places,
    Spans,
    ids_at,
    ids_of,
    places,
    ranges_of,
)
from tertulia.model.users import User
from tertulia.state.state import State


class MoveIndex:
    """A move, indexed by user."""

    def __init__(self, change: MessagesMoved) -> None:
        self.change = change
        self.ids = change.ids
        self.lost_of = {user_id: some for some, users in change.lost for user_id in users}
        self.read_by = frozenset(change.read_by)
        self._lost_and_moved: dict[Hashable, tuple[IdRanges, IdRanges]] = {}
        self.new_of: dict[int, IdRanges] = {}
        self.mentioned_of: dict[int, IdRanges] = {}
        self.flags_of: dict[int, list[tuple[int, Flag]]] = defaultdict(list)
        self.people = BitMap()
        """The senders of the arrivals, and the people who reacted to them."""
        self._moved_on: dict[int, BitMap] = {}
        """Messages that have been moved on to another channel, by that channel."""
        self._gone = BitMap()
        """Messages that have been deleted since the move."""
        for channel_id, some in change.moved_on:
            if channel_id is None:
                self._gone = BitMap.deserialize(some)
            else:
                self._moved_on[channel_id] = BitMap.deserialize(some)
        self._hidden: dict[tuple[Places, ...], BitMap] = {}
        self._arrived = BitMap()
        self._arrivals: dict[Hashable, BitMap] = {}
        self._listed: dict[IdRanges, list[int]] = {}
        if change.arrivals:
            self._index_arrivals(change)

    def _index_arrivals(self, change: MessagesMoved) -> None:
        self.new_of = {user_id: some for some, users in change.new_to for user_id in users}
        self.mentioned_of = {user_id: some for some, users in change.mentioned for user_id in users}
        for arrival in change.arrivals:
            if arrival.message is None:
                continue
            self._arrived.add(arrival.message_id)
            self.people.add(arrival.message.sender_id)
            self.people.update(reaction.user_id for reaction in arrival.reactions)
            for user_id, flag in arrival.flags.items():
                self.flags_of[user_id].append((arrival.message_id, flag))

    def since(self, state: State, user: User) -> tuple[Places, ...]:
        """Return the messages that the user can read among those that have been moved on, by
        channel."""
        return tuple(
            places(ids, channel_access.readable_spans(state, user, state.channels[channel_id]))
            for channel_id, ids in self._moved_on.items()
        )

    def hidden(self, since: tuple[Places, ...]) -> BitMap:
        """Return the messages that have been deleted, or moved on to a place where the user can't
        read them."""
        hidden = self._hidden.get(since)
        if hidden is None:
            hidden = self._gone
            for ids, readable in zip(self._moved_on.values(), since, strict=True):
                hidden = hidden | (ids - ids_at(ids, ids, readable))
            self._hidden[since] = hidden
        return hidden

    def listed(self, ranges: IdRanges) -> list[int]:
        """Return the messages as a list that callers mustn't change. It's cached, since making it
        for a whole topic takes longer than encoding it."""
        if (ids := self._listed.get(ranges)) is None:
            # Several times as fast as `list`.
            ids = self._listed[ranges] = ids_of(ranges, self.ids).to_array().tolist()
        return ids

    def arrivals(self, new: IdRanges | None, before: Spans, after: Spans) -> BitMap:
        """Return the arrivals for a user. `new` are the messages that were new to them at the time
        (None: all that they now can't read in the old channel). `before` and `after` are those that
        they can now read in the old and the new channel."""
        ids = self.ids
        key = (new, () if new is not None else places(ids, before), places(ids, after))
        arrivals = self._arrivals.get(key)
        if arrivals is None:
            arrivals = ids_at(ids, ids, key[2]) & self._arrived
            if new is not None:
                arrivals &= ids_of(new, ids)
            else:
                arrivals -= ids_at(ids, ids, key[1])
            self._arrivals[key] = arrivals
        return arrivals

    def lost_and_moved(
        self,
        lost: IdRanges,
        new: IdRanges,
        before: Spans | None,
        after: Spans,
        stayed: Spans,
        since: tuple[Places, ...],
        *,
        is_notified_later: bool,
    ) -> tuple[IdRanges, IdRanges]:
        """Return the messages that a user can no longer read, and those that they see moved.

        - `lost` and `new` are the messages that the user lost and gained access to at the time.
        - `before` are the messages that they can read in the old channel, and could at the time
          (None: the channel is the same). `after` are those that they can read in the new channel.
        - `stayed` are the messages in the new channel that they could read since before the move.
        - `since` are the messages that they can read among those that moved on, as in `hidden`.

        New messages aren't shown as moved. Messages that became hidden since are reported as lost
        here, unless `is_notified_later` by the entries about the new channel.
        """
        ids = self.ids
        places_before = None if before is None else places(ids, before)
        places_after, places_stayed = places(ids, after), places(ids, stayed)
        is_notified = is_notified_later or before is None
        key = (lost, new, places_before, places_after, places_stayed, since, is_notified)
        ranges = self._lost_and_moved.get(key)
        if ranges is None:
            gone = ids_of(lost, ids)
            moved = ids_at(ids, ids, places_after) - gone
            if places_before is not None:
                known = ids_at(ids, ids, places_before)
                gone = (gone | known) - moved
                # They could read these in the old channel at the time, because they weren't new.
                known = known | ids_at(ids, ids, places_stayed)
                moved = (moved & known) - ids_of(new, ids)
            hidden = self.hidden(since)
            if not is_notified:
                gone = gone | (moved & hidden)
            ranges = ranges_of(gone, ids), ranges_of(moved - hidden, ids)
            self._lost_and_moved[key] = ranges
        return ranges
