"""The numbers that events go by.

An entry of the log owns a stretch of 2^20 IDs: the lower half for the events that it becomes (one
entry may be several), the upper half for what happens after it and is not written down (typing,
presence, heartbeats). So IDs grow with the log, everything fits below 2^53 for eight billion
entries, and a transient event can never carry a client's cursor past an entry it has not seen.
"""

STRIDE = 1 << 20
_HALF = STRIDE >> 1


def of_entry(seq: int, index: int) -> int:
    """The ID of an entry's event number `index`."""
    return seq * STRIDE + index


def transient(seq: int, count: int) -> int:
    """The ID of transient event number `count` after the entry."""
    return seq * STRIDE + _HALF + count


def end_of(seq: int) -> int:
    """A cursor past all events of the entry, and before all transient ones after it."""
    return seq * STRIDE + _HALF - 1


def seq_of(event_id: int) -> int:
    """The entry to whose stretch the ID belongs."""
    return event_id // STRIDE


def is_complete(cursor: int) -> bool:
    """Whether a cursor says that all of its entry's events have been seen.

    It does when it names a transient event or the entry's end; an entry that became several events
    may have been seen in part.
    """
    return cursor % STRIDE >= _HALF - 1
