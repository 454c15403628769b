"""What a node that commits tells the others: the entries themselves, so that nobody has to read
them.

A notification has little room, so a batch is told in parts. What does not fit, or is lost, is read
from the log.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.model.changes import AnyChange, Entry
from tertulia.store.installation import Position

MAX_BYTES: Final = 7900
"""Bytes of one text from one node to the others, on either database: PostgreSQL's notifications
have 7,999."""
MAX_PARTS: Final = 24
"""A batch that does not fit in so many is not told: reading it costs less by then."""


class EntryBroadcast(Struct, frozen=True, array_like=True, gc=False):
    """Consecutive entries of one batch, as they were when they were committed."""

    history: str
    before: int
    """The sequence number of the entry before the first one."""
    before_batch: str
    """The batch that that one came with."""
    batch: str
    changes: tuple[tuple[float, int | None, AnyChange], ...]
    """Of each entry the time, the actor and the change."""

    @property
    def seq(self) -> int:
        """The sequence number of the last one."""
        return self.before + len(self.changes)

    def follows(self, position: Position) -> bool:
        """Whether the first one is the next after that position."""
        return (self.history, self.before, self.before_batch) == (
            position.history,
            position.seq,
            position.batch,
        )

    def entries(self) -> Iterator[Entry]:
        """The entries, in order."""
        for seq, (at, actor_id, change) in enumerate(self.changes, self.before + 1):
            yield Entry(seq, at, actor_id, change)


PREFIX: Final = "log "
"""What each text begins with; then come who tells it, and the sequence number of its last entry."""
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(EntryBroadcast)


def encode_broadcast(
    teller: str, entries: Sequence[Entry], batch: str, before: Position
) -> list[str]:
    """The parts in which others are told these entries, which are committed together at that
    position; where that is too much, the last sequence number alone. `teller` is a name without
    spaces."""
    parts: list[list[bytes]] = [[]]
    size = 0
    for entry in entries:
        encoded = _encoder.encode((entry.at, entry.actor_id, entry.change))
        size += len(encoded) + 1
        if parts[-1] and size > MAX_BYTES - _HEAD:
            parts.append([])
            size = len(encoded) + 1
        if size > MAX_BYTES - _HEAD or len(parts) > MAX_PARTS:
            return [str(entries[-1].seq)]
        parts[-1].append(encoded)
    found, seq, before_batch = [], before.seq, before.batch
    for part in parts:
        head = _encoder.encode((before.history, seq, before_batch, batch))[:-1]
        told = b"".join((head, b",[", b",".join(part), b"]]")).decode()
        seq, before_batch = seq + len(part), batch
        found.append(f"{PREFIX}{teller} {seq} {told}")
    return found


_HEAD: Final = 120
"""Bytes that a text has beside its entries, at most."""


def sender_of(text: str) -> str:
    """Whose text it is."""
    begin = len(PREFIX)
    end = text.find(" ", begin)
    return text[begin:end] if end >= 0 else text[begin:]


def decode_broadcast(text: str, known: int) -> EntryBroadcast | int:
    """What a text says; where that is not beyond the entry of that number, or nothing that this
    program understands (a newer one may have written it), only the number of its last entry."""
    try:
        _, _, seq, told = text.split(" ", 3)  # Copies it once; it may be long.
        return _decoder.decode(told) if int(seq) > known else int(seq)
    except (ValueError, msgspec.MsgspecError):
        return known + 1
