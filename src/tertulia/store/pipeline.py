"""Pipelined statements on PostgreSQL, sent and answered together on the event loop.

A round trip and a thread's turn take longer than most statements. So a transaction on the log takes
two round trips: one begins it and locks the head, the other writes everything and commits.
"""

import asyncio
import re
import select
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from tertulia.store.database import Row, TextRow

_NAMED = 400
"""The most statements prepared on a connection."""
_TOGETHER = 8
_MANY_TOGETHER = 64
"""The most rows inserted by one statement: up to 8, or 64 at a time if there are more. Each number
of rows is a separate statement to prepare."""
_INSERT = re.compile(
    r"(?P<begin>INSERT INTO \w+ \((?P<columns>[\w, ]+)\) VALUES )"
    r"(?P<row>\((?:[^()]|\((?:[^()]|\([^()]*\))*\))+\))"
    r"(?P<end>(?: ON CONFLICT(?: \((?P<keys>[\w, ]+)\))? DO [^?]+)?)"
)
"""A statement that inserts one row and returns nothing."""
_NAME_LENGTH = 50
"""The number of characters of a statement that its name shows. PostgreSQL keeps 63 bytes."""


_READERS: Mapping[int, Callable[[bytes], Any]] = {
    17: lambda text: bytes.fromhex(text[2:].decode()),
    20: int,
    21: int,
    23: int,
    700: float,
    701: float,
}
"""Functions that decode text, by PostgreSQL's type numbers, which never change."""


class Statement(NamedTuple):
    """A statement and its parameters."""

    sql: str
    parameters: Sequence[Any] = ()


class EncodedStatement(NamedTuple):
    """A statement with parameters in PostgreSQL's text format."""

    sql: str
    parameters: Sequence[bytes | None]


class QueryResult(NamedTuple):
    """The result of a statement."""

    rows: list[TextRow]
    tag: bytes
    """The command, such as `INSERT 0 1`."""
    types: list[int]
    """PostgreSQL's type numbers of the columns."""

    def typed(self) -> list[Row]:
        """Return the rows with numbers and bytes decoded, and all else as text."""
        readers = [_READERS.get(kind, bytes.decode) for kind in self.types]
        return [
            tuple(
                None if value is None else read(value)
                for value, read in zip(row, readers, strict=True)
            )
            for row in self.rows
        ]


class Unencodable(Exception):
    """A value can't be encoded as text."""


class PipelineTimeout(Exception):
    """The server didn't answer in time."""


class Pipeline:
    """Pipelines of one connection, one at a time. Nothing else may use it in the meantime."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._driver = connection
        self._names: dict[str, bytes] = {}
        self.carried_out = 0
        """The number of the last statements that are known to have run."""

    async def exchange(
        self, statements: Sequence[EncodedStatement], patience: float
    ) -> list[QueryResult]:
        """Send the statements and return their results once all have arrived. Raise the driver's
        error for the first that failed, after which none ran, without `sqlstate` if the connection
        is lost. Raise PipelineTimeout if nothing arrives for `patience` seconds. After an exception
        the connection must be closed."""
        connection = self._driver.pgconn  # Replaced when the driver's connection is closed.
        expected = self._send(connection, statements)
        exchange = _Exchange(connection, expected, patience)
        try:
            answers = await exchange.done()
        finally:
            self.carried_out = len(exchange.answers)
        connection.exit_pipeline_mode()
        return answers

    def _send(self, connection: PGconn, statements: Sequence[EncodedStatement]) -> list[bool]:
        """Queue the statements. Return whether each coming result belongs to one of them, because
        preparing a statement has a result, too."""
        expected = list[bool]()
        connection.enter_pipeline_mode()
        for sql, values in statements:
            name = self._names.get(sql)
            if name is None:
                numbered = _numbered(sql)
                if len(self._names) >= _NAMED:
                    connection.send_query_params(numbered, values)
                    expected.append(True)
                    continue
                name = f"{len(self._names)} {sql[:_NAME_LENGTH]}".encode()
                self._names[sql] = name
                connection.send_prepare(name, numbered)
                expected.append(False)
            connection.send_query_prepared(name, values)
            expected.append(True)
        connection.pipeline_sync()
        return expected


def has_ended(socket: int) -> bool:
    """Return whether the other side has reset the connection. What came before can still be read,
    but uvloop doesn't call the reader again."""
    poll = select.poll()
    poll.register(socket, 0)  # Errors and hang-ups are always reported.
    return bool(poll.poll(0))


