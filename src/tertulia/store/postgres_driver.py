"""psycopg's connection, with a deadline for every wait."""

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
    """The server didn't answer in time."""


class DeadlineConnection(psycopg.Connection[Row]):
    """A connection whose waits end at a deadline."""

    ends = float("inf")
    """The deadline, by the monotonic clock."""
    is_late = False
    """Whether a wait timed out, so the connection is unusable."""

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **keywords: Any) -> T:
        try:
            return super().wait(_until(gen, self.ends), *arguments, **keywords)
        except ServerTimeout:
            self.is_late = True  # The driver may raise another error.
            raise


def connect(conninfo: str) -> DeadlineConnection:
    """Connect in autocommit mode."""
    return DeadlineConnection.connect(conninfo, autocommit=True)


def _until(gen: Generator[Any, Any, T], ends: float) -> Generator[Wait, Ready | int, T]:
    """Run the driver's generator. Raise ServerTimeout when nothing is ready after the deadline."""
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
    """Yield the driver's steps until all results have arrived."""
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
