"""For how long a request waits, and for what: plain numbers, for those that took too long."""

import time
from contextvars import ContextVar, Token
from types import TracebackType


class Waits:
    """Seconds that one request has waited."""

    __slots__ = ("client", "database")

    def __init__(self) -> None:
        self.client = 0.0
        """For what the client sends, and until it has taken the answer."""
        self.database = 0.0
        """For reads and commits, with waiting for their turn. Of what goes on at the same time,
        each counts."""


_current: ContextVar[Waits | None] = ContextVar("waits", default=None)


def counted_in(waits: Waits) -> Token[Waits | None]:
    """Count there, from now on, what the present task and those that it begins wait for."""
    return _current.set(waits)


def counted_no_more(token: Token[Waits | None]) -> None:
    """As it was before `counted_in`."""
    _current.reset(token)


class OnDatabase:
    """The time of the context is spent waiting for the database. It can be entered once."""

    __slots__ = ("_began",)

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        waits = _current.get()
        if waits is not None:
            waits.database += time.perf_counter() - self._began
