"""The entries that a node has not seen when it comes to write, read with the head's lock itself.

While it waited for the lock it was told what others committed (`telling`), but for the last batch:
that one was on disk only when the lock became free. So only the entries of the newest batch are
read with their texts. Where more is missing, or an entry that needs more than its message's text,
`log_entries.growth` is asked instead.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from tertulia.model.changes import AnyChange, Entry, MessageSent
from tertulia.store.codec import NEEDS_TEXTS, decode_entry
from tertulia.store.database import TextRow
from tertulia.store.history import Head, Position
from tertulia.store.log_entries import Growth

LIMIT: Final = 1000
"""Rows that are read at most."""
QUERY: Final = f"""
    SELECT log.seq, log.batch, log.at, log.actor_id,
        CASE WHEN log.batch = newest.batch THEN log.change END,
        said.content, said.rendered, said.channel_id
    FROM (SELECT batch FROM head WHERE id = 1 AND batch <> ?) AS newest
    CROSS JOIN log
    LEFT JOIN LATERAL (
        SELECT content, rendered, channel_id FROM messages WHERE messages.id = CASE
            WHEN log.batch = newest.batch AND log.change LIKE '{{"type":"message_sent",%'
            THEN CAST(CAST(log.change AS json) -> 'message' ->> 'id' AS BIGINT)
        END
        OFFSET 0
    ) AS said ON TRUE
    WHERE log.seq >= ? ORDER BY log.seq LIMIT {LIMIT}
"""
"""The entries from one on; none where the head's batch is that one's, which is to say that nothing
came since (two parameters: its batch and its number). Not before the head is locked: each statement
sees what was committed when it began."""


def growth(head: Head, rows: Sequence[TextRow], known: Position) -> Growth | None:
    """What the log has beyond a position, from the query's rows; None where they do not say it."""
    if head.position == known:
        return Growth(head, [], known)
    if head.history != known.history or head.seq < known.seq or len(rows) >= LIMIT:
        return None
    entries: list[Entry] = []
    before: TextRow | None = None
    for row in rows:
        seq = int(row[0] or 0)
        if seq == known.seq:
            before = row
        elif seq > known.seq:
            if row[4] is None:
                return None
            entry = decode_entry(
                seq,
                float(row[2] or 0),
                None if row[3] is None else int(row[3]),
                row[4].decode(),
            )
            change = _complete(entry.change, row)
            if change is None:
                return None
            entries.append(Entry(seq, entry.at, entry.actor_id, change))
    is_continued = before is not None and (before[1] or b"").decode() == known.batch
    if not is_continued or not entries or entries[-1].seq != head.seq:
        return None
    if entries[0].seq != known.seq + 1:
        return None
    return Growth(head, entries, head.position)


def _complete(change: AnyChange, row: TextRow) -> AnyChange | None:
    """The change with its texts; None where the row does not have them."""
    if not isinstance(change, NEEDS_TEXTS):
        return change
    if not isinstance(change, MessageSent) or change.widget is not None:
        return None
    _, _, _, _, _, content, rendered, channel = row
    replace = msgspec.structs.replace
    if content is None or rendered is None:
        return replace(change, gone=True)
    message = replace(change.message, content=content.decode(), rendered=rendered.decode())
    channel_id = None if channel is None else int(channel)
    moved_to = channel_id if channel_id != message.channel_id else None
    return replace(change, message=message, moved_to=moved_to)
