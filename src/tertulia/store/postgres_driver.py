"""psycopg's connection, with an end to every wait."""

import time
from collections.abc import Generator
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait

from tertulia.store.database import Row

T = TypeVar("T")


class ServerTimeout(Exception):
    """The server did not answer in time."""


class DeadlineConnection(psycopg.Connection[Row]):
    """The driver's connection, with a time at which every wait for the server ends."""

    ends = float("inf")
    """By the monotonic clock."""
    is_late = False
    """Whether a wait ended so: the connection is of no use any more."""

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **keywords: Any) -> T:
        try:
            return super().wait(_until(gen, self.ends), *arguments, **keywords)
        except ServerTimeout:
            self.is_late = True  # The driver may have another error follow, of its own.
            raise


def connect(conninfo: str) -> DeadlineConnection:
    """A new connection, without transactions of its own."""
    return DeadlineConnection.connect(conninfo, autocommit=True)


def _until(gen: Generator[Any, Any, T], ends: float) -> Generator[Wait, Ready | int, T]:
    """The driver's steps; TooLate where there is nothing to read or write until the time."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > ends:
                raise ServerTimeout
            wanted = gen.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result


def drain(connection: PGconn) -> Generator[Wait, Ready, None]:
    """The driver's steps until what was sent is over, whatever came of it."""
    connection.flush()
    while True:
        connection.consume_input()
        while not connection.is_busy():
            if connection.get_result() is None:
                return
        yield Wait.R


@lru_cache(maxsize=2000)
def to_psycopg(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()
