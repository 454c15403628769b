"""The newest entries in memory, and reading a queue's events from them or, if older, from the
database."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from pyroaring import BitMap

from tertulia.delivery import queue as event_ids
from tertulia.delivery.encoder import CachedEntry, GuardedEncoder, withdrawal_by
from tertulia.delivery.queue import Queue
from tertulia.log.log import Log
from tertulia.model.changes import Entry
from tertulia.model.errors import NoSuchQueue
from tertulia.store import log_entries
from tertulia.store.database import Connection

RECENT: Final = 2048
"""The most entries in memory."""
RECENT_BYTES: Final = 32 * 1024 * 1024
"""The most bytes of these, including encoded events. Beyond it, the oldest are dropped."""
_LOOK_AFTER: Final = 16
"""The number of entries after which their size is computed again, since events are encoded
later."""
PAGE: Final = 500
"""The most entries read from the database together, and the most events in one response."""
PAGE_BYTES: Final = 4 * 1024 * 1024
"""The size of a response in bytes beyond which further events are left for the next poll."""


class _EventPage:
    """Collects events, each with its ID, until they fill a response."""

    def __init__(self) -> None:
        self.events: list[tuple[int, bytes]] = []
        self._size = 0

    def add(self, event_id: int, event: bytes) -> None:
        """Add an event. The first one fits regardless of its size."""
        self.events.append((event_id, event))
        self._size += len(event)

    @property
    def is_full(self) -> bool:
        """Whether further events are left for the next poll."""
        return len(self.events) >= PAGE or self._size > PAGE_BYTES


class RecentEntries:
    """The newest entries on disk, and reading the events after a cursor."""

    def __init__(self, log: Log, encoder: GuardedEncoder) -> None:
        self._log = log
        self._encoder = encoder
        self._entries: deque[CachedEntry] = deque(maxlen=RECENT)
        self._added = 0
        """The bytes added or encoded since the size was last computed."""
        self._about = BitMap()
        """The messages of the entries, and of some that were dropped."""
        self._about_of = 0
        """The number of entries that were added to it."""

    # Entries in memory

    def __iter__(self) -> Iterator[CachedEntry]:
        return iter(self._entries)

    def append(self, entries: Sequence[Entry]) -> list[CachedEntry]:
        """Add committed entries, and apply their withdrawals."""
        added = [CachedEntry(entry) for entry in entries]
        if self._entries and entries[0].seq != self._entries[-1].entry.seq + 1:
            self.clear()
        for cached in added:
            self._withdraw(cached.entry)
            self._entries.append(cached)
            self._add_to_about(cached)
        self._added += sum(cached.size for cached in added)
        if entries[-1].seq % _LOOK_AFTER < len(entries):
            self._make_room()
        self._make_room_if_much()
        return added

    def _add_to_about(self, cached: CachedEntry) -> None:
        self._about |= cached.about
        self._about_of += 1
        if self._about_of > 2 * RECENT:
            self._about = BitMap.union(BitMap(), *(cached.about for cached in self._entries))
            self._about_of = len(self._entries)

    def _make_room_if_much(self) -> None:
        if self._added > RECENT_BYTES // 8:
            self._make_room()

    def _make_room(self) -> None:
        self._added = 0
        size = sum(cached.size for cached in self._entries)
        while size > RECENT_BYTES and len(self._entries) > 1:
            size -= self._entries.popleft().size

    def _withdraw(self, entry: Entry) -> None:
        withdrawal = withdrawal_by(entry)
        # Most deleted messages are older than all entries in memory.
        if withdrawal is None or not withdrawal.concerns(self._about):
            return
        for cached in self._entries:
            revised = withdrawal.revised(cached)
            if revised is not None:
                cached.revise(revised)

    def reloaded(self) -> None:
        """Drop events that may have been encoded from a discarded state."""
        while self._entries and self._entries[-1].entry.seq > self._log.durable:
            self._entries.pop()
        for cached in self._entries:
            cached.revise(cached.entry)

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()
        self._about, self._about_of = BitMap(), 0

    @property
    def _first(self) -> int:
        return self._entries[0].entry.seq if self._entries else self._log.durable + 1

    # Reading after a cursor

    def reach_back_to(self, seq: int) -> bool:
        """Return whether everything after the entry is in memory."""
        return seq >= self._log.durable or seq + 1 >= self._first

    def read(self, queue: Queue, cursor: int) -> list[bytes]:
        """Return up to a page of the queue's events after the cursor, all of which must be in
        memory. Raise NotEncoded."""
        event_page = _EventPage()
        seq = queue.known_through(cursor)
        if seq < self._log.durable:
            seq = self._read_cached(event_page, queue, cursor, seq)
        elif not queue.transients:
            return []
        return self._with_transients(event_page, queue, cursor, seq)

    async def read_log(self, queue: Queue, cursor: int) -> list[bytes]:
        """Return up to a page of the queue's events after the cursor, from memory or the database.
        If the list is empty, nothing was committed in the meantime. Raise NotEncoded, and
        NoSuchQueue if the log after the cursor was pruned."""
        event_page = _EventPage()
        seq = queue.known_through(cursor)
        while seq < self._log.durable and not event_page.is_full:
            first = self._first
            if seq + 1 >= first:
                seq = self._read_cached(event_page, queue, cursor, seq)
                continue
            until = min(self._log.durable, first - 1)
            for entry in await self._log.store.read(_older, queue.record.id, seq, until):
                seq = entry.seq
                self._add_events(event_page, CachedEntry(entry), queue, cursor)
                if event_page.is_full:
                    break
        return self._with_transients(event_page, queue, cursor, seq)

    def _read_cached(self, event_page: _EventPage, queue: Queue, cursor: int, after: int) -> int:
        """Add up to a page of events of the entries after `after`. Return the last entry that was
        read."""
        for index in range(after + 1 - self._first, len(self._entries)):
            cached = self._entries[index]
            after, before = cached.entry.seq, cached.size
            self._add_events(event_page, cached, queue, cursor)
            self._added += cached.size - before
            if event_page.is_full:
                break
        self._make_room_if_much()
        return after

    def _add_events(
        self, event_page: _EventPage, cached: CachedEntry, queue: Queue, cursor: int
    ) -> None:
        audience = self._encoder.audience(cached.entry)
        if not (
            audience is None
            or queue.user_id in audience
            or queue.record.registration.all_public_channels
        ):
            return
        for event in self._encoder.events_of(cached)(queue):
            event_id = event_ids.id_of_event(event)
            if event_id > cursor:
                event_page.add(event_id, event)
                if event_page.is_full:
                    return  # The next poll continues in the middle of the entry.

    def _with_transients(
        self, event_page: _EventPage, queue: Queue, cursor: int, seq: int
    ) -> list[bytes]:
        """Return the collected events up to the entry, merged with the queue's transient ones."""
        is_all, events = not event_page.is_full, event_page.events
        if queue.transients:
            end = queue.numbering.begin_of(self._log.durable + 1) if is_all else events[-1][0]
            events += [transient for transient in queue.transients if cursor < transient[0] < end]
            events.sort(key=lambda item: item[0])
        if is_all:
            queue.seen_through = (events[-1][0] if events else cursor, seq)
        return [event for _, event in events]


def _older(connection: Connection, queue_id: str, after: int, until: int) -> list[Entry]:
    entries = log_entries.entries(connection, after, PAGE, until, 2 * PAGE_BYTES)
    if not entries or entries[0].seq != after + 1:
        raise NoSuchQueue(queue_id)
    return entries
