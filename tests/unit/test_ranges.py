"""Ranges of messages, stored by their ends."""

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from tertulia.model.ranges import EVERYTHING, ids_at, ids_of, places, ranges_of

IDS = st.sets(st.integers(1, 200), min_size=1, max_size=60)


@given(IDS, st.data())
def test_ranges_are_read_as_they_were_stored(ids: set[int], data: st.DataObject) -> None:
    whole = BitMap(ids)
    part = BitMap(data.draw(st.sets(st.sampled_from(sorted(ids)))))
    assert ids_of(ranges_of(part, whole), whole) == part


@given(IDS, st.integers(0, 210), st.one_of(st.none(), st.integers(0, 210)))
def test_positions_are_those_of_the_messages_in_the_spans(
    ids: set[int], after: int, until: int | None
) -> None:
    ascending = sorted(ids)
    there = ids_at(ascending, BitMap(ids), places(ascending, ((after, until),)))
    assert there == BitMap(one for one in ids if after < one and (until is None or one <= until))


def test_spans_with_the_same_messages_have_the_same_positions() -> None:
    assert places((5, 9, 12), ((1, 10),)) == places((5, 9, 12), ((4, 11), (20, None)))
    assert ids_at((5, 9), BitMap((5, 9)), places((5, 9), EVERYTHING)) == BitMap((5, 9))


def test_consecutive_messages_are_stored_by_their_ends() -> None:
    whole = BitMap(range(0, 100_000, 3))
    assert ranges_of(whole - BitMap([300]), whole) == ((0, 297), (303, 99_999))
    assert ranges_of(BitMap([3, 6, 12]), whole) == ((3, 6), 12)


def test_older_entries_with_single_ids_are_readable() -> None:
    assert ids_of((1, 2, 7), BitMap((1, 2, 3, 7))) == BitMap((1, 2, 7))
