"""The migrations of the database: one list for SQLite and PostgreSQL, applied in order, never
edited.

The schema version is the number of applied migrations. Nodes of two versions may serve together, so
what a migration removes from the older version waits until its nodes are gone: see `Expand` and
`Contract`.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from tertulia.store import search_index
from tertulia.store.database import Connection
from tertulia.store.dialect import Dialect

Report = Callable[[str], None]
Step = str | Callable[[Connection, Report], None]
"""A statement, or a function for what SQL can't do, which may report its progress."""
Migration = Callable[[Dialect], Sequence[Step]]
"""A migration. A plain function stops nodes of older versions, which notice it."""


@dataclass(frozen=True)
class _BesideOthers:
    migration: Migration

    def __call__(self, dialect: Dialect) -> Sequence[Step]:
        return self.migration(dialect)


class Expand(_BesideOthers):
    """A migration that the previous version works with, too: a new table, an index, a column
    with a default. It mustn't delay nodes that serve, so it waits only seconds for locks."""


class Contract(_BesideOthers):
    """A migration that removes what neither this version nor the previous one uses. It runs once
    no node of an older version is left."""


def records(table: str, *keys: str) -> str:
    columns = ", ".join(f"{key} NOT NULL" for key in keys)
    names = ", ".join(key.split()[0] for key in keys)
    return f"CREATE TABLE {table} ({columns}, doc TEXT NOT NULL, PRIMARY KEY ({names}))"


def _tables(*statements: str) -> Migration:
    return lambda _: statements


def _nouns_log_and_messages(dialect: Dialect) -> Sequence[str]:
    return (
        "CREATE TABLE head (id BIGINT PRIMARY KEY, seq BIGINT NOT NULL, pruned BIGINT NOT NULL)",
        "INSERT INTO head (id, seq, pruned) VALUES (1, 0, 0)",
        f"CREATE TABLE log (seq BIGINT PRIMARY KEY, at {dialect.real} NOT NULL,"
        " actor_id BIGINT, change TEXT NOT NULL)",
        records("realm", "id BIGINT"),
        records("users", "id BIGINT"),
        records("credentials", "user_id BIGINT"),
        records("personal_settings", "user_id BIGINT"),
        records("user_groups", "id BIGINT"),
        records("channels", "id BIGINT"),
        records("subscriptions", "channel_id BIGINT", "user_id BIGINT"),
        records("topics", "channel_id BIGINT", "key TEXT"),
        records("direct_conversations", "id BIGINT"),
        records("counters", "id BIGINT"),
        "CREATE TABLE messages (id BIGINT PRIMARY KEY, sender_id BIGINT NOT NULL,"
        " sent_at BIGINT NOT NULL, channel_id BIGINT, topic TEXT, topic_key TEXT,"
        " direct_id BIGINT, content TEXT NOT NULL, rendered TEXT NOT NULL, client TEXT NOT NULL,"
        " has_link INTEGER NOT NULL, has_image INTEGER NOT NULL, has_attachment INTEGER NOT NULL,"
        " is_me INTEGER NOT NULL, mentions_all INTEGER NOT NULL)",
        "CREATE INDEX messages_by_topic ON messages (channel_id, topic_key, id)",
        "CREATE INDEX messages_by_channel ON messages (channel_id, id)",
        "CREATE INDEX messages_by_direct ON messages (direct_id, id)",
        "CREATE INDEX messages_by_sender ON messages (sender_id, id)",
        "CREATE INDEX messages_by_time ON messages (sent_at)",
        "CREATE INDEX messages_to_all ON messages (id) WHERE mentions_all = 1",
        "CREATE INDEX messages_direct ON messages (id) WHERE direct_id IS NOT NULL",
        "CREATE TABLE message_flags (user_id BIGINT NOT NULL, message_id BIGINT NOT NULL,"
        " flags BIGINT NOT NULL, PRIMARY KEY (user_id, message_id))",
        f"CREATE TABLE read_state (user_id BIGINT NOT NULL, chunk BIGINT NOT NULL,"
        f" bitmap {dialect.blob} NOT NULL, PRIMARY KEY (user_id, chunk))",
        "CREATE TABLE queues (id TEXT PRIMARY KEY, user_id BIGINT NOT NULL,"
        " seen_at BIGINT NOT NULL, doc TEXT NOT NULL)",
        "CREATE TABLE presence (user_id BIGINT PRIMARY KEY, active_at BIGINT NOT NULL,"
        " idle_at BIGINT NOT NULL)",
    )


