"""Records in memory, by key, with a note of those that are yet to be written to the database; and
what every index of them has in common."""

import copy
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from msgspec import Struct

from tertulia.model.nouns import Key, Noun

R = TypeVar("R", bound=Struct)

_versions = count(1)


def next_version() -> int:
    """A number that nothing had before, in no state of this process."""
    return next(_versions)


class StaleIndexError(RuntimeError):
    """An index was asked for in a copy with changes that it does not follow."""


class Table(Generic[R]):
    """All records of one noun. Records are immutable; a change puts a new one in place.

    A subclass declares the noun's indexes as attributes (`tertulia.state.indexes`).
    """

    original: "Table[R] | None" = None
    """What this is a copy of (`with_records`)."""

    def __init__(self, noun: Noun) -> None:
        self.noun = noun
        self.rows: dict[Key, R] = {}
        self.dirty: set[Key] = set()
        self.changed: set[str] = set()
        """Where the table's name is put when it changes: tables of one state share it."""
        self.highest = 0
        """The largest ID that was ever given, where the key is an ID."""
        self.version = next_version()
        """Another one after each change."""
        self._watchers: list[Callable[[R | None, R | None], None]] = []
        self.replaced: list[tuple[R | None, R]] = []
        """What a copy has instead of what is in the original: pairs of before and after."""
        self._copied_at = 0

    def watch(self, watcher: Callable[[R | None, R | None], None]) -> None:
        """Call it as `(before, after)` from now on: `before` is None for a new record, `after` for
        one that is removed. Indexes use `Index.follow`."""
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
        """Take the record away. A missing one is a KeyError."""
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
        """An ID that no record has, and none ever had (if the noun says that it is removable)."""
        return self.highest + 1

    def take_dirty(self) -> dict[Key, R | None]:
        """What changed since this was last asked: the record by key, None where it is gone."""
        changed: dict[Key, Any] = {key: self.rows.get(key) for key in self.dirty}
        self.dirty.clear()
        return changed

    # Copies with changes

    def with_records(self, records: Iterable[R]) -> Self:
        """A copy in which these records are added or replaced, for reading while the original is
        as it is now.

        Each index of the copy is made when it is first asked for, from the original's; one that
        cannot follow raises StaleIndexError.
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
            # Only what a copy does not have yet comes here.
            original = self.original
            if original is None or name.startswith("__"):
                raise AttributeError(f"{type(self).__name__} has no attribute {name}")
            found = getattr(original, name)
            if not isinstance(found, Index):
                raise AttributeError(f"{name} is not there in a copy of {self.noun.table}")
            if original.version != self._copied_at:
                raise StaleIndexError(f"{self.noun.table} changed since this copy was made")
            made = found.with_tables(lambda table: self if table is original else table)
            setattr(self, name, made)
            return made


class Index:
    """What is kept in step with tables: it follows each change of their records."""

    tables: tuple[Table[Any], ...] = ()
    """Those that it follows."""

    def follow(self, table: Table[R], update: Callable[[R | None, R | None], None]) -> None:
        """Call `update` for each change of the table's records, see `Table.watch`."""
        self.tables = (*self.tables, table)
        table.watch(update)

    def with_tables(self, instead: Callable[[Any], Any]) -> "Index":
        """The index of copies with changes: `instead` gives for each table the one to look at."""
        raise StaleIndexError(f"{type(self).__name__} does not follow a copy with changes")

    def _copy_over(self, instead: Callable[[Any], Any]) -> Self:
        """A shallow copy that follows none of its tables: those of a copy do not change, and the
        others must not keep it for ever."""
        made = copy.copy(self)
        made.tables = tuple(map(instead, self.tables))
        return made
