"""Ranges of a table's IDs that look the same to a viewer.

A range is a shard of the table (`Shards`), or a half, quarter, and so on if a viewer sees some of
its records differently. JSON for a range is cached as a fragment, and shared by all viewers who see
the same.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from tertulia.state.shards import Shards

T = TypeVar("T")


class ShardRange(NamedTuple, Generic[T]):
    """The IDs of a shard or a part of it, all of one kind."""

    first: int
    size: int
    """The number of IDs that fit into the range."""
    ids: Sequence[int]
    """The IDs of existing records."""
    version: int
    """The shard's version, which changes with each of its records."""
    kind: T


def shard_ranges(shards: Shards[Any], usual: T, exceptions: Mapping[int, T]) -> list[ShardRange[T]]:
    """Return all of a table's IDs in ascending order: of the `usual` kind, or of the kind that
    `exceptions` has for an ID."""
    if not exceptions:
        return [
            ShardRange(shard, shards.SIZE, ids, version, usual) for shard, ids, version in shards
        ]
    ranges: list[ShardRange[T]] = []
    ascending = sorted(exceptions)
    for first, ids, version in shards:
        whole = ShardRange(first, shards.SIZE, ids, version, usual)
        _divide(whole, exceptions, ascending, ranges)
    return ranges


def _divide(
    whole: ShardRange[T],
    exceptions: Mapping[int, T],
    ascending: Sequence[int],
    ranges: list[ShardRange[T]],
) -> None:
    """Halve the range until every part is of one kind."""
    first, size, ids, version, usual = whole
    if not ids:
        return
    begin = bisect_left(ascending, first)
    inside = ascending[begin : bisect_left(ascending, first + size, begin)]
    if not inside:
        ranges.append(whole)
        return
    kinds = [exceptions[exception_id] for exception_id in inside]
    kind = kinds[0]
    if len(kinds) == len(ids) == kinds.count(kind):
        ranges.append(ShardRange(first, size, ids, version, kind))
        return
    half = size // 2
    middle = bisect_left(ids, first + half)
    left = ShardRange(first, half, ids[:middle], version, usual)
    right = ShardRange(first + half, half, ids[middle:], version, usual)
    _divide(left, exceptions, inside, ranges)
    _divide(right, exceptions, inside, ranges)