def _counters_by_name(dialect: Dialect) -> Sequence[str]:
    return (
        "ALTER TABLE counters RENAME TO counters_before",
        records("counters", "name TEXT"),
        "INSERT INTO counters (name, doc) SELECT 'messages',"
        ' REPLACE(doc, \'"last_message_id"\', \'"name":"messages","last"\')'
        " FROM counters_before WHERE doc LIKE '%last_message_id%'",
        "DROP TABLE counters_before",
    )


def _profiles(dialect: Dialect) -> Sequence[str]:
    return (
        records("user_statuses", "user_id BIGINT"),
        records("profile_fields", "id BIGINT"),
        records("profile_values", "user_id BIGINT", "field_id BIGINT"),
        "CREATE TABLE usage_days (user_id BIGINT NOT NULL, day BIGINT NOT NULL,"
        " PRIMARY KEY (user_id, day))",
    )


def _edits(dialect: Dialect) -> Sequence[str]:
    return (
        "CREATE TABLE message_edits (message_id BIGINT NOT NULL, seq BIGINT NOT NULL,"
        " at BIGINT NOT NULL, user_id BIGINT, was_content TEXT, was_rendered TEXT,"
        " was_topic TEXT, topic TEXT, was_channel_id BIGINT, channel_id BIGINT,"
        " PRIMARY KEY (message_id, seq))",
        "CREATE INDEX message_flags_by_message ON message_flags (message_id)",
    )


def _reactions_and_widgets(dialect: Dialect) -> Sequence[str]:
    return (
        # `seq` is the entry that added it, and determines the order.
        "CREATE TABLE reactions (message_id BIGINT NOT NULL, user_id BIGINT NOT NULL,"
        " kind TEXT NOT NULL, code TEXT NOT NULL, name TEXT NOT NULL, neutral INTEGER NOT NULL,"
        " seq BIGINT NOT NULL, PRIMARY KEY (message_id, user_id, kind, code))",
        "CREATE TABLE submessages (id BIGINT PRIMARY KEY, message_id BIGINT NOT NULL,"
        " sender_id BIGINT NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL)",
        "CREATE INDEX submessages_by_message ON submessages (message_id, id)",
        records("custom_emoji", "id BIGINT"),
        records("alert_words", "user_id BIGINT"),
        records("muted_users", "user_id BIGINT", "muted_id BIGINT"),
    )


def _mails_and_invitations(dialect: Dialect) -> Sequence[str]:
    return (
        records("invitations", "id BIGINT"),
        records("confirmations", "id BIGINT"),
        f"CREATE TABLE mails (id TEXT PRIMARY KEY, asked_at {dialect.real} NOT NULL,"
        f" due_at {dialect.real} NOT NULL, attempts BIGINT NOT NULL, trouble TEXT NOT NULL,"
        " doc TEXT NOT NULL)",
        "CREATE INDEX mails_by_time ON mails (due_at)",
    )


def _search_by_our_words(dialect: Dialect) -> Sequence[Step]:
    return (*dialect.search_schema, search_index.add_all)


def _parts(dialect: Dialect) -> Sequence[str]:
    return tuple(
        f"CREATE INDEX messages_with_{part} ON messages (id) WHERE has_{part} = 1"
        for part in ("link", "image", "attachment")
    )


def _checkpoints(dialect: Dialect) -> Sequence[str]:
    return (
        f"CREATE TABLE checkpoints (id {dialect.counted}, number BIGINT NOT NULL,"
        " noun TEXT NOT NULL, doc TEXT NOT NULL)",
        "CREATE INDEX checkpoints_by_noun ON checkpoints (number, noun)",
    )


def _history(dialect: Dialect) -> Sequence[Step]:
    return (
        "ALTER TABLE log ADD COLUMN batch TEXT NOT NULL DEFAULT ''",
        *(
            f"ALTER TABLE head ADD COLUMN {name} TEXT NOT NULL DEFAULT ''"
            for name in ("history", "batch", "noted")
        ),
        *(
            f"ALTER TABLE head ADD COLUMN {name} BIGINT NOT NULL DEFAULT 0"
            for name in ("schema_version", "log_format")
        ),
        # Existing queues stay valid.
        lambda connection, _: connection.run(
            "UPDATE head SET history = ?", (secrets.token_hex(8),)
        ),
    )


def _records_of_moved_messages(dialect: Dialect) -> Sequence[str]:
    return (
        f"CREATE TABLE record_state (user_id BIGINT NOT NULL, chunk BIGINT NOT NULL,"
        f" bitmap {dialect.blob} NOT NULL, PRIMARY KEY (user_id, chunk))",
        "CREATE INDEX record_state_by_chunk ON record_state (chunk)",
    )


