"""Tables of records, and indexes that follow them."""

import copy
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MutableMapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from msgspec import Struct
from pyroaring import BitMap

from tertulia.model.nouns import Key, Noun

R = TypeVar("R", bound=Struct)

_versions = count(1)


def next_version() -> int:
    """Return a number that is unique in this process."""
    return next(_versions)


class StaleIndexError(RuntimeError):
    """The index can't be copied for a copy of the state."""


class Table(Generic[R]):
    """All records of one noun. Records are immutable; a change replaces them. Subclasses declare
    indexes as attributes (`tertulia.state.tables`)."""

    original: "Table[R] | None" = None
    """The table that this is a copy of (`with_records`)."""

    def __init__(self, noun: Noun) -> None:
        self.noun = noun
        self.key_of: Callable[[Any], Key] = attrgetter(*noun.key)
        """Returns a record's key, faster than the noun's method."""
        self.rows: MutableMapping[Key, R] = self._rows_with({})
        self.dirty: set[Key] = set()
        self.changed: set[str] = set()
        """A set shared by all tables of a state, to which the table adds its name when it
        changes."""
        self.highest = 0
        """The largest ID ever given, if keys are IDs."""
        self.version = next_version()
        """Changes whenever the table changes."""
        self._watchers: list[Callable[[R | None, R | None], None]] = []
        self.replaced: list[tuple[R | None, R]] = []
        """In a copy, the differences from the original, as pairs of old and new record."""
        self._copied_at = 0

    def _rows_with(self, new: Mapping[Key, R]) -> MutableMapping[Key, R]:
        """Return a copy of the original's rows, if any, with new ones."""
        return {**new} if self.original is None else {**self.original.rows, **new}

    def watch(self, watcher: Callable[[R | None, R | None], None]) -> None:
        """Call `watcher(before, after)` for each change: `before` is None for a new record, `after`
        for a removed one. Indexes use `Index.follow`."""
        self._watchers.append(watcher)

    def put(self, record: R) -> None:
        """Add the record, or replace the one with its key."""
        self._require_original()
        key = self.key_of(record)
        before = self.rows.get(key)
        self.rows[key] = record
        self.dirty.add(key)
        self.changed.add(self.noun.table)
        self.version = next_version()
        if isinstance(key, int) and key > self.highest:
            self.highest = key
        for watcher in self._watchers:
            watcher(before, record)

    def remove(self, key: Key) -> None:
        """Remove the record. Raise KeyError if it doesn't exist."""
        self._require_original()
        before = self.rows.pop(key)
        self.dirty.add(key)
        self.changed.add(self.noun.table)
        self.version = next_version()
        for watcher in self._watchers:
            watcher(before, None)

    def _require_original(self) -> None:
        if self.original is not None:
            raise TypeError(f"{self.noun.table}: a copy with changes is for reading")

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
        """Return an ID that no record has, or ever had (if the noun is removable)."""
        return self.highest + 1

    def take_dirty(self) -> dict[Key, R | None]:
        """Return the records that changed since the last call, by key; None for removed ones."""
        changed: dict[Key, Any] = {key: self.rows.get(key) for key in self.dirty}
        self.dirty.clear()
        return changed

    # Copies with changes

    def with_records(self, records: Iterable[R]) -> Self:
        """Return a copy with these records added or replaced, to read while the original doesn't
        change. Each index is copied on first use; one that can't be copied raises
        StaleIndexError."""
        copied = object.__new__(type(self))
        Table.__init__(copied, self.noun)
        copied.original, copied._copied_at = self, self.version
        new = {self.key_of(record): record for record in records}
        copied.replaced = [(self.rows.get(key), record) for key, record in new.items()]
        copied.rows = copied._rows_with(new)
        copied.highest = self.highest
        return copied

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python calls this only for attributes that the copy doesn't have yet.
            original = self.original
            if original is None or name.startswith("__"):
                raise AttributeError(f"{type(self).__name__} has no attribute {name}")
            result = getattr(original, name)
            if not isinstance(result, Index):
                raise AttributeError(f"{name} isn't available in a copy of {self.noun.table}")
            if original.version != self._copied_at:
                raise StaleIndexError(f"{self.noun.table} changed since this copy was made")
            made = result.with_tables(lambda table: self if table is original else table)
            setattr(self, name, made)
            return made


