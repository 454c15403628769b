"""Records in memory, by key, with a note of what changed since it was last written down."""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from msgspec import Struct

from tertulia.model.nouns import Key, Noun

R = TypeVar("R", bound=Struct)


class Table(Generic[R]):
    """All records of one noun. Records are immutable; a change puts a new one in place.

    `watch` registers an index: it is called as `(before, after)` for each put, `before` being
    None for a new record. Records are never removed by anything but `remove`.
    """

    def __init__(self, noun: Noun) -> None:
        self.noun = noun
        self.rows: dict[Key, R] = {}
        self.dirty: set[Key] = set()
        self._watchers: list[Callable[[R | None, R | None], None]] = []

    def watch(self, watcher: Callable[[R | None, R | None], None]) -> None:
        self._watchers.append(watcher)

    def put(self, record: R) -> None:
        """Add the record, or replace the one with its key."""
        key = self.noun.key_of(record)
        before = self.rows.get(key)
        self.rows[key] = record
        self.dirty.add(key)
        for watcher in self._watchers:
            watcher(before, record)

    def remove(self, key: Key) -> None:
        """Take the record away. A missing one is a KeyError."""
        before = self.rows.pop(key)
        self.dirty.add(key)
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
        """One more than the largest ID. For nouns that are never removed."""
        return max(self.rows, default=0) + 1

    def take_dirty(self) -> dict[Key, R | None]:
        """What changed since this was last asked: the record by key, None where it is gone."""
        changed: dict[Key, Any] = {key: self.rows.get(key) for key in self.dirty}
        self.dirty.clear()
        return changed
