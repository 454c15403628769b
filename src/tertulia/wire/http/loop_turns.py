"""Turns at the event loop for responses that take long to make, such as that of POST /register.

People take turns, as at the database's reader threads (`tertulia.store.readers`). A response is
made in steps, and after each step, other requests can use the event loop for a while. So they wait
for one step at most, no matter how many such responses are requested.
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
"""The intended duration of a step."""
REST: Final = 1 / 3
"""How long others can use the loop after a step, as a fraction of the step's duration."""
MOST_WAITING: Final = 2_000
"""The most responses that may wait. Further ones are refused."""
SHARES: Final = 8
"""A person may use 1/`SHARES` of the remaining room."""
WAIT_SECONDS: Final = 30.0
"""How long a response may wait for its turn."""
ON_WAIT: Final = "on_wait"
"""The key in a request's ASGI state of a function that is called when the request waits for its
turn, because it doesn't use the node in the meantime."""
_LONGEST_RETRY: Final = 60
_DECAY: Final = 0.9


def _nothing() -> None:
    """Do nothing."""


def time_besides_steps() -> float:
    """Return the processor time of the event loop without steps. Others get their turn between
    steps, however many responses wait."""
    return time.thread_time() - LoopTurns.processor_time


class _Waiting(Struct, eq=False):
    asker: Requester
    turn: asyncio.Future[None]


class LoopTurns:
    """Lets responses take turns: one at a time, or several whose next steps usually fit in
    `STEP_SECONDS` together."""

    processor_time: ClassVar[float] = 0.0
    """The processor time of all steps of this process, in seconds."""

    def __init__(self) -> None:
        self._lines: dict[Person, deque[_Waiting]] = {}
        """The waiting responses, by person in the order of their turns."""
        self.waiting = 0
        self._running = 0
        self._usual_step = STEP_SECONDS
        """The duration of recent steps, in seconds. A long one counts immediately."""
        self._usual_turn = STEP_SECONDS
        """The mean duration of recent turns, in seconds."""
        self._owed = 0.0
        """The duration of the steps since others last used the loop."""
        self._resting: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[None]:
        """Wait for the requester's turn, which ends with the context. Raises TooOften if too many
        of the requester's responses wait, and Crowded if too many responses wait or the turn hasn't
        come after `WAIT_SECONDS`."""
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
        """Return what `make` returns, and record how long it took."""
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
        """Let others use the event loop between two steps of a turn."""
        await asyncio.sleep(self._take_owed())

    async def _begin(self, request: Request) -> None:
        asker = current_requester.get()
        line = self._lines.get(asker.person, ())
        room = MOST_WAITING - self.waiting
        if room <= 0:
            raise self._crowded()
        if len(line) >= max(room // SHARES, 1):
            raise TooOften(1, "You have too many requests in progress. Wait for some to finish.")
        waiter = _Waiting(asker, asyncio.get_running_loop().create_future())
        self._lines.setdefault(asker.person, deque()).append(waiter)
        self.waiting += 1
        self._give()
        if waiter.turn.done():
            return
        request.scope["state"].get(ON_WAIT, _nothing)()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await waiter.turn
        except BaseException as error:
            if waiter.turn.done() and not waiter.turn.cancelled() and not waiter.turn.exception():
                self._end()  # The turn came at the same moment.
            else:
                self._leave(waiter)
            if isinstance(error, TimeoutError):
                raise self._crowded() from None
            raise

    def _crowded(self) -> Crowded:
        seconds = math.ceil(len(self._lines) * self._usual_turn)
        return Crowded(min(max(seconds, 1), _LONGEST_RETRY))

    def _give(self) -> None:
        """Start waiting responses while there's room, one person after the other."""
        while self._lines and self._resting is None and self._has_room:
            person, line = next(iter(self._lines.items()))
            del self._lines[person]
            waiter = line.popleft()
            self.waiting -= 1
            if line:
                self._lines[person] = line  # The other people come first from now on.
            if waiter.turn.done():
                continue
            if waiter.asker.is_gone():
                waiter.turn.set_exception(Unavailable("The client closed the connection."))
                continue
            self._running += 1
            waiter.turn.set_result(None)

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

    def _leave(self, waiter: _Waiting) -> None:
        line = self._lines.get(waiter.asker.person)
        if line is not None and waiter in line:
            line.remove(waiter)
            self.waiting -= 1
            if not line:
                del self._lines[waiter.asker.person]
