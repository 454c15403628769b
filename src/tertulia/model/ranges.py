"""Ranges of message IDs: sets of messages are stored and sent as ranges, so their size doesn't grow
with the number of messages."""

from bisect import bisect_right
from collections.abc import Sequence

from pyroaring import BitMap

Spans = tuple[tuple[int, int | None], ...]
"""Ranges of a channel's message IDs with after < id <= until; None means no end."""
EVERYTHING: Spans = ((0, None),)
IdRanges = tuple[int | tuple[int, int], ...]
"""A subset of a set of messages, ascending: single IDs, and pairs for all messages of the set from
the first ID to the last."""
Places = tuple[tuple[int, int], ...]
"""Half-open ranges of indexes in a sequence."""


def places(ids: Sequence[int] | BitMap, spans: Spans) -> Places:
    """Return the indexes of the spans' messages in the ascending IDs. Spans with the same messages
    have equal indexes."""
    results = []
    for after, until in spans:
        begin = bisect_right(ids, after)
        end = len(ids) if until is None else bisect_right(ids, until)
        if begin < end:
            results.append((begin, end))
    return tuple(results)


def ids_at(ids: Sequence[int] | BitMap, whole: BitMap, some: Places) -> BitMap:
    """Return the messages at these indexes. `whole` has the same IDs."""
    if some == ((0, len(ids)),):
        return whole
    parts = (BitMap(range(ids[begin], ids[end - 1] + 1)) for begin, end in some)
    return BitMap.union(BitMap(), *parts) & whole


def ids_in_spans(ids: BitMap, spans: Spans) -> BitMap:
    """Return the messages that are in the spans."""
    return ids if spans == EVERYTHING else ids_at(ids, ids, places(ids, spans))


def ranges_of(part: BitMap, whole: BitMap) -> IdRanges:
    """Return the subset as ranges of the whole set."""
    if not part:
        return ()
    if len(part) == len(whole):
        return (_range(part.min(), part.max()),)
    others, last = whole - part, part.max()
    results: list[int | tuple[int, int]] = []
    begin = part.min()
    while True:
        at = others.rank(begin)
        if at == len(others):
            return (*results, _range(begin, last))
        gap = others[at]
        before = part.rank(gap)
        results.append(_range(begin, part[before - 1]))
        if before == len(part):
            return tuple(results)
        begin = part[before]


def _range(first: int, last: int) -> int | tuple[int, int]:
    return first if first == last else (first, last)


def ids_of(some: IdRanges, whole: BitMap) -> BitMap:
    """Return the subset that `ranges_of` returned as ranges."""
    single = BitMap([item for item in some if isinstance(item, int)])
    pairs = (BitMap(range(item[0], item[1] + 1)) for item in some if not isinstance(item, int))
    return BitMap.union(BitMap(), *pairs) & whole | single
