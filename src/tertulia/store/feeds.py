"""The schedule of feeds, and the result of each last read.

A feed is leased while it is read: `due_at` moves ahead, so it becomes due again if the reader dies.
The entries that were already posted are in the feed's own record, written with the message.
"""

import secrets
from collections.abc import Collection
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.store.codec import encode
from tertulia.store.database import Connection


class FeedStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a feed's last reads. Times are in UNIX seconds, 0 for never."""

    url: str = ""
    """The URL that the status is for."""
    etag: str = ""
    modified: str = ""
    """With `etag`, identifies the version that was read."""
    title: str = ""
    read_at: float = 0.0
    told_at: float = 0.0
    """The time when an entry was last posted."""
    failures: int = 0
    """Consecutive failures to read or post."""
    reason: str = ""
    """The reason why the last attempt failed, as a sentence."""
    failing_since: float = 0.0
    """The time when the failures began."""


class FeedLease(Struct, frozen=True, kw_only=True):
    """A feed to be read now."""

    feed_id: int
    lease: str
    standing: FeedStatus


_decoder: Final = msgspec.json.Decoder(FeedStatus)
_NEW: Final = FeedStatus()


def lease(
    connection: Connection,
    known: Collection[int],
    now: float,
    lease_seconds: float,
    chosen: Collection[int],
) -> list[FeedLease]:
    """Lease the `chosen` feeds that are due. Feeds that aren't `known` are deleted."""
    rows = connection.query("SELECT feed_id, due_at, doc FROM feed_rounds")
    places = {int(feed_id): (float(due), str(doc)) for feed_id, due, doc in rows}
    connection.run_many(
        "DELETE FROM feed_rounds WHERE feed_id = ?",
        [(feed_id,) for feed_id in places if feed_id not in known],
    )
    leases = []
    for feed_id in chosen:
        due_at, doc = places.get(feed_id, (0.0, encode(_NEW)))
        if due_at > now:
            continue
        lease = secrets.token_hex(8)
        connection.run(
            "INSERT INTO feed_rounds (feed_id, due_at, lease, doc) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (feed_id) DO UPDATE SET due_at = excluded.due_at, lease = excluded.lease",
            (feed_id, now + lease_seconds, lease, doc),
        )
        leases.append(FeedLease(feed_id=feed_id, lease=lease, standing=_decoder.decode(doc)))
    return leases


def finish(connection: Connection, done: FeedLease, standing: FeedStatus, due_at: float) -> None:
    """Store the result, unless the lease was lost or the feed should be read again."""
    connection.run(
        "UPDATE feed_rounds SET due_at = ?, lease = '', doc = ? WHERE feed_id = ? AND lease = ?",
        (due_at, encode(standing), done.feed_id, done.lease),
    )


def read_soon(connection: Connection, feed_id: int) -> None:
    """Make the feed due now, even if it is being read."""
    connection.run("UPDATE feed_rounds SET due_at = 0, lease = '' WHERE feed_id = ?", (feed_id,))


def due_times(connection: Connection, known: Collection[int]) -> list[tuple[int, float]]:
    """Return when each known feed is due, earliest first (0: never read)."""
    rows = connection.query("SELECT feed_id, due_at FROM feed_rounds")
    due = {int(feed_id): float(at) for feed_id, at in rows}
    result = ((feed_id, due.get(feed_id, 0.0)) for feed_id in known)
    return sorted(result, key=lambda item: (item[1], item[0]))


def statuses(
    connection: Connection, feed_ids: Collection[int]
) -> dict[int, tuple[FeedStatus, float]]:
    """Return the status and due time of feeds that were read."""
    rows = connection.query("SELECT feed_id, doc, due_at FROM feed_rounds")
    return {
        int(feed_id): (_decoder.decode(str(doc)), float(due))
        for feed_id, doc, due in rows
        if int(feed_id) in feed_ids
    }
