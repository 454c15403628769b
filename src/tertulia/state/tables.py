"""Records in memory, by key, with a note of what changed since it was last written down."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Generic, TypeVar

from msgspec import Struct

from tertulia.model.nouns import Key, Noun

R = TypeVar("R", bound=Struct)

_versions = count(1)


def next_version() -> int:
    """A number that nothing had before, in no state of this process."""
    return next(_versions)


class Table(Generic[R]):
    """All records of one noun. Records are immutable; a change puts a new one in place.

    `watch` registers an index: it is called as `(before, after)` for each put, `before` being
    None for a new record. Records are never removed by anything but `remove`.
    """

    def __init__(self, noun: Noun) -> None:
        self.noun = noun
        self.rows: dict[Key, R] = {}
        self.dirty: set[Key] = set()
        self.highest = 0
        """The largest ID that was ever given, where the key is an ID."""
        self.version = next_version()
        """Another one after each change."""
        self._watchers: list[Callable[[R | None, R | None], None]] = []

    def watch(self, watcher: Callable[[R | None, R | None], None]) -> None:
        self._watchers.append(watcher)

    def put(self, record: R) -> None:
        """Add the record, or replace the one with its key."""
        key = self.noun.key_of(record)
        before = self.rows.get(key)
        self.rows[key] = record
        self.dirty.add(key)
        self.version = next_version()
        if isinstance(key, int) and key > self.highest:
            self.highest = key
        for watcher in self._watchers:
            watcher(before, record)

    def remove(self, key: Key) -> None:
        """Take the record away. A missing one is a KeyError."""
        before = self.rows.pop(key)
        self.dirty.add(key)
        self.version = next_version()
        for watcher in self._watchers:
            watcher(before, None)

    def __getitem__(self, key: Key) -> R:
        return self.rows[key]

    def get(self, key: Key) -> R | None:
        return self.rows.get(key)

    def __contains__(self, key: Key) -> bool:
        return key in self.rows

    def __iter__(self) -> Iterator[R]:
        return iter(self.rows.values())

    def __len__(self) -> int:
        return len(self.rows)

    def next_id(self) -> int:
        """An ID that no record has, and none ever had (if the noun says that it is removable)."""
        return self.highest + 1

    def take_dirty(self) -> dict[Key, R | None]:
        """What changed since this was last asked: the record by key, None where it is gone."""
        changed: dict[Key, Any] = {key: self.rows.get(key) for key in self.dirty}
        self.dirty.clear()
        return changed


class Grouped(Generic[R]):
    """An index: the records of a table by what `of` says of them, for example their owner."""

    def __init__(self, table: Table[R], of: Callable[[R], Any]) -> None:
        self._table = table
        self._of = of
        self._groups: dict[Any, dict[Key, R]] = {}
        table.watch(self._index)

    def _index(self, before: R | None, after: R | None) -> None:
        if before is not None:
            group = self._groups[self._of(before)]
            del group[self._table.noun.key_of(before)]
            if not group:
                del self._groups[self._of(before)]
        if after is not None:
            group = self._groups.setdefault(self._of(after), {})
            group[self._table.noun.key_of(after)] = after

    def __getitem__(self, value: Any) -> Sequence[R]:
        """The records of one group, in the order of their keys; empty where there are none."""
        group = self._groups.get(value)
        return [group[key] for key in sorted(group)] if group else ()

    def count(self, value: Any) -> int:
        """How many records the group has."""
        return len(self._groups.get(value, ()))


class Ordered(Generic[R]):
    """An index: the records of a table in ascending order of what `of` says of them, a time for
    example; those of which it says None are left out."""

    def __init__(self, table: Table[R], of: Callable[[R], float | None]) -> None:
        self._table = table
        self._of = of
        self._places: list[tuple[float, Key]] = []
        table.watch(self._index)

    def _index(self, before: R | None, after: R | None) -> None:
        was, now = self._place(before), self._place(after)
        if was == now:
            return
        if was is not None:
            del self._places[bisect_left(self._places, was)]
        if now is not None:
            insort(self._places, now)

    def _place(self, record: R | None) -> tuple[float, Key] | None:
        value = None if record is None else self._of(record)
        return None if record is None or value is None else (value, self._table.noun.key_of(record))

    def __iter__(self) -> Iterator[R]:
        """The records in order. They must not change meanwhile."""
        return (self._table[key] for _, key in self._places)

    @property
    def first(self) -> R | None:
        """The record that comes first, if there is any; of equal ones, that of the lowest key."""
        return self._table[self._places[0][1]] if self._places else None


class Shards(Generic[R]):
    """An index: the IDs of a table's records by stretches of IDs, and when something of each
    stretch was last changed, be it in this table or in another one that says more of its records.

    So what is made of a stretch is made once, and again when it is another.
    """

    SIZE = 128
    """IDs of a stretch. A power of two."""

    def __init__(self, table: Table[R]) -> None:
        self.table = table
        self._ids: dict[int, list[int]] = {}
        self._versions: dict[int, int] = {}
        table.watch(self._index)

    def also(self, table: Table[Any], of: Callable[[Any], int]) -> None:
        """Count a change of the other table's records as one of the record with the ID that `of`
        says."""

        def index(before: Any, after: Any) -> None:
            self.touch(of(before if after is None else after))

        table.watch(index)

    def _index(self, before: R | None, after: R | None) -> None:
        key: Any = self.table.noun.key_of(after or before)
        self.touch(key)
        if before is None:
            insort(self._ids.setdefault(key // self.SIZE, []), key)
        elif after is None:
            self._ids[key // self.SIZE].remove(key)

    def touch(self, key: int) -> None:
        """Something of the record with that ID is not as it was."""
        self._versions[key // self.SIZE] = next_version()

    def __iter__(self) -> Iterator[tuple[int, Sequence[int], int]]:
        """The first ID of each stretch that has records, its IDs, and its version; ascending."""
        for number in sorted(self._ids):
            if self._ids[number]:
                yield number * self.SIZE, self._ids[number], self._versions[number]