def _nodes(dialect: Dialect) -> Sequence[str]:
    return (
        "CREATE TABLE nodes (name TEXT PRIMARY KEY, run TEXT NOT NULL UNIQUE,"
        f" started_at {dialect.real} NOT NULL, seen_at {dialect.real} NOT NULL,"
        " entry TEXT NOT NULL, figures TEXT NOT NULL, wanted TEXT NOT NULL)",
    )


def _bot_storage(dialect: Dialect) -> Sequence[str]:
    return (
        "CREATE TABLE bot_storage (user_id BIGINT NOT NULL, name TEXT NOT NULL,"
        " value TEXT NOT NULL, PRIMARY KEY (user_id, name))",
    )


def _notices(dialect: Dialect) -> Sequence[str]:
    return (
        "CREATE TABLE notices (way TEXT NOT NULL, message_id BIGINT NOT NULL,"
        f" due_at {dialect.real} NOT NULL, gives_up_at {dialect.real} NOT NULL,"
        f" conversation TEXT NOT NULL, people {dialect.blob} NOT NULL,"
        " PRIMARY KEY (way, message_id, due_at, gives_up_at))",
        "CREATE INDEX notices_by_time ON notices (way, due_at)",
        "CREATE INDEX notices_by_conversation ON notices (way, conversation)",
        "CREATE TABLE notice_cursor (id BIGINT PRIMARY KEY, seq BIGINT NOT NULL,"
        f" holder TEXT NOT NULL, held_until {dialect.real} NOT NULL)",
        # Existing messages cause no notifications.
        "INSERT INTO notice_cursor (id, seq, holder, held_until)"
        " SELECT 1, seq, '', 0 FROM head WHERE id = 1",
    )


def _webhooks(dialect: Dialect) -> Sequence[str]:
    return (
        f"CREATE TABLE webhook_journal (id {dialect.counted}, bot_id BIGINT NOT NULL,"
        " doc TEXT NOT NULL)",
        "CREATE INDEX webhook_journal_by_bot ON webhook_journal (bot_id, id)",
        # One bot's service doesn't wait for another's: see `service_calls`.
        f"CREATE TABLE webhook_deliveries (id TEXT PRIMARY KEY, bot_id BIGINT NOT NULL,"
        f" message_id BIGINT NOT NULL, asked_at {dialect.real} NOT NULL,"
        " attempts BIGINT NOT NULL, doc TEXT NOT NULL)",
        "CREATE INDEX webhook_deliveries_by_bot ON webhook_deliveries (bot_id, message_id)",
        f"CREATE TABLE webhook_lanes (bot_id BIGINT PRIMARY KEY, due_at {dialect.real} NOT NULL,"
        " failures BIGINT NOT NULL, lease TEXT NOT NULL)",
        "CREATE INDEX webhook_lanes_by_time ON webhook_lanes (due_at)",
    )


def _feeds(dialect: Dialect) -> Sequence[str]:
    return (
        records("feeds", "id BIGINT"),
        f"CREATE TABLE feed_rounds (feed_id BIGINT PRIMARY KEY, due_at {dialect.real} NOT NULL,"
        " lease TEXT NOT NULL, doc TEXT NOT NULL)",
    )


def _usage_counts(dialect: Dialect) -> Sequence[str]:
    return (
        "CREATE TABLE usage_periods (days BIGINT NOT NULL, begin_day BIGINT NOT NULL,"
        " people BIGINT NOT NULL, messages BIGINT NOT NULL, PRIMARY KEY (days, begin_day))",
        "CREATE TABLE usage_of_people (day BIGINT NOT NULL, user_id BIGINT NOT NULL,"
        " messages BIGINT NOT NULL, PRIMARY KEY (day, user_id))",
        "CREATE TABLE usage_of_channels (day BIGINT NOT NULL, channel_id BIGINT NOT NULL,"
        " messages BIGINT NOT NULL, PRIMARY KEY (day, channel_id))",
        "CREATE TABLE usage_of_files (channel_id BIGINT PRIMARY KEY, files BIGINT NOT NULL,"
        " bytes BIGINT NOT NULL)",
        "CREATE INDEX usage_days_by_day ON usage_days (day, user_id)",
    )


def _failing_since(dialect: Dialect) -> Sequence[str]:
    return (
        f"ALTER TABLE webhook_lanes ADD COLUMN failing_since {dialect.real} NOT NULL DEFAULT 0",
        "ALTER TABLE webhook_lanes ADD COLUMN trouble TEXT NOT NULL DEFAULT ''",
        f"ALTER TABLE push_lanes ADD COLUMN failing_since {dialect.real} NOT NULL DEFAULT 0",
    )


