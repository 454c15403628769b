"""Tables of records in memory that track changes, and the base of their indexes."""

import copy
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from msgspec import Struct

from tertulia.model.nouns import Key, Noun

R = TypeVar("R", bound=Struct)

_versions = count(1)


def next_version() -> int:
    """Return a number that is unique in this process."""
    return next(_versions)


class StaleIndexError(RuntimeError):
    """The index can't follow a copy with changes."""


class Table(Generic[R]):
    """All records of one noun. Records are immutable; a change puts a new one in place.

    Subclasses declare indexes as attributes (`tertulia.state.indexes`).
    """

    original: "Table[R] | None" = None
    """The table that this is a copy of (`with_records`)."""

    def __init__(self, noun: Noun) -> None:
        self.noun = noun
        self.rows: dict[Key, R] = {}
        self.dirty: set[Key] = set()
        self.changed: set[str] = set()
        """Gets the table's name when it changes; shared by the tables of a state."""
        self.highest = 0
        """The largest ID ever given, if keys are IDs."""
        self.version = next_version()
        """Changes with each change of the table."""
        self._watchers: list[Callable[[R | None, R | None], None]] = []
        self.replaced: list[tuple[R | None, R]] = []
        """Of a copy: what differs from the original, as pairs of old and new record."""
        self._copied_at = 0

    def watch(self, watcher: Callable[[R | None, R | None], None]) -> None:
        """Call `watcher(before, after)` for each change: `before` is None for a new record, `after`
        for a removed one. Indexes use `Index.follow`."""
        self._watchers.append(watcher)

    def put(self, record: R) -> None:
        """Add the record, or replace the one with its key."""
        self._require_original()
        key = self.noun.key_of(record)
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
        change.

        Each index is copied when it is first used; one that can't be raises StaleIndexError.
        """
        copied = object.__new__(type(self))
        Table.__init__(copied, self.noun)
        copied.original, copied._copied_at = self, self.version
        new = {self.noun.key_of(record): record for record in records}
        copied.replaced = [(self.rows.get(key), record) for key, record in new.items()]
        copied.rows = {**self.rows, **new}
        copied.highest = self.highest
        return copied

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Called only for what the copy doesn't have yet.
            original = self.original
            if original is None or name.startswith("__"):
                raise AttributeError(f"{type(self).__name__} has no attribute {name}")
            found = getattr(original, name)
            if not isinstance(found, Index):
                raise AttributeError(f"{name} isn't available in a copy of {self.noun.table}")
            if original.version != self._copied_at:
                raise StaleIndexError(f"{self.noun.table} changed since this copy was made")
            made = found.with_tables(lambda table: self if table is original else table)
            setattr(self, name, made)
            return made


class Index:
    """Derived data that follows each change of tables' records."""

    tables: tuple[Table[Any], ...] = ()
    """The tables that it follows."""

    def follow(self, table: Table[R], update: Callable[[R | None, R | None], None]) -> None:
        """Call `update` for each change of the table's records; see `Table.watch`."""
        self.tables = (*self.tables, table)
        table.watch(update)

    def with_tables(self, instead: Callable[[Any], Any]) -> "Index":
        """Return a copy for copied tables: `instead` returns the copy of a table."""
        raise StaleIndexError(f"{type(self).__name__} can't follow a copy with changes")

    def _copy_over(self, instead: Callable[[Any], Any]) -> Self:
        """Return a shallow copy that follows no tables: copies don't change, and originals must not
        keep it alive."""
        made = copy.copy(self)
        made.tables = tuple(map(instead, self.tables))
        return made
