"""Turns of connections on which several requests wait, one behind the other.

The first request of a connection begins at once. Each that came with it begins when the one before
is answered, and no two of those in one turn of the event loop, whatever connections they are of. So
who asks for one thing waits for a single request of theirs at each step, and not for one of every
connection that has more.
"""

import asyncio
from collections import deque
from contextvars import Context
from typing import Protocol


class Waiting(Protocol):
    """A connection whose next request waits for its turn."""

    def begin_next(self) -> bool:
        """Begin it. False where there is none any more."""


class Turns:
    """Those of one server. To be used on its event loop."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._context = Context()
        """Of none of the requests before, which call this."""

    def want(self, connection: Waiting) -> None:
        """Its next request is to begin."""
        self._waiting.append(connection)
        if len(self._waiting) == 1:
            self._soon()

    def _soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._next, context=self._context)

    def _next(self) -> None:
        # It stays there until it has begun, so that `want` knows that there is a next turn.
        has_begun = False
        try:
            while self._waiting and not has_begun:
                try:
                    has_begun = self._waiting[0].begin_next()
                finally:
                    self._waiting.popleft()
        finally:
            # Also where one fails: the others are to go on.
            if self._waiting:
                self._soon()