class _Exchange:
    """A pipeline in progress."""

    def __init__(self, connection: PGconn, expected: list[bool], patience: float) -> None:
        self._connection = connection
        self._expected = expected
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[list[QueryResult]] = self._loop.create_future()
        self.answers: list[QueryResult] = []
        """The results received so far."""
        self._at = 0
        """The next expected result."""
        self._error: Exception | None = None
        self._heard = self._loop.time()
        self._timer = self._loop.call_later(patience, self._look)

    async def done(self) -> list[QueryResult]:
        """Return all results."""
        socket = self._connection.socket
        self._loop.add_reader(socket, self._readable)
        try:
            self._flush()
            return await self._done
        finally:
            self._timer.cancel()
            self._loop.remove_reader(socket)
            self._loop.remove_writer(socket)

    def _look(self) -> None:
        """Time out if nothing has arrived for too long."""
        late = self._heard + self._patience
        if self._loop.time() < late:
            self._timer = self._loop.call_at(late, self._look)
        elif not self._done.done():
            self._done.set_exception(PipelineTimeout())

    def _flush(self) -> None:
        try:
            if self._connection.flush():
                self._loop.add_writer(self._connection.socket, self._writable)
        except psycopg.Error as error:
            self._fail(error)

    def _writable(self) -> None:
        self._loop.remove_writer(self._connection.socket)
        self._flush()

    def _readable(self) -> None:
        if self._done.done():
            return
        self._heard = self._loop.time()
        try:
            self._connection.consume_input()
            self._take_answers()
            while not self._done.done() and has_ended(self._connection.socket):
                self._connection.consume_input()  # Raises once nothing is left.
                self._take_answers()
        except psycopg.Error as error:
            self._fail(error)

    def _take_answers(self) -> None:
        connection = self._connection
        while not connection.is_busy():
            result = connection.get_result()
            if result is None:
                self._at += 1
                if self._at > len(self._expected):
                    raise psycopg.OperationalError("the connection was lost")
                continue
            status = result.status
            if status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
                if self._expected[self._at]:
                    self.answers.append(_answer(result, status))
            elif status == ExecStatus.PIPELINE_SYNC:
                self._finish()
                return
            elif status != ExecStatus.PIPELINE_ABORTED and self._error is None:
                self._error = psycopg.errors.error_from_result(result)
                if self._connection.status != psycopg.pq.ConnStatus.OK:
                    self._finish()
                    return

    def _finish(self) -> None:
        if self._error is not None:
            self._fail(self._error)
        else:
            self._done.set_result(self.answers)

    def _fail(self, error: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(self._error or error)


def grouped_inserts(sql: str, rows: Iterable[Sequence[Any]]) -> list[Statement]:
    """Combine single-row inserts into statements with several rows, or return one statement for
    each row. Rows with equal keys stay apart, because they would conflict with each other."""
    rows = list(rows)
    parts = _insertion(sql)
    if parts is None or len(rows) == 1:
        return [Statement(sql, row) for row in rows]
    result = []
    first = 0
    while first < len(rows):
        most = _MANY_TOGETHER if len(rows) - first >= _MANY_TOGETHER else _TOGETHER
        some = rows[first : first + most]
        first += most
        if parts.keys and len({tuple(row[: parts.keys]) for row in some}) < len(some):
            result += [Statement(sql, row) for row in some]
        else:
            result.append(Statement(_multiplied(parts, len(some)), [*chain(*some)]))
    return result


class _Insertion(NamedTuple):
    """The parts of a statement that inserts one row."""

    begin: str
    row: str
    end: str
    keys: int
    """The leading columns that identify a conflicting row, or 0."""


@lru_cache(maxsize=2000)
def _insertion(sql: str) -> _Insertion | None:
    """Split the statement, or return None if it may mean something else for several rows."""
    match = _INSERT.fullmatch(sql)
    if match is None:
        return None
    begin, row, end = match.group("begin", "row", "end")
    if "DO UPDATE" not in end:
        return _Insertion(begin, row, end, 0)
    keys = (match["keys"] or "").split(", ")
    if keys != match["columns"].split(", ")[: len(keys)]:
        return None
    return _Insertion(begin, row, end, len(keys))


@lru_cache(maxsize=2000)
def _multiplied(parts: _Insertion, count: int) -> str:
    return parts.begin + ", ".join([parts.row] * count) + parts.end


def encoded(statements: Iterable[Statement]) -> list[EncodedStatement]:
    """Encode the statements. Raise Unencodable, and DataError for text that PostgreSQL can't
    store."""
    return [
        EncodedStatement(sql, [None if value is None else _encoded(value) for value in parameters])
        for sql, parameters in statements
    ]


def _answer(result: PGresult, status: int) -> QueryResult:
    rows, types = list[TextRow](), list[int]()
    if status == ExecStatus.TUPLES_OK:
        columns = range(result.nfields)
        rows = [
            tuple(result.get_value(row, column) for column in columns)
            for row in range(result.ntuples)
        ]
        types = [result.ftype(column) for column in columns]
    return QueryResult(rows, result.command_status or b"", types)


@lru_cache(maxsize=2000)
def _numbered(sql: str) -> bytes:
    """Replace question marks by numbered parameters."""
    first, *others = sql.split("?")
    return (first + "".join(f"${n}{part}" for n, part in enumerate(others, 1))).encode()


def _encoded(value: Any) -> bytes:
    """Encode a value as text. Raise Unencodable, and DataError for text that PostgreSQL can't
    store."""
    kind = type(value)
    if kind is str:
        if "\0" in value:
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        text: str = value
        return text.encode()
    if kind is int:
        return b"%d" % value
    if kind is float:
        return repr(value).encode()
    if kind is bytes:
        return f"\\x{value.hex()}".encode()
    if isinstance(value, int) and kind is not bool:
        return b"%d" % value
    if kind is list and all(type(item) is int for item in value):
        return b"{%s}" % b",".join([b"%d" % item for item in value])
    raise Unencodable(f"a {kind.__name__}")
