"""When each feed is to be read again, and what came of it the last time.

Whoever reads a feed takes it on a lease: its `due_at` moves on, and should the reader die, it is
due again by itself. Which entries were told is in the feed's own record, and written with the
message.
"""

import secrets
from collections.abc import Collection
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.store.codec import encode
from tertulia.store.database import Connection


class FeedStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How it is with a feed. Times are in UNIX seconds, 0 for never."""

    url: str = ""
    """Of which the following was said: none of it holds for another."""
    etag: str = ""
    modified: str = ""
    """By what the server knows which version was read."""
    title: str = ""
    read_at: float = 0.0
    """When it was last read."""
    told_at: float = 0.0
    """When an entry was last told."""
    failures: int = 0
    """How often it could not be read, or told of, in a row."""
    reason: str = ""
    """Why, the last time: a sentence."""
    failing_since: float = 0.0
    """When that began, where there are failures."""


class FeedLease(Struct, frozen=True, kw_only=True):
    """A feed that is to be read now."""

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
    """The chosen ones that are due: they are the caller's for the lease. What is not known is
    forgotten."""
    rows = connection.query("SELECT feed_id, due_at, doc FROM feed_rounds")
    places = {int(feed_id): (float(due), str(doc)) for feed_id, due, doc in rows}
    connection.run_many(
        "DELETE FROM feed_rounds WHERE feed_id = ?",
        [(feed_id,) for feed_id in places if feed_id not in known],
    )
    found = []
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
        found.append(FeedLease(feed_id=feed_id, lease=lease, standing=_decoder.decode(doc)))
    return found


def finish(connection: Connection, done: FeedLease, standing: FeedStatus, due_at: float) -> None:
    """The feed was read, or could not be. Where the lease has passed to another, or the feed was
    `wanted` meanwhile, what they say stays."""
    connection.run(
        "UPDATE feed_rounds SET due_at = ?, lease = '', doc = ? WHERE feed_id = ? AND lease = ?",
        (due_at, encode(standing), done.feed_id, done.lease),
    )


def read_soon(connection: Connection, feed_id: int) -> None:
    """The feed is to be read at once, whoever reads it now."""
    connection.run("UPDATE feed_rounds SET due_at = 0, lease = '' WHERE feed_id = ?", (feed_id,))


def due_times(connection: Connection, known: Collection[int]) -> list[tuple[int, float]]:
    """The known feeds, each with when it is due (0 where it was never read), the first first."""
    rows = connection.query("SELECT feed_id, due_at FROM feed_rounds")
    due = {int(feed_id): float(at) for feed_id, at in rows}
    found = ((feed_id, due.get(feed_id, 0.0)) for feed_id in known)
    return sorted(found, key=lambda one: (one[1], one[0]))


def statuses(
    connection: Connection, feed_ids: Collection[int]
) -> dict[int, tuple[FeedStatus, float]]:
    """How it is with the feeds, and when they are due; without those that were never read."""
    rows = connection.query("SELECT feed_id, doc, due_at FROM feed_rounds")
    return {
        int(feed_id): (_decoder.decode(str(doc)), float(due))
        for feed_id, doc, due in rows
        if int(feed_id) in feed_ids
    }