class _Groups(dict[Any, MutableMapping[Any, R]]):
    def __missing__(self, value: Any) -> Mapping[Any, R]:
        return _NOTHING


class PairRows(MutableMapping[tuple[Any, Any], R]):
    """Records whose keys have two fields, by the first and then by the second. A dictionary with
    tuples as keys would need 100 bytes more for each record."""

    def __init__(self) -> None:
        self.groups: _Groups[R] = _Groups()
        """Groups without records are empty. Don't change them."""

    def with_records(self, new: Mapping[tuple[Any, Any], R]) -> Self:
        """Return a copy with new records, which shares the groups without any."""
        result = type(self)()
        result.groups.update(self.groups)
        for first in {key[0] for key in new} & self.groups.keys():
            result.groups[first] = copy.copy(self.groups[first])
        result.update(new)
        return result

    def _new_group(self, first: Any) -> MutableMapping[Any, R]:
        """Return an empty group for that first field."""
        return {}

    def __getitem__(self, key: tuple[Any, Any]) -> R:
        first, second = key
        return self.groups[first][second]

    def get(self, key: tuple[Any, Any], default: Any = None) -> Any:
        first, second = key
        return self.groups[first].get(second, default)

    def __contains__(self, key: Any) -> bool:
        first, second = key
        return second in self.groups[first]

    def __setitem__(self, key: tuple[Any, Any], record: R) -> None:
        first, second = key
        if first not in self.groups:
            self.groups[first] = self._new_group(first)
        self.groups[first][second] = record

    def __delitem__(self, key: tuple[Any, Any]) -> None:
        first, second = key
        group = self.groups[first]
        del group[second]
        if not group:
            del self.groups[first]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return ((first, second) for first, group in self.groups.items() for second in group)

    def __len__(self) -> int:
        return sum(map(len, self.groups.values()))


class PairTable(Table[R]):
    """A table whose keys have two fields. Its rows are also the index by the first."""

    rows: PairRows[R]
    rows_type: type[PairRows[R]] = PairRows

    def _rows_with(self, new: Mapping[Key, R]) -> PairRows[R]:
        original = self.original
        rows = original.rows if isinstance(original, PairTable) else self.rows_type()
        return rows.with_records(new)

    def __iter__(self) -> Iterator[R]:
        return (record for group in self.rows.groups.values() for record in group.values())


class Index:
    """Data derived from tables, updated with each change of their records."""

    tables: tuple[Table[Any], ...] = ()
    """The tables that it follows."""

    def follow(self, table: Table[R], update: Callable[[R | None, R | None], None]) -> None:
        """Call `update` for each change of the table's records; see `Table.watch`."""
        self.tables = (*self.tables, table)
        table.watch(update)

    def with_tables(self, instead: Callable[[Any], Any]) -> "Index":
        """Return a copy that uses the tables that `instead` returns for the original ones."""
        raise StaleIndexError(f"{type(self).__name__} can't follow a copy with changes")

    def _copy_over(self, instead: Callable[[Any], Any]) -> Self:
        """Return a shallow copy that follows no tables. Copies don't change, and originals must not
        keep them alive."""
        made = copy.copy(self)
        made.tables = tuple(map(instead, self.tables))
        return made


class TableIndex(Index, ABC, Generic[R]):
    def __init__(self, table: Table[R]) -> None:
        self.table = table
        self.follow(table, self._update)

    @abstractmethod
    def _update(self, before: R | None, after: R | None) -> None:
        """Update the index for a record that was added, replaced (both are given), or removed
        (`after` is None)."""

    @abstractmethod
    def _detach(self, records: Collection[R]) -> None:
        """Copy the parts that are shared with the original index and that changes of these records
        modify."""

    def with_tables(self, instead: Callable[[Any], Any]) -> Self:
        made = self._copy_over(instead)
        made.table = instead(self.table)
        replaced = made.table.replaced
        made._detach([record for pair in replaced for record in pair if record is not None])
        for before, after in replaced:
            made._update(before, after)
        return made


