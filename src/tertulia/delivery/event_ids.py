"""The numbering of events.

Each entry of the log owns a range of 2^20 IDs: the lower half for the entry's own events (it may
become several), the upper half for transient events after it. So IDs grow with the log, stay below
2^53 for eight billion entries, and a transient event never carries a client's cursor past an entry
that it has not seen.
"""

STRIDE = 1 << 20
_HALF = STRIDE >> 1
TRANSIENTS = _HALF
"""Transient events that fit after one entry."""


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
    """The entry in whose range the ID is."""
    return event_id // STRIDE


def is_complete(cursor: int) -> bool:
    """Whether a client with this cursor has all events of the cursor's entry.

    It has when the cursor is a transient event's, or the entry's end. Of an entry with several
    events it may have seen only some.
    """
    return cursor % STRIDE >= _HALF - 1


def of_encoded(event: bytes) -> int:
    """The ID of an encoded event, which begins with it: `{"id":123,…`."""
    return int(event[6 : event.index(b",", 6)])
