"""Keeping the search: which message has which words."""

from collections.abc import Callable, Iterable, Sequence

from tertulia.model.tokenizer import words_of
from tertulia.store.database import Connection

_BATCH = 5000

Searched = tuple[int, str, str | None]
"""A message's ID, content and topic (None or empty: none)."""


def add(connection: Connection, messages: Iterable[Searched]) -> None:
    """Make messages searchable that the search does not know yet."""
    dialect = connection.dialect
    connection.run_many(
        dialect.search_insert(),
        [
            dialect.search_row(message_id, words_of(content), words_of(topic or ""))
            for message_id, content, topic in messages
        ],
    )


def remove(connection: Connection, message_ids: Sequence[int]) -> None:
    """Let the search forget messages."""
    dialect = connection.dialect
    connection.run(dialect.search_delete(), (dialect.array(message_ids),))


def refresh(connection: Connection, message_ids: Sequence[int]) -> None:
    """Let the search know messages as they are now."""
    dialect = connection.dialect
    remove(connection, message_ids)
    rows = connection.query(
        f"SELECT id, content, topic FROM messages WHERE {dialect.among('id')}",
        (dialect.array(message_ids),),
    )
    add(connection, ((row[0], row[1], row[2]) for row in rows))


def add_all(connection: Connection, tell: Callable[[str], None]) -> None:
    """Make all messages searchable, when the search knows none."""
    ((count,),) = connection.query("SELECT COUNT(*) FROM messages")
    done, last = 0, 0
    while rows := connection.query(
        f"SELECT id, content, topic FROM messages WHERE id > ? ORDER BY id LIMIT {_BATCH}", (last,)
    ):
        add(connection, ((row[0], row[1], row[2]) for row in rows))
        done, last = done + len(rows), rows[-1][0]
        if done % (_BATCH * 20) == 0 or done == count:
            tell(f"Made {done:,} of {count:,} messages searchable")