def _mails_in_ranks(dialect: Dialect) -> Sequence[str]:
    return (
        "ALTER TABLE mails ADD COLUMN rank BIGINT NOT NULL DEFAULT 0",
        "CREATE INDEX mails_by_rank ON mails (rank, due_at)",
    )


def _pushes(dialect: Dialect) -> Sequence[str]:
    return (
        records("push_subscriptions", "id BIGINT"),
        # Notifications sent to one program, by conversation: see `pushes`.
        "CREATE TABLE pushes (subscription_id BIGINT NOT NULL, conversation TEXT NOT NULL,"
        " user_id BIGINT NOT NULL, wanted TEXT NOT NULL, version TEXT NOT NULL,"
        f" asked_at {dialect.real} NOT NULL, message_ids TEXT NOT NULL,"
        " PRIMARY KEY (subscription_id, conversation))",
        "CREATE INDEX pushes_by_user ON pushes (user_id)",
        f"CREATE TABLE push_lanes (subscription_id BIGINT PRIMARY KEY, due_at {dialect.real},"
        f" failures BIGINT NOT NULL, lease TEXT NOT NULL, pushed_at {dialect.real} NOT NULL,"
        " trouble TEXT NOT NULL)",
        "CREATE INDEX push_lanes_by_time ON push_lanes (due_at)",
    )


def _authors_and_parts_by_channel(dialect: Dialect) -> Sequence[str]:
    """Add indexes for the messages that one person wrote in a channel, and for those with links
    there."""
    return (
        "CREATE INDEX messages_by_author ON messages (sender_id, channel_id, id)",
        *(
            f"CREATE INDEX messages_with_{part}_by_channel ON messages (channel_id, id)"
            f" WHERE has_{part} = 1"
            for part in ("link", "image", "attachment")
        ),
    )


def _reported(text: str) -> Step:
    """Return a step that reports a long step, with the number of messages."""

    def tell(connection: Connection, report: Report) -> None:
        ((count,),) = connection.query("SELECT COUNT(*) FROM messages")
        if count:
            report(text.format(f"{count:,}"))

    return tell


def _topics_by_id(dialect: Dialect) -> Sequence[Step]:
    """Refer to topics by ID in messages, so that renaming one costs the same for any size."""
    return (
        f"CREATE TABLE message_topics (id {dialect.counted}, channel_id BIGINT NOT NULL,"
        " key TEXT NOT NULL, name TEXT NOT NULL, renamed_until BIGINT NOT NULL DEFAULT 0,"
        " renamed_seq BIGINT NOT NULL DEFAULT 0, UNIQUE (channel_id, key))",
        # Later topics have the number of the entry that began them, so these numbers are taken.
        "INSERT INTO message_topics (id, channel_id, key, name)"
        " SELECT -messages.id, channel_id, topic_key, topic FROM messages"
        " JOIN (SELECT MAX(id) AS newest FROM messages WHERE channel_id IS NOT NULL"
        " GROUP BY channel_id, topic_key) AS of_topic ON messages.id = of_topic.newest",
        "CREATE INDEX message_topics_by_key ON message_topics (key)",
        "CREATE TABLE topic_renames (topic_id BIGINT NOT NULL, seq BIGINT NOT NULL,"
        " at BIGINT NOT NULL, user_id BIGINT, was_topic TEXT NOT NULL, topic TEXT NOT NULL,"
        " last_message_id BIGINT NOT NULL, PRIMARY KEY (topic_id, seq))",
        records("topic_moves", "id BIGINT"),
        _reported("Giving {} messages the IDs of their topics"),
        "ALTER TABLE messages ADD COLUMN topic_id BIGINT",
        "ALTER TABLE messages ADD COLUMN topic_since BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE messages ADD COLUMN topic_name TEXT",
        "UPDATE messages SET topic_id = of_topic.id, topic_name = NULLIF(topic, of_topic.name)"
        " FROM message_topics AS of_topic"
        " WHERE of_topic.channel_id = messages.channel_id AND of_topic.key = messages.topic_key",
        "DROP INDEX messages_by_topic",
        "ALTER TABLE messages DROP COLUMN topic",
        "ALTER TABLE messages DROP COLUMN topic_key",
        "CREATE INDEX messages_by_topic ON messages (topic_id, id)",
        *dialect.topic_search_schema,
        search_index.add_all_topics,
    )


