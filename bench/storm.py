"""Overload in a generator: far more requests than a server can handle."""

import heapq
import re
import time
from collections.abc import Callable
from typing import Any, Final

from bench.api import OK, REFUSED, BadAnswer
from bench.connections import Connection, Loop
from bench.fleet import Fleet, Waiter

EITHER: Final = frozenset({OK, REFUSED})
PROBE_PAUSE: Final = 0.1
"""Seconds between the delivery of a probe to everyone and the next probe."""
AGAIN: Final = 0.05
"""Seconds after which a refused probe is sent again."""
_RETRY_AFTER = re.compile(rb"\r\nretry-after: *(\d+)", re.IGNORECASE)


class Storm:
    """Clients that send the next request after each response, or when a refusal tells them to
    retry; a sender that occasionally sends a probe to a fleet; and the waiting fleet."""

    def __init__(
        self, loop: Loop, fleet: Fleet, port: int, requests: list[str], probe: str
    ) -> None:
        self._loop = loop
        self._fleet = fleet
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._end = self._begin = 0.0
        self._open = 0
        self._took: dict[bytes, list[float]] = {OK: [], REFUSED: []}
        self._heard: list[float] = []
        self._operations = 0
        self._lines = [Connection(loop, port, n, EITHER) for n in range(len(requests) + 1)]
        self._requests = [request.encode() for request in requests]
        self._probe = probe.encode()

    def rage(self, seconds: float) -> dict[str, Any]:
        """Run for this many seconds. The first fifth doesn't count."""
        start = time.perf_counter()
        self._begin, self._end = start + seconds / 5, start + seconds
        for line, request in zip(self._lines, self._requests, strict=False):
            self._drive(line, request)
        self._tell(self._lines[-1])
        while self._open or time.perf_counter() < self._end:
            now = time.perf_counter()
            while self._due and self._due[0][0] <= now:
                heapq.heappop(self._due)[2]()
            wait = self._due[0][0] - now if self._due else 1.0
            if not self._loop.turn(max(wait, 0.0)) and now > self._end + 60:
                raise BadAnswer("no answer within 60 seconds")
        drained = time.perf_counter() - self._end
        for line in self._lines:
            line.close()
        return {
            "operations": self._operations,
            "seconds": self._end - self._begin,
            "accepted": self._took[OK],
            "refused": self._took[REFUSED],
            "heard": self._heard,
            "drained": drained,
        }

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._due, (time.perf_counter() + seconds, self._number, do))

    def _drive(self, line: Connection, request: bytes) -> None:
        clock = time.perf_counter
        sent = 0.0

        def ask() -> None:
            nonlocal sent
            sent = clock()
            if sent < self._end:
                self._open += 1
                line.ask(request, heard)

        def heard(answer: bytes) -> None:
            now = clock()
            self._open -= 1
            self._operations += 1
            status = answer[9:12]
            if self._begin <= now < self._end:
                self._took[status].append(now - sent)
            if status == OK:
                ask()
                return
            match = _RETRY_AFTER.search(answer)
            if match is None:
                raise BadAnswer("a refusal does not say when to come again")
            self._later(float(match[1]), ask)

        ask()

    def _tell(self, line: Connection) -> None:
        """Send probes, each after all waiting clients have received the previous one."""
        clock = time.perf_counter
        got = 0
        sent = 0.0
        count = len(self._fleet.waiters)

        def ask() -> None:
            nonlocal sent
            sent = clock()
            if sent < self._end:
                self._open += 1
                line.ask(self._probe, answered)

        def answered(answer: bytes) -> None:
            if answer[9:12] == REFUSED:
                self._open -= 1
                self._later(AGAIN, ask)

        def heard(waiter: Waiter, messages: int) -> None:
            nonlocal got
            got += messages
            waiter.poll()
            if got == count:
                got = 0
                self._open -= 1
                if sent >= self._begin:
                    self._heard.append(clock() - sent)
                self._later(PROBE_PAUSE, ask)

        self._fleet.heard = heard
        ask()