class Unique(TableIndex[R]):
    """The key of the record that has each value of `of`. Records with None are left out."""

    def __init__(self, table: Table[R], of: Callable[[R], Any]) -> None:
        self._of = of
        self._keys: dict[Any, Key] = {}
        super().__init__(table)

    def _update(self, before: R | None, after: R | None) -> None:
        if before is not None:
            self._keys.pop(self._of(before), None)
        if after is not None and (value := self._of(after)) is not None:
            self._keys[value] = self.table.key_of(after)

    def _detach(self, records: Collection[R]) -> None:
        self._keys = {**self._keys}

    def __getitem__(self, value: Any) -> Key:
        return self._keys[value]

    def get(self, value: Any) -> Key | None:
        return self._keys.get(value)

    def __contains__(self, value: Any) -> bool:
        return value in self._keys


class Subset(TableIndex[R]):
    """The IDs of records that pass a test."""

    def __init__(self, table: Table[R], test: Callable[[R], bool]) -> None:
        self._test = test
        self.ids = BitMap()
        """Don't change it."""
        super().__init__(table)

    def _update(self, before: R | None, after: R | None) -> None:
        if after is not None and self._test(after):
            self.ids.add(self.table.key_of(after))
        elif before is not None:
            self.ids.discard(self.table.key_of(before))

    def _detach(self, records: Collection[R]) -> None:
        self.ids = BitMap(self.ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids)

    def __contains__(self, key: int) -> bool:
        return key in self.ids


class Grouped(TableIndex[R]):
    """Records by a value, such as their owner. Records with None are left out.

    A group of one is the record itself: a dictionary takes 300 bytes, and there are indexes whose
    groups are nearly all of one record.
    """

    def __init__(self, table: Table[R], of: Callable[[R], Any]) -> None:
        self._of = of
        self._groups: dict[Any, R | dict[Key, R]] = {}
        super().__init__(table)

    def _update(self, before: R | None, after: R | None) -> None:
        key_of = self.table.key_of
        if before is not None and (value := self._of(before)) is not None:
            group = self._groups[value]
            if isinstance(group, dict):
                del group[key_of(before)]
            if not isinstance(group, dict) or not group:
                del self._groups[value]
        if after is not None and (value := self._of(after)) is not None:
            group = self._groups.setdefault(value, after)
            if isinstance(group, dict):
                group[key_of(after)] = after
            elif group is not after:
                self._groups[value] = {key_of(group): group, key_of(after): after}

    def _detach(self, records: Collection[R]) -> None:
        changed = {self._of(record) for record in records} & self._groups.keys()
        copied = {
            value: {**group} for value in changed if isinstance(group := self._groups[value], dict)
        }
        self._groups = {**self._groups, **copied}

    def _group(self, value: Any) -> Mapping[Key, R]:
        group = self._groups.get(value)
        if group is None:
            return _NOTHING
        return group if isinstance(group, dict) else {self.table.key_of(group): group}

    def __getitem__(self, value: Any) -> Sequence[R]:
        """Return one group's records in the order of their keys, or an empty sequence."""
        group = self._group(value)
        return [group[key] for key in sorted(group)] if group else ()

    def keys(self, value: Any) -> KeysView[Key]:
        """Return the keys of one group's records."""
        return self._group(value).keys()

    def count(self, value: Any) -> int:
        """Return the number of records in the group."""
        return len(self._group(value))

    def __iter__(self) -> Iterator[Any]:
        """Yield the values that have records."""
        return iter(self._groups)


