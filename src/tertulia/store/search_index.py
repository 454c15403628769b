"""The search index: which message has which words."""

from collections.abc import Callable, Iterable, Sequence

from tertulia.model.tokenizer import words_of
from tertulia.store.database import Connection

_BATCH = 5000

Searchable = tuple[int, str, str | None]
"""A message's ID, content and topic (None or empty: none)."""


def add(connection: Connection, messages: Iterable[Searchable]) -> None:
    """Add messages that the index does not have yet."""
    dialect = connection.dialect
    connection.run_many(
        dialect.search_insert(),
        [
            dialect.search_row(message_id, words_of(content), words_of(topic or ""))
            for message_id, content, topic in messages
        ],
    )


def remove(connection: Connection, message_ids: Sequence[int]) -> None:
    """Remove messages from the index."""
    dialect = connection.dialect
    connection.run(dialect.search_delete(), (dialect.array(message_ids),))


def refresh(connection: Connection, message_ids: Sequence[int]) -> None:
    """Index messages as they are now."""
    dialect = connection.dialect
    remove(connection, message_ids)
    rows = connection.query(
        f"SELECT id, content, topic FROM messages WHERE {dialect.among('id')}",
        (dialect.array(message_ids),),
    )
    add(connection, ((row[0], row[1], row[2]) for row in rows))


def add_all(connection: Connection, report: Callable[[str], None]) -> None:
    """Index all messages, when the index is empty."""
    ((count,),) = connection.query("SELECT COUNT(*) FROM messages")
    done, last = 0, 0
    while rows := connection.query(
        f"SELECT id, content, topic FROM messages WHERE id > ? ORDER BY id LIMIT {_BATCH}", (last,)
    ):
        add(connection, ((row[0], row[1], row[2]) for row in rows))
        done, last = done + len(rows), rows[-1][0]
        if done % (_BATCH * 20) == 0 or done == count:
            report(f"Made {done:,} of {count:,} messages searchable")
    for statement in connection.dialect.search_tidying():
        connection.run(statement)
