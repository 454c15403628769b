"""Forgetting the log's beginning."""

from tertulia.store.database import Connection


def prune(connection: Connection, before: float, limit: int) -> bool:
    """Delete the log's oldest entries, at most so many, as far as they are older than that UNIX
    time. Returns whether there may be more.

    Only a beginning is ever taken: the log stays without gaps even where the clock went back.
    """
    rows = connection.query("SELECT seq, at FROM log ORDER BY seq LIMIT ?", (limit,))
    last = None
    for seq, at in rows:
        if at >= before:
            break
        last = seq
    if last is None:
        return False
    connection.run("DELETE FROM log WHERE seq <= ?", (last,))
    connection.run("UPDATE head SET pruned = ? WHERE id = 1", (last,))
    return bool(last == rows[-1][0] and len(rows) == limit)
