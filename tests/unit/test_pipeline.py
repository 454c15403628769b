"""Statements sent to PostgreSQL together."""

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
import uvloop
from psycopg.pq.abc import PGconn

from tertulia.model.changes import Entry, RealmChanged
from tertulia.store.installation import Position
from tertulia.store.notes import PresenceSeen
from tertulia.store.pipeline import _Exchange, grouped_inserts
from tertulia.store.postgres_dialect import PostgresDialect
from tertulia.store.store import Store, database_at
from tertulia.store.writing import Batch
from tests import postgres

UPSERT = "INSERT INTO t (a, b, c) VALUES (?, ?, ?) ON CONFLICT (a, b) DO UPDATE SET c = excluded.c"


@pytest.mark.parametrize(
    ("sql", "rows", "counts"),
    [
        ("INSERT INTO t (a, b) VALUES (?, ?)", [(n, "x") for n in range(19)], [8, 8, 3]),
        ("INSERT INTO t (a) VALUES (?)", [(n,) for n in range(150)], [64, 64, 8, 8, 6]),
        ("INSERT INTO t (a) VALUES (?) ON CONFLICT (a) DO NOTHING", [(1,), (1,)], [2]),
        (PostgresDialect().search_insert, [(1, "a", 1), (2, "b", 1)], [2]),
        (UPSERT, [(1, 1, 1), (1, 2, 1), (2, 1, 1)], [3]),
        # The second row would replace the first, which one statement refuses to do.
        (UPSERT, [(1, 1, 1), (1, 1, 2)], [1, 1]),
        # The first columns don't determine which row is updated instead.
        (UPSERT.replace("(a, b) DO", "(b) DO"), [(1, 1, 1), (1, 1, 2)], [1, 1]),
        (PostgresDialect().topic_search_insert, [("a", 1, "a"), ("b", 1, "b")], [2]),
        ("INSERT INTO t (a) SELECT ? WHERE TRUE", [(1,), (2,)], [1, 1]),
        ("INSERT INTO t (a) VALUES (?) RETURNING id", [(1,), (2,)], [1, 1]),
        (UPSERT + " + ?", [(1, 1, 1, 1), (2, 1, 1, 1)], [1, 1]),
        ("DELETE FROM t WHERE a = ?", [(1,), (2,)], [1, 1]),
        (UPSERT, [], []),
    ],
)
def test_rows_are_inserted_together_if_the_result_is_the_same(
    sql: str, rows: Sequence[Sequence[Any]], counts: list[int]
) -> None:
    statements = grouped_inserts(sql, rows)
    width = sql.count("?")
    assert [one.sql.count("?") for one in statements] == [count * width for count in counts]
    assert [value for one in statements for value in one.parameters] == [
        value for row in rows for value in row
    ]


async def test_rows_inserted_together_are_all_stored(postgres_url: str) -> None:
    with postgres.schema(postgres_url) as url:
        postgres.migrate_lent(url)
        store = Store(database_at(Path(), url))
        try:
            head = await store.look()
            position = Position(head.history, head.seq, head.batch)
            names = [f"{n}: it's \\ ? (ä)" for n in range(19)]
            entries = [
                Entry(head.seq + n, float(n), None, RealmChanged(values={"name": name}))
                for n, name in enumerate(names, 1)
            ]
            seen = (PresenceSeen(1, 5, 0), PresenceSeen(1, 6, 4), PresenceSeen(2, 7, 0))
            for batch in (Batch(entries[:9], {}, seen), Batch(entries[9:], {}, seen[2:])):
                growth = await store.begin(position)
                assert growth.entries == []
                await store.commit(batch)
                position = (await store.look()).position
            again = await store.begin(Position(head.history, head.seq, head.batch))
            assert again.entries == entries
            await store.rollback()
            rows = await store.read(
                lambda c: c.query("SELECT user_id, active_at, idle_at FROM presence ORDER BY 1")
            )
            assert rows == [(1, 6, 4), (2, 7, 0)]
        finally:
            await store.close()


class _CutOff:
    """A connection to a server that resets it in the middle of a response."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._client = socket.create_connection(listener.getsockname())
            self._server, _ = listener.accept()
        self.socket = self._client.fileno()

    def flush(self) -> int:
        self._server.send(b"half an answer")
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._server.close()
        return 0

    def consume_input(self) -> None:
        try:
            self._client.recv(1000)
        except ConnectionResetError as error:
            raise psycopg.OperationalError from error

    def is_busy(self) -> bool:
        return True

    def close(self) -> None:
        self._client.close()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_reset_in_the_middle_of_a_response_is_noticed(run: Callable[..., None]) -> None:
    """uvloop calls a reader once when a connection is reset, even if there is more to read."""

    async def ask() -> None:
        connection = _CutOff()
        exchange = _Exchange(cast(PGconn, connection), [True], patience=3600)
        try:
            with pytest.raises(psycopg.OperationalError):
                await asyncio.wait_for(exchange.done(), 60)
        finally:
            connection.close()

    run(ask())
