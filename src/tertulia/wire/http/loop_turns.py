"""Turns at the event loop for responses that take long to make, such as that of POST /register.

People take turns, as at the database's reader threads (`tertulia.store.readers`). A response is
made in steps, and after each the event loop is left to other requests for a while. So others wait
for one step, no matter how many such responses are requested.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ClassVar, Final, TypeVar

from msgspec import Struct
from starlette.requests import Request

from tertulia.model.errors import TooOften, Unavailable
from tertulia.store.readers import Person, Requester, current_requester
from tertulia.wire.http.errors import Crowded

A = TypeVar("A")

STEP_SECONDS: Final = 0.015
"""The duration that a step is meant to have."""
REST: Final = 1 / 3
"""How long the loop is left to others after a step, as a part of the step's duration."""
MOST_WAITING: Final = 2_000
"""The number of responses that may wait; further ones are refused."""
SHARES: Final = 8
"""A person may use one part in this many of the remaining room."""
WAIT_SECONDS: Final = 30.0
"""How long a response may wait for its turn."""
ON_WAIT: Final = "on_wait"
"""The entry of a request's ASGI state to call when it waits for its turn, because nobody waits for
it in the meantime."""
_LONGEST_RETRY: Final = 60
_DECAY: Final = 0.9


def _nothing() -> None:
    """Do nothing."""


def time_besides_steps() -> float:
    """Return the processor time of the event loop except for steps, between which others get their
    turn, however many responses wait."""
    return time.thread_time() - LoopTurns.processor_time


class _Waiting(Struct, eq=False):
    asker: Requester
    turn: asyncio.Future[None]


class LoopTurns:
    """Lets responses take turns: one at a time, or several whose next steps usually fit in
    `STEP_SECONDS` together."""

    processor_time: ClassVar[float] = 0.0
    """Of all steps of this process, in seconds."""

    def __init__(self) -> None:
        self._lines: dict[Person, deque[_Waiting]] = {}
        """The responses that wait, by person in the order of their turns."""
        self.waiting = 0
        self._running = 0
        self._usual_step = STEP_SECONDS
        """The duration of recent steps, in seconds. A long one counts immediately."""
        self._usual_turn = STEP_SECONDS
        """The mean duration of recent turns, in seconds."""
        self._owed = 0.0
        """The duration of the steps since the loop was last left to others."""
        self._resting: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[None]:
        """Wait for the requester's turn, which ends with the context. Raises TooOften if too many
        of the requester's responses wait, and Crowded if too many of all people do or the turn
        hasn't come after `WAIT_SECONDS`."""
        await self._begin(request)
        began = time.perf_counter()
        try:
            yield
        finally:
            took = (time.perf_counter() - began) / self._running
            self._usual_turn += (took - self._usual_turn) * (1 - _DECAY)
            self._end()

    async def in_one_turn(self, request: Request, make: Callable[[], A]) -> A:
        """Return what `make` returns in a turn of one step. Raises as `turn`."""
        async with self.turn(request):
            return self.step(make)

    def step(self, make: Callable[[], A]) -> A:
        """Return what `make` returns, and note how long it took."""
        began, used = time.perf_counter(), time.thread_time()
        try:
            return make()
        finally:
            LoopTurns.processor_time += time.thread_time() - used
            took = time.perf_counter() - began
            self._owed += took
            usual = self._usual_step * _DECAY + took * (1 - _DECAY)
            self._usual_step = max(took, usual)

    async def rest(self) -> None:
        """Leave the event loop to others between two steps of a turn."""
        await asyncio.sleep(self._take_owed())

    async def _begin(self, request: Request) -> None:
        asker = current_requester.get()
        line = self._lines.get(asker.person, ())
        room = MOST_WAITING - self.waiting
        if room <= 0:
            raise self._crowded()
        if len(line) >= max(room // SHARES, 1):
            raise TooOften(1, "You have too many requests in progress. Wait for some to finish.")
        one = _Waiting(asker, asyncio.get_running_loop().create_future())
        self._lines.setdefault(asker.person, deque()).append(one)
        self.waiting += 1
        self._give()
        if one.turn.done():
            return
        request.scope["state"].get(ON_WAIT, _nothing)()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await one.turn
        except BaseException as error:
            if one.turn.done() and not one.turn.cancelled() and not one.turn.exception():
                self._end()  # It came at the same moment.
            else:
                self._leave(one)
            if isinstance(error, TimeoutError):
                raise self._crowded() from None
            raise

    def _crowded(self) -> Crowded:
        seconds = math.ceil(len(self._lines) * self._usual_turn)
        return Crowded(min(max(seconds, 1), _LONGEST_RETRY))

    def _give(self) -> None:
        """Let those begin that there is room for, one person after the other."""
        while self._lines and self._resting is None and self._has_room:
            person, line = next(iter(self._lines.items()))
            del self._lines[person]
            one = line.popleft()
            self.waiting -= 1
            if line:
                self._lines[person] = line  # The others come first from now on.
            if one.turn.done():
                continue
            if one.asker.is_gone():
                one.turn.set_exception(Unavailable("The client closed the connection."))
                continue
            self._running += 1
            one.turn.set_result(None)

    @property
    def _has_room(self) -> bool:
        return not self._running or (self._running + 1) * self._usual_step <= STEP_SECONDS

    def _end(self) -> None:
        self._running -= 1
        if self._resting is None and self._owed >= STEP_SECONDS:
            rest = self._take_owed()
            self._resting = asyncio.get_running_loop().call_later(rest, self._rested)
        self._give()

    def _rested(self) -> None:
        self._resting = None
        self._give()

    def _take_owed(self) -> float:
        owed, self._owed = self._owed * REST, 0.0
        return owed

    def _leave(self, one: _Waiting) -> None:
        line = self._lines.get(one.asker.person)
        if line is not None and one in line:
            line.remove(one)
            self.waiting -= 1
            if not line:
                del self._lines[one.asker.person]
