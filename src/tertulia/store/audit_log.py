"""The audit log's table. A record's ID is greater than all earlier IDs, because it's assigned while
the log's head is locked. So a page of older records never misses one that is being written."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from tertulia.model.audit_log import AuditRecord
from tertulia.store.codec import encode
from tertulia.store.database import Connection

BATCH_SIZE: Final = 5000
"""Rows per transaction, so that others can write in between."""
_decoder: Final = msgspec.json.Decoder(AuditRecord)
_PERSONAL: Final = frozenset({"full_name", "address"})
"""Fields whose old and new values are personal data."""


class StoredRecord(Struct, frozen=True):
    """A record with its ID."""

    id: int
    record: AuditRecord


def add(connection: Connection, record: AuditRecord, record_id: str) -> None:
    """Add a record, unless one with this random ID exists."""
    connection.run(
        "INSERT INTO audit_log (id, record, at, kind, actor_id, user_id, doc)"
        " VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM audit_log), ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (record) DO NOTHING",
        (record_id, record.at, record.kind, record.actor_id, record.user_id, encode(record)),
    )


def page(
    connection: Connection,
    limit: int,
    before: int | None = None,
    *,
    actor_id: int | None = None,
    user_id: int | None = None,
    kind: str | None = None,
) -> list[StoredRecord]:
    """Return up to `limit` records with IDs below `before`, newest first. The filters apply
    together."""
    wanted: dict[str, Any] = {"id < ?": before, "actor_id = ?": actor_id}
    wanted |= {"user_id = ?": user_id, "kind = ?": kind}
    given = {condition: value for condition, value in wanted.items() if value is not None}
    where = f" WHERE {' AND '.join(given)}" if given else ""
    rows = connection.query(
        f"SELECT id, doc FROM audit_log{where} ORDER BY id DESC LIMIT {int(limit)}",
        tuple(given.values()),
    )
    return [_stored(row) for row in rows]


def _stored(row: tuple[Any, ...]) -> StoredRecord:
    record_id, doc = row
    return StoredRecord(record_id, _decoder.decode(doc))


def prune(connection: Connection, before: float) -> bool:
    """Delete up to `BATCH_SIZE` of the oldest records from before that UNIX time. Return whether
    there may be more."""
    rows = connection.query(f"SELECT id, at FROM audit_log ORDER BY id LIMIT {BATCH_SIZE}")
    # (Times can go back.)
    old = [record_id for record_id, at in rows if at < before]
    if old:
        connection.run("DELETE FROM audit_log WHERE id <= ? AND at < ?", (old[-1], before))
    return len(old) == BATCH_SIZE


# Erasing people


def erase(
    connection: Connection, user_ids: Iterable[int], addresses: Iterable[str], after: int
) -> int | None:
    """Remove personal data of erased people from up to `BATCH_SIZE` records with IDs above `after`:
    network addresses and user agents, names, and email addresses. `addresses` are their email
    addresses. Return the ID of the last of these records, or None if there are no more."""
    people = frozenset(user_ids)
    theirs = frozenset(address.casefold() for address in addresses)
    rows = connection.query(
        f"SELECT id, doc FROM audit_log WHERE id > ? ORDER BY id LIMIT {BATCH_SIZE}", (after,)
    )
    cleaned = []
    for record_id, record in map(msgspec.structs.astuple, map(_stored, rows)):
        rest = _without(record, people, theirs)
        if rest != record:
            cleaned.append((encode(rest), record_id))
    if cleaned:
        connection.run_many("UPDATE audit_log SET doc = ? WHERE id = ?", cleaned)
    return rows[-1][0] if len(rows) == BATCH_SIZE else None


def _without(record: AuditRecord, people: frozenset[int], theirs: frozenset[str]) -> AuditRecord:
    is_actor, is_target = record.actor_id in people, record.user_id in people
    details = dict(record.details)
    if "addresses" in details:
        # The addresses that an erased person invited are also their personal data.
        left = [detail for detail in details["addresses"] if detail.casefold() not in theirs]
        details["addresses"] = [] if is_actor or is_target else left
    if is_target:
        details.pop("name", None)  # A key's.
    if is_target and "changes" in details:
        details["changes"] = {
            name: [None, None] if name in _PERSONAL else values
            for name, values in details["changes"].items()
        }
    origin = record.origin
    if is_actor or (is_target and record.actor_id is None):
        origin = msgspec.structs.replace(origin, address="", agent="")
    return msgspec.structs.replace(record, origin=origin, details=details)
