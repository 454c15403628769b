"""Parts of a list of messages, told by their ends: what concerns many people and many messages is
as long as the number of its ends, and not as the number of its messages."""

from bisect import bisect_right
from collections.abc import Sequence

from pyroaring import BitMap

Spans = tuple[tuple[int, int | None], ...]
"""Shards of message IDs: of each, those with after < id <= until; until None has no end."""
EVERYTHING: Spans = ((0, None),)
Some = tuple[int | tuple[int, int], ...]
"""Some messages of a list, ascending: an ID, or all from the first to the last of a pair of IDs."""
Places = tuple[tuple[int, int], ...]
"""Shards of a list: of each, from the first place to before the second."""


def places(ids: Sequence[int], spans: Spans) -> Places:
    """Where the spans' messages are in the ascending IDs. Spans that have the same are equal."""
    found = []
    for after, until in spans:
        begin = bisect_right(ids, after)
        end = len(ids) if until is None else bisect_right(ids, until)
        if begin < end:
            found.append((begin, end))
    return tuple(found)


def ids_at(ids: Sequence[int], whole: BitMap, some: Places) -> BitMap:
    """The messages at those places. `whole` has the same IDs."""
    if some == ((0, len(ids)),):
        return whole
    parts = (BitMap(range(ids[begin], ids[end - 1] + 1)) for begin, end in some)
    return BitMap.union(BitMap(), *parts) & whole


def told(part: BitMap, whole: BitMap) -> Some:
    """How a part of all the messages is told."""
    if not part:
        return ()
    if len(part) == len(whole):
        return (_stretch(part.min(), part.max()),)
    others, last = whole - part, part.max()
    found: list[int | tuple[int, int]] = []
    begin = part.min()
    while True:
        at = others.rank(begin)
        if at == len(others):
            return (*found, _stretch(begin, last))
        gap = others[at]
        before = part.rank(gap)
        found.append(_stretch(begin, part[before - 1]))
        if before == len(part):
            return tuple(found)
        begin = part[before]


def _stretch(first: int, last: int) -> int | tuple[int, int]:
    return first if first == last else (first, last)


def ids_of(some: Some, whole: BitMap) -> BitMap:
    """The inverse of `told`."""
    single = BitMap([one for one in some if isinstance(one, int)])
    pairs = (BitMap(range(one[0], one[1] + 1)) for one in some if not isinstance(one, int))
    return BitMap.union(BitMap(), *pairs) & whole | single
