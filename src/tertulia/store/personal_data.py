"""Personal data in the database outside the records: queries in pages, and erasing it."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from tertulia.model.channels import Subscription
from tertulia.model.messages import Flag, Message, MessageEdit
from tertulia.store import editing, installation
from tertulia.store.codec import MESSAGE_COLUMNS, TOPIC_NAME, message_of
from tertulia.store.database import Connection

_WITHOUT_HTML: Final = MESSAGE_COLUMNS.replace("messages.rendered", "''")
_PLACE: Final = f"messages.channel_id, messages.direct_id, {TOPIC_NAME}"


class LinkedMessage(Struct, frozen=True):
    """A message that the person's data refers to, without its content."""

    id: int
    channel_id: int | None
    direct_id: int | None
    topic: str | None
    facts: tuple[Any, ...] = ()


class _Kind(Struct):
    type: str


_kind_decoder = msgspec.json.Decoder(_Kind)


def _with_facts(row: Sequence[Any]) -> LinkedMessage:
    message_id, channel_id, direct_id, topic, *facts = row
    return LinkedMessage(message_id, channel_id, direct_id, topic, tuple(facts))


def messages_by(connection: Connection, user_id: int, after: int, limit: int) -> list[Message]:
    """Return up to `limit` messages of an author after an ID, ascending, without their HTML."""
    rows = connection.query(
        f"SELECT {_WITHOUT_HTML} FROM messages WHERE sender_id = ? AND id > ?"
        f" ORDER BY id LIMIT {int(limit)}",
        (user_id, after),
    )
    return [message_of(row) for row in rows]


def edits_by(
    connection: Connection, user_id: int, message_ids: Sequence[int]
) -> dict[int, list[MessageEdit]]:
    """Return the user's edits of these messages, oldest first, by message."""
    dialect = connection.dialect
    message_edits: dict[int, list[MessageEdit]] = {}
    for row in connection.query(
        "SELECT message_id, seq, at, user_id, was_content, NULL, was_topic, topic,"
        " was_channel_id, channel_id FROM message_edits"
        f" WHERE {dialect.among('message_id')} AND user_id = ? ORDER BY message_id, seq",
        (dialect.array(message_ids), user_id),
    ):
        edit = editing.edit_of(row)
        message_edits.setdefault(edit.message_id, []).append(edit)
    return message_edits


def starred(connection: Connection, user_id: int, after: int, limit: int) -> list[LinkedMessage]:
    """Return up to `limit` messages after an ID that the user starred, ascending."""
    rows = connection.query(
        f"SELECT messages.id, {_PLACE} FROM message_flags"
        " JOIN messages ON messages.id = message_flags.message_id"
        " WHERE message_flags.user_id = ? AND message_flags.message_id > ?"
        f" AND message_flags.flags & {int(Flag.STARRED)} <> 0"
        f" ORDER BY message_flags.message_id LIMIT {int(limit)}",
        (user_id, after),
    )
    return [LinkedMessage(*row) for row in rows]


def reactions_by(
    connection: Connection, user_id: int, after: int, until: int
) -> list[LinkedMessage]:
    """Return the user's reactions to messages with after < ID <= until: `facts` are the emoji's
    name and kind."""
    rows = connection.query(
        f"SELECT messages.id, {_PLACE}, reactions.name, reactions.kind FROM reactions"
        " JOIN messages ON messages.id = reactions.message_id"
        " WHERE reactions.message_id > ? AND reactions.message_id <= ? AND reactions.user_id = ?"
        " ORDER BY reactions.message_id, reactions.seq",
        (after, until, user_id),
    )
    return [_with_facts(row) for row in rows]


def submessages_by(
    connection: Connection, user_id: int, after: int, until: int
) -> list[LinkedMessage]:
    """Return the user's votes and other actions on widgets of messages with after < ID <= until:
    `facts` are their kind and content."""
    rows = connection.query(
        f"SELECT messages.id, {_PLACE}, submessages.kind, submessages.content FROM submessages"
        " JOIN messages ON messages.id = submessages.message_id"
        " WHERE submessages.message_id > ? AND submessages.message_id <= ?"
        " AND submessages.sender_id = ? ORDER BY submessages.message_id, submessages.id",
        (after, until, user_id),
    )
    return [_with_facts(row) for row in rows]


