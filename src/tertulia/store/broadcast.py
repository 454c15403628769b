"""Broadcasts of committed entries to other nodes, so that they don't have to read them from the
log. PostgreSQL's notifications are short, so a batch is split. Entries that don't fit, or get lost,
are read from the log."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.model.changes import AnyChange, Entry
from tertulia.store.installation import Position

MAX_BYTES: Final = 7900
"""Bytes of a text between nodes. PostgreSQL's notifications have at most 7,999."""
MAX_PARTS: Final = 24
"""Larger batches aren't broadcast, because reading them costs less."""


class EntryBroadcast(Struct, frozen=True, array_like=True, gc=False):
    """Consecutive entries of one batch."""

    history: str
    before: int
    """The sequence number before the first entry..."""
    before_batch: str
    """... and the batch of the entry with that number."""
    batch: str
    changes: tuple[tuple[float, int | None, AnyChange], ...]
    """Time, actor, and change of each entry."""

    @property
    def seq(self) -> int:
        """The last sequence number."""
        return self.before + len(self.changes)

    def follows(self, position: Position) -> bool:
        """Return whether the first entry comes right after that position."""
        return (self.history, self.before, self.before_batch) == (
            position.history,
            position.seq,
            position.batch,
        )

    def entries(self) -> Iterator[Entry]:
        for seq, (at, actor_id, change) in enumerate(self.changes, self.before + 1):
            yield Entry(seq, at, actor_id, change)


PREFIX: Final = "log "
"""The beginning of each text, followed by its sender and the sequence number of its last entry."""
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(EntryBroadcast)


def encode_broadcast(
    teller: str, entries: Sequence[Entry], batch: str, before: Position
) -> list[str]:
    """Encode entries that are committed together after `before`, or only the last sequence number
    if they are too large. `teller` has no spaces."""
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
    results, seq, before_batch = [], before.seq, before.batch
    for part in parts:
        head = _encoder.encode((before.history, seq, before_batch, batch))[:-1]
        payload = b"".join((head, b",[", b",".join(part), b"]]")).decode()
        seq, before_batch = seq + len(part), batch
        results.append(f"{PREFIX}{teller} {seq} {payload}")
    return results


_HEAD: Final = 120
"""The most bytes of a text besides its entries."""


def sender_of(text: str) -> str:
    begin = len(PREFIX)
    end = text.find(" ", begin)
    return text[begin:end] if end >= 0 else text[begin:]


def decode_broadcast(text: str, known: int) -> EntryBroadcast | int:
    """Decode a text. Return only its last sequence number if that is at most `known`, or if this
    version can't decode the text."""
    try:
        _, _, seq, payload = text.split(" ", 3)  # Copies it once; it may be long.
        return _decoder.decode(payload) if int(seq) > known else int(seq)
    except (ValueError, msgspec.MsgspecError):
        return known + 1
