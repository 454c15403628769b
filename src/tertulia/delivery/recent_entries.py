"""The log's recent end in memory, and reading a queue's events off it.

What is older is read from the database.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from pyroaring import BitMap

from tertulia.delivery import event_ids
from tertulia.delivery.cached_entry import CachedEntry, withdrawal_by
from tertulia.delivery.encoder import GuardedEncoder
from tertulia.delivery.queue import Queue
from tertulia.log.log import Log
from tertulia.model.changes import Entry
from tertulia.model.errors import NoSuchQueue
from tertulia.store import log_entries
from tertulia.store.database import Connection

RECENT: Final = 2048
"""Entries kept in memory with their encoded events."""
RECENT_BYTES: Final = 32 * 1024 * 1024
"""What they and their events may take together. Beyond it the oldest are dropped."""
_LOOK_AFTER: Final = 16
"""Entries after which their size is looked at again, for events are encoded later."""
PAGE: Final = 500
"""Entries read from the database at once, and events in one answer at most."""
PAGE_BYTES: Final = 4 * 1024 * 1024
"""Of the events in one answer, after which the rest is left for the next poll."""


class _Found:
    """Events, each with its ID, until they fill an answer."""

    def __init__(self) -> None:
        self.events: list[tuple[int, bytes]] = []
        self._size = 0

    def add(self, event_id: int, event: bytes) -> None:
        """Add an event. There is room for at least one, whatever its size."""
        self.events.append((event_id, event))
        self._size += len(event)

    @property
    def is_full(self) -> bool:
        """Whether the rest is for the next poll."""
        return len(self.events) >= PAGE or self._size > PAGE_BYTES


class RecentEntries:
    """The newest entries that are on disk, and what follows a cursor."""

    def __init__(self, log: Log, encoder: GuardedEncoder) -> None:
        self._log = log
        self._encoder = encoder
        self._entries: deque[CachedEntry] = deque(maxlen=RECENT)
        self._added = 0
        """Bytes that were added, or encoded by a read, since the size of all was looked at."""
        self._about = BitMap()
        """The messages that the entries are about, or that some of those dropped were."""
        self._about_of = 0
        """How many entries have been added to that."""

    # What is in memory

    def __iter__(self) -> Iterator[CachedEntry]:
        return iter(self._entries)

    def append(self, entries: Sequence[Entry]) -> list[CachedEntry]:
        """Take in entries that were committed, and withdraw what they withdraw."""
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
            self._about = BitMap.union(BitMap(), *(one.about for one in self._entries))
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
        # Most messages that are deleted are older than all entries: then none is looked at.
        if withdrawal is None or not withdrawal.concerns(self._about):
            return
        for cached in self._entries:
            revised = withdrawal.revised(cached)
            if revised is not None:
                cached.revise(revised)

    def reloaded(self) -> None:
        """The state was loaded anew: forget what may have been encoded of one that never was."""
        while self._entries and self._entries[-1].entry.seq > self._log.durable:
            self._entries.pop()
        for cached in self._entries:
            cached.revise(cached.entry)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._about, self._about_of = BitMap(), 0

    @property
    def _first(self) -> int:
        return self._entries[0].entry.seq if self._entries else self._log.durable + 1

    # What follows a cursor

    def reach_back_to(self, seq: int) -> bool:
        """Whether all that follows the entry is in memory."""
        return seq >= self._log.durable or seq + 1 >= self._first

    def read(self, queue: Queue, cursor: int) -> list[bytes]:
        """The queue's events after the cursor, a page at most, where all of them are in memory.
        Raises NotEncoded."""
        found = _Found()
        seq = queue.known_through(cursor)
        if seq < self._log.durable:
            seq = self._read_cached(found, queue, cursor, seq)
        elif not queue.transients:
            return []
        return self._with_transients(found, queue, cursor, seq)

    async def read_log(self, queue: Queue, cursor: int) -> list[bytes]:
        """The same, wherever they are. When it returns none, nothing was committed meanwhile.

        Raises NotEncoded, and NoSuchQueue where the log behind the cursor has been pruned.
        """
        found = _Found()
        seq = queue.known_through(cursor)
        while seq < self._log.durable and not found.is_full:
            first = self._first
            if seq + 1 >= first:
                seq = self._read_cached(found, queue, cursor, seq)
                continue
            until = min(self._log.durable, first - 1)
            for entry in await self._log.store.read(_older, queue.record.id, seq, until):
                seq = entry.seq
                self._add_events(found, CachedEntry(entry), queue, cursor)
                if found.is_full:
                    break
        return self._with_transients(found, queue, cursor, seq)

    def _read_cached(self, found: _Found, queue: Queue, cursor: int, after: int) -> int:
        """Add the events of the entries after that one, up to a page. The last entry that was
        looked at."""
        for index in range(after + 1 - self._first, len(self._entries)):
            cached = self._entries[index]
            after, before = cached.entry.seq, cached.size
            self._add_events(found, cached, queue, cursor)
            self._added += cached.size - before
            if found.is_full:
                break
        self._make_room_if_much()
        return after

    def _add_events(self, found: _Found, cached: CachedEntry, queue: Queue, cursor: int) -> None:
        audience = self._encoder.audience(cached.entry)
        if not (
            audience is None
            or queue.user_id in audience
            or queue.record.registration.all_public_channels
        ):
            return
        for event in self._encoder.events_of(cached)(queue):
            event_id = event_ids.of_encoded(event)
            if event_id > cursor:
                found.add(event_id, event)
                if found.is_full:
                    return  # The next poll goes on in the middle of the entry.

    def _with_transients(self, found: _Found, queue: Queue, cursor: int, seq: int) -> list[bytes]:
        """What was found up to the entry, with the queue's transient events at their places."""
        is_all, events = not found.is_full, found.events
        if queue.transients:
            end = queue.numbering.begin_of(self._log.durable + 1) if is_all else events[-1][0]
            events += [one for one in queue.transients if cursor < one[0] < end]
            events.sort(key=lambda one: one[0])
        if is_all:
            queue.seen_through = (events[-1][0] if events else cursor, seq)
        return [event for _, event in events]


def _older(connection: Connection, queue_id: str, after: int, until: int) -> list[Entry]:
    found = log_entries.entries(connection, after, PAGE, until, 2 * PAGE_BYTES)
    if not found or found[0].seq != after + 1:
        raise NoSuchQueue(queue_id)
    return found