def search_by_place(dialect: Dialect) -> Sequence[Step]:
    if not dialect.search_places:
        return ()
    return _reported("Dividing the search index of {} messages by channel"), *dialect.search_places


def _audit_log(dialect: Dialect) -> Sequence[str]:
    searched = ("kind", "actor_id", "user_id", "actor_id, kind", "user_id, kind")
    return (
        "CREATE TABLE audit_log (id BIGINT PRIMARY KEY, record TEXT NOT NULL UNIQUE,"
        f" at {dialect.real} NOT NULL, kind TEXT NOT NULL, actor_id BIGINT, user_id BIGINT,"
        " doc TEXT NOT NULL)",
        *(
            f"CREATE INDEX audit_log_by_{columns.replace(', ', '_and_')}"
            f" ON audit_log ({columns}, id)"
            for columns in searched
        ),
    )


def _used_secrets(dialect: Dialect) -> Sequence[str]:
    return (
        f"CREATE TABLE used_secrets (digest TEXT PRIMARY KEY, until {dialect.real} NOT NULL)",
        "CREATE INDEX used_secrets_by_end ON used_secrets (until)",
    )


MIGRATIONS: tuple[Migration, ...] = (
    _nouns_log_and_messages,
    attrgetter("first_search_schema"),
    _counters_by_name,
    _tables(
        records("drafts", "id BIGINT"),
        records("snippets", "id BIGINT"),
        records("scheduled_messages", "id BIGINT"),
        records("reminders", "id BIGINT"),
        records("navigation_views", "id BIGINT"),
        records("devices", "id BIGINT"),
        records("push_tokens", "id BIGINT"),
    ),
    _edits,
    _tables(
        records("channel_folders", "id BIGINT"),
        records("user_topics", "user_id BIGINT", "channel_id BIGINT", "key TEXT"),
    ),
    _profiles,
    _tables(
        records("domains", "id BIGINT"),
        records("linkifiers", "id BIGINT"),
        records("playgrounds", "id BIGINT"),
        records("default_channel_groups", "id BIGINT"),
        records("onboarding_steps", "user_id BIGINT", "name TEXT"),
    ),
    _reactions_and_widgets,
    _tables(
        records("attachments", "id BIGINT"),
        records("attachment_messages", "attachment_id BIGINT", "message_id BIGINT"),
        records("removed_files", "id BIGINT"),
    ),
    _mails_and_invitations,
    _tables(records("pending_previews", "message_id BIGINT")),
    _tables(records("sessions", "id BIGINT")),
    _search_by_our_words,
    _parts,
    attrgetter("search_tuning"),
    _checkpoints,
    _history,
    _records_of_moved_messages,
    _nodes,
    Expand(_bot_storage),
    Expand(_notices),
    Expand(_tables(records("agent_keys", "id BIGINT"))),
    Expand(_mails_in_ranks),
    Expand(_webhooks),
    Expand(_pushes),
    Expand(_feeds),
    Expand(_usage_counts),
    Expand(_tables(records("banners", "id BIGINT"))),
    Expand(_failing_since),
    Expand(_tables(records("quiet_times", "user_id BIGINT"))),
    Expand(_tables(records("pins", "message_id BIGINT"))),
    Expand(attrgetter("search_patience")),
    Expand(_authors_and_parts_by_channel),
    _topics_by_id,
    Expand(attrgetter("search_deletions")),
    Expand(_tables(records("data_exports", "id BIGINT"))),
    search_by_place,
    Expand(_tables(records("identities", "id BIGINT"))),
    Expand(
        _tables(records("second_factors", "id BIGINT"), records("recovery_codes", "user_id BIGINT"))
    ),
    Expand(_audit_log),
    Expand(_tables(records("data_imports", "id BIGINT"))),
    Expand(_used_secrets),
    Expand(_tables(records("call_accounts", "user_id BIGINT"))),
    # The newest message that a phone was notified about.
    Expand(_tables("ALTER TABLE pushes ADD COLUMN shown_to BIGINT NOT NULL DEFAULT 0")),
)

SEARCHED_BY_OUR_WORDS = MIGRATIONS.index(_search_by_our_words) + 1
"""Since this schema version, `tertulia.store.search_index` fills the search index."""

WITH_TOPIC_IDS = MIGRATIONS.index(_topics_by_id) + 1
"""Since this schema version, topics have a search index."""

WITH_HISTORY = MIGRATIONS.index(_history) + 1
"""Since this schema version, the log's head has its history and the versions."""


WITH_NODES = MIGRATIONS.index(_nodes) + 1
"""Since this schema version, nodes are listed and two versions can serve together."""