def entries_by(
    connection: Connection, user_id: int, after: int, until: int
) -> list[tuple[float, str]]:
    """Return the time (UNIX seconds) and kind of each log entry of the actor with
    after < seq <= until."""
    rows = connection.query(
        "SELECT at, change FROM log WHERE seq > ? AND seq <= ? AND actor_id = ? ORDER BY seq",
        (after, until, user_id),
    )
    return [(at, _kind_decoder.decode(change).type) for at, change in rows]


def days_of(connection: Connection, user_id: int) -> list[tuple[int, int]]:
    """Return the days (since 1970, in UTC) on which the user was active, and the messages that
    they sent then."""
    return connection.query(
        "SELECT usage_days.day, COALESCE(messages, 0) FROM usage_days LEFT JOIN usage_of_people"
        " ON usage_of_people.day = usage_days.day"
        " AND usage_of_people.user_id = usage_days.user_id"
        " WHERE usage_days.user_id = ? ORDER BY usage_days.day",
        (user_id,),
    )


def presence_of(connection: Connection, user_id: int) -> tuple[int, int] | None:
    """Return when the user was last active and last idle (UNIX seconds; 0 for never)."""
    rows = connection.query("SELECT active_at, idle_at FROM presence WHERE user_id = ?", (user_id,))
    return rows[0] if rows else None


def times_of(subscriptions: Iterable[Subscription], connection: Connection) -> dict[int, int]:
    """Return when the newest message up to each beginning and end of the subscriptions was sent
    (UNIX seconds), by message ID. IDs before the first message are left out."""
    ids = {
        message_id
        for subscription in subscriptions
        for span in subscription.spans
        for message_id in span
    }
    result: dict[int, int] = {}
    for message_id in ids - {None, 0}:
        rows = connection.query(
            "SELECT sent_at FROM messages WHERE id <= ? ORDER BY id DESC LIMIT 1", (message_id,)
        )
        result.update({int(message_id or 0): int(at) for (at,) in rows})
    return result


USAGE_TABLES: Final = {
    "presence": "user_id",
    "usage_days": "day",
    "usage_of_people": "day",
    "message_flags": "message_id",
    "read_state": "chunk",
    "record_state": "chunk",
    "queues": "id",
    "pushes": "conversation",
    "bot_storage": "name",
}
"""Tables with rows of a `user_id`, and a column that distinguishes them."""
_WEBHOOKS: Final = {"webhook_journal": "id", "webhook_deliveries": "id", "webhook_lanes": "bot_id"}
"""Tables with rows of a `bot_id`, and a column that distinguishes them."""
BATCH_SIZE: Final = 5000
"""Rows per transaction, so that others can write in between."""


def _forget_samples(connection: Connection, key: str) -> None:
    """Remove the samples from the report of an import, which have names and addresses."""
    stored = installation.value(connection, key)
    if stored is None:
        return
    progress = msgspec.json.decode(stored)
    report = progress.get("report", {})
    remarks = [*report.get("skipped", {}).values(), *report.get("changed", {}).values()]
    if any(remark.get("samples") for remark in remarks):
        for remark in remarks:
            remark["samples"] = []
        installation.put(connection, key, msgspec.json.encode(progress).decode())


def erase_rows(connection: Connection, user_id: int, bot_ids: Iterable[int]) -> bool:
    """Delete up to `BATCH_SIZE` rows with traces of an erased person in each table: presence,
    usage, flags, read state, queues, webhooks of their bots, and samples of imports. Return whether
    some may be left."""
    for key in (installation.IMPORT, installation.LIVE_IMPORT):
        _forget_samples(connection, key)
    targets = [(table, "user_id", column, user_id) for table, column in USAGE_TABLES.items()]
    for bot_id in bot_ids:
        targets += [(table, "bot_id", column, bot_id) for table, column in _WEBHOOKS.items()]
    is_more = False
    for table, owner, column, owner_id in targets:
        rows = connection.query(
            f"SELECT {column} FROM {table} WHERE {owner} = ? ORDER BY {column} LIMIT {BATCH_SIZE}",
            (owner_id,),
        )
        if rows:
            connection.run(
                f"DELETE FROM {table} WHERE {owner} = ? AND {column} >= ? AND {column} <= ?",
                (owner_id, rows[0][0], rows[-1][0]),
            )
        is_more = is_more or len(rows) == BATCH_SIZE
    return is_more
