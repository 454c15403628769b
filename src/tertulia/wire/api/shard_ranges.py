"""The records of a table in ranges of IDs, of which a viewer sees all of a range alike.

A range is a shard of the table (`Shards`), or half of one, a quarter and so on where a viewer sees
some of its records differently. What is made of a range is kept as a fragment, and viewers share it
as far as they see the same.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from tertulia.state.shards import Shards

T = TypeVar("T")


class ShardRange(NamedTuple, Generic[T]):
    """The IDs of a shard, or of a part of one, all of one kind."""

    first: int
    size: int
    """For how many IDs there is room."""
    ids: Sequence[int]
    """The IDs that records have."""
    version: int
    """The shard's: another one when something of a record in it has changed."""
    kind: T


def shard_ranges(shards: Shards[Any], usual: T, exceptions: Mapping[int, T]) -> list[ShardRange[T]]:
    """All of a table's IDs, ascending: of the `usual` kind, or of that which `exceptions` has for
    an ID."""
    found: list[ShardRange[T]] = []
    if not exceptions:
        return [ShardRange(one, shards.SIZE, ids, version, usual) for one, ids, version in shards]
    ascending = sorted(exceptions)
    for first, ids, version in shards:
        whole = ShardRange(first, shards.SIZE, ids, version, usual)
        _divide(whole, exceptions, ascending, found)
    return found


def _divide(
    whole: ShardRange[T],
    exceptions: Mapping[int, T],
    ascending: Sequence[int],
    found: list[ShardRange[T]],
) -> None:
    """Halve the range until every part is of one kind."""
    first, size, ids, version, usual = whole
    if not ids:
        return
    begin = bisect_left(ascending, first)
    inside = ascending[begin : bisect_left(ascending, first + size, begin)]
    if not inside:
        found.append(whole)
        return
    kinds = [exceptions[one] for one in inside]
    kind = kinds[0]
    if len(kinds) == len(ids) == kinds.count(kind):
        found.append(ShardRange(first, size, ids, version, kind))
        return
    half = size // 2
    middle = bisect_left(ids, first + half)
    left = ShardRange(first, half, ids[:middle], version, usual)
    right = ShardRange(first + half, half, ids[middle:], version, usual)
    _divide(left, exceptions, inside, found)
    _divide(right, exceptions, inside, found)
