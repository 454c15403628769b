"""Tables in shards of IDs, for responses that contain all records."""

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from tertulia.state.tables import Index, Table, next_version

R = TypeVar("R", bound=Struct)


class Shards(Index, Generic[R]):
    """The IDs of a table's records in shards. Each shard has a version that changes with its
    records and with records of other tables that belong to them. Encoded shards are reused until
    their version changes."""

    SIZE = 128
    """IDs per shard: a power of two."""

    def __init__(self, table: Table[R]) -> None:
        self.table = table
        self._ids: dict[int, list[int]] = {}
        self._versions: dict[int, int] = {}
        self.follow(table, self._update)

    def also(self, table: Table[Any], of: Callable[[Any], int]) -> None:
        """Treat changes of the other table's records as changes of the record whose ID `of`
        returns."""

        def update(before: Any, after: Any) -> None:
            self.touch(of(before if after is None else after))

        self.follow(table, update)

    def _update(self, before: R | None, after: R | None) -> None:
        key: Any = self.table.noun.key_of(after or before)
        self.touch(key)
        if before is None:
            insort(self._ids.setdefault(key // self.SIZE, []), key)
        elif after is None:
            self._ids[key // self.SIZE].remove(key)

    def touch(self, key: int) -> None:
        """Change the version of the shard with that ID."""
        self._versions[key // self.SIZE] = next_version()

    def __iter__(self) -> Iterator[tuple[int, Sequence[int], int]]:
        """Yield the first ID of each shard that has records, its IDs, and its version;
        ascending."""
        for number in sorted(self._ids):
            if self._ids[number]:
                yield number * self.SIZE, self._ids[number], self._versions[number]
