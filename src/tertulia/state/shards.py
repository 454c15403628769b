"""A table's records in shards of IDs, for answers that are made of all of them."""

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from tertulia.state.tables import Index, Table, next_version

R = TypeVar("R", bound=Struct)


class Shards(Index, Generic[R]):
    """An index: the IDs of a table's records by shards of IDs, and a version of each shard that is
    another one after a change of a record in it, in this table or in another one that says more of
    its records.

    So what is made of a shard is made once, and again when its version is another.
    """

    SIZE = 128
    """IDs of a shard. A power of two."""

    def __init__(self, table: Table[R]) -> None:
        self.table = table
        self._ids: dict[int, list[int]] = {}
        self._versions: dict[int, int] = {}
        self.follow(table, self._update)

    def also(self, table: Table[Any], of: Callable[[Any], int]) -> None:
        """Count a change of the other table's records as one of the record with the ID that `of`
        says."""

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
        """Give the shard of the record with that ID another version."""
        self._versions[key // self.SIZE] = next_version()

    def __iter__(self) -> Iterator[tuple[int, Sequence[int], int]]:
        """The first ID of each shard that has records, its IDs, and its version; ascending."""
        for number in sorted(self._ids):
            if self._ids[number]:
                yield number * self.SIZE, self._ids[number], self._versions[number]