class Nested(TableIndex[R]):
    """Records by a field of their key, then by another one: by user, then by channel."""

    def __init__(self, table: Table[R], outer: str, inner: str) -> None:
        self._outer: Callable[[R], Any] = attrgetter(outer)
        self._inner: Callable[[R], Any] = attrgetter(inner)
        self._groups: dict[Any, dict[Any, R]] = {}
        super().__init__(table)

    def _update(self, before: R | None, after: R | None) -> None:
        # The fields are part of the key, so a replaced record has the same ones.
        if after is not None:
            self._groups.setdefault(self._outer(after), {})[self._inner(after)] = after
        elif before is not None:
            outer = self._outer(before)
            del self._groups[outer][self._inner(before)]
            if not self._groups[outer]:
                del self._groups[outer]

    def _detach(self, records: Collection[R]) -> None:
        changed = {self._outer(record) for record in records} & self._groups.keys()
        self._groups = {**self._groups, **{value: {**self._groups[value]} for value in changed}}

    def __getitem__(self, value: Any) -> Mapping[Any, R]:
        """Return the records with that outer value, by the inner value."""
        return self._groups.get(value, _NOTHING)


_NOTHING: Mapping[Any, Any] = {}
_NOBODY: AbstractSet[Any] = frozenset()


class Inverted(TableIndex[R]):
    """The keys of records by each of several values, such as their members."""

    def __init__(self, table: Table[R], of: Callable[[R], Iterable[Any]]) -> None:
        self._of = of
        self._keys: dict[Any, set[Key]] = {}
        super().__init__(table)

    def _update(self, before: R | None, after: R | None) -> None:
        was = set() if before is None else set(self._of(before))
        now = set() if after is None else set(self._of(after))
        for value in was - now:
            self._keys[value].discard(self.table.key_of(before))
            if not self._keys[value]:
                del self._keys[value]
        for value in now - was:
            self._keys.setdefault(value, set()).add(self.table.key_of(after))

    def _detach(self, records: Collection[R]) -> None:
        changed = {value for record in records for value in self._of(record)} & self._keys.keys()
        self._keys = {**self._keys, **{value: {*self._keys[value]} for value in changed}}

    def __getitem__(self, value: Any) -> AbstractSet[Key]:
        """Return the keys of the records with that value. Don't change it."""
        return self._keys.get(value, _NOBODY)


class Ordered(TableIndex[R]):
    """Records in ascending order of a value, such as a time. Records with None are left out."""

    def __init__(self, table: Table[R], of: Callable[[R], float | None]) -> None:
        self._of = of
        self._places: list[tuple[float, Key]] = []
        super().__init__(table)

    def _update(self, before: R | None, after: R | None) -> None:
        was, now = self._place(before), self._place(after)
        if was == now:
            return
        if was is not None:
            del self._places[bisect_left(self._places, was)]
        if now is not None:
            insort(self._places, now)

    def _detach(self, records: Collection[R]) -> None:
        self._places = [*self._places]

    def _place(self, record: R | None) -> tuple[float, Key] | None:
        value = None if record is None else self._of(record)
        return None if record is None or value is None else (value, self.table.key_of(record))

    def __iter__(self) -> Iterator[R]:
        """Yield the records in order. Don't change the table in the meantime."""
        return (self.table[key] for _, key in self._places)

    @property
    def first(self) -> R | None:
        """The first record, if any; of equal ones, the one with the lowest key."""
        return self.table[self._places[0][1]] if self._places else None

    def between(self, after: float | None, until: float | None) -> Sequence[Key]:
        """Return the keys, ascending, of the records with after < value <= until (None: no
        limit)."""
        begin = 0 if after is None else self._end_of(after)
        end = len(self._places) if until is None else self._end_of(until)
        return sorted(key for _, key in self._places[begin:end])

    def next(self, after: float) -> float | None:
        """Return the lowest value above this one."""
        index = self._end_of(after)
        return self._places[index][0] if index < len(self._places) else None

    def _end_of(self, value: float) -> int:
        return bisect_right(self._places, value, key=lambda place: place[0])


class FieldVersion(TableIndex[R]):
    """A number that changes when a value of any existing record changes, but not when records are
    added or removed."""

    def __init__(self, table: Table[R], of: Callable[[R], Any]) -> None:
        self._of = of
        self.number = next_version()
        super().__init__(table)

    def _update(self, before: R | None, after: R | None) -> None:
        if before is not None and after is not None and self._of(before) != self._of(after):
            self.number = next_version()

    def _detach(self, records: Collection[R]) -> None:
        pass
