"""Consistency checks of the database, for `tertulia check`."""

from typing import NamedTuple

from tertulia.store.database import Connection


class Reference(NamedTuple):
    """A column whose values, unless NULL, are keys of another table."""

    table: str
    column: str
    target: str
    key: str = "id"


REFERENCES = (
    Reference("credentials", "user_id", "users"),
    Reference("personal_settings", "user_id", "users"),
    Reference("user_statuses", "user_id", "users"),
    Reference("quiet_times", "user_id", "users"),
    Reference("profile_values", "user_id", "users"),
    Reference("profile_values", "field_id", "profile_fields"),
    Reference("presence", "user_id", "users"),
    Reference("usage_days", "user_id", "users"),
    Reference("usage_of_people", "user_id", "users"),
    Reference("bot_storage", "user_id", "users"),
    Reference("feed_rounds", "feed_id", "feeds"),
    Reference("subscriptions", "user_id", "users"),
    Reference("subscriptions", "channel_id", "channels"),
    Reference("topics", "channel_id", "channels"),
    Reference("messages", "sender_id", "users"),
    Reference("messages", "channel_id", "channels"),
    Reference("messages", "topic_id", "message_topics"),
    Reference("message_topics", "channel_id", "channels"),
    Reference("topic_renames", "topic_id", "message_topics"),
    Reference("messages", "direct_id", "direct_conversations"),
    Reference("message_flags", "user_id", "users"),
    Reference("message_flags", "message_id", "messages"),
    Reference("reactions", "user_id", "users"),
    Reference("reactions", "message_id", "messages"),
    Reference("submessages", "sender_id", "users"),
    Reference("submessages", "message_id", "messages"),
    Reference("alert_words", "user_id", "users"),
    Reference("muted_users", "user_id", "users"),
    Reference("muted_users", "muted_id", "users"),
    Reference("read_state", "user_id", "users"),
    Reference("record_state", "user_id", "users"),
    Reference("queues", "user_id", "users"),
    Reference("attachment_messages", "attachment_id", "attachments"),
    Reference("attachment_messages", "message_id", "messages"),
    Reference("pending_previews", "message_id", "messages"),
    Reference("pins", "message_id", "messages"),
    Reference("recovery_codes", "user_id", "users"),
)


def dangling(connection: Connection) -> list[tuple[Reference, int]]:
    """Return the references to missing rows, with the number of such rows."""
    result: list[tuple[Reference, int]] = []
    for reference in REFERENCES:
        table, column, target, key = reference
        ((count,),) = connection.query(
            # The user ID 0 has the default settings.
            f"SELECT COUNT(*) FROM {table} WHERE {column} <> 0"
            f" AND NOT EXISTS (SELECT 1 FROM {target} WHERE {target}.{key} = {table}.{column})"
        )
        if count:
            result.append((reference, count))
    return result


class LogExtent(NamedTuple):
    """The log's bounds by its head and by its entries."""

    head: int
    pruned: int
    first: int | None
    last: int | None
    entries: int

    @property
    def is_contiguous(self) -> bool:
        if not self.entries:
            return self.head == self.pruned
        return (self.first, self.last, self.entries) == (
            self.pruned + 1,
            self.head,
            self.head - self.pruned,
        )


def extent(connection: Connection) -> LogExtent:
    ((head, pruned),) = connection.query("SELECT seq, pruned FROM head WHERE id = 1")
    ((first, last, entries),) = connection.query("SELECT MIN(seq), MAX(seq), COUNT(*) FROM log")
    return LogExtent(head, pruned, first, last, entries)


def unsearchable(connection: Connection) -> tuple[int, int]:
    """Return the number of messages, and of those that the search index lacks."""
    ((messages,),) = connection.query("SELECT COUNT(*) FROM messages")
    ((missing,),) = connection.query(connection.dialect.search_missing)
    return messages, missing
