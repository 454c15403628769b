"""The load generator: a process that sends requests as fast as responses arrive, over raw sockets.

`python -m bench.load` reads jobs from standard input, one line of JSON each, and prints a line of
results for each. It ends with its input. Its waiting clients wait all the time.
"""

import json
import os
import sys
import time
from typing import Any

from bench.api import BadAnswer
from bench.connections import Connection, Loop
from bench.fleet import Fleet
from bench.storm import Storm

WARM_UP = 0.15
"""The share of the time in which responses don't count."""


class Generator:
    """The jobs of a generator process. Each is a method."""

    def __init__(self) -> None:
        self.loop = Loop()
        self._fleets: dict[str, Fleet] = {}

    def requests(self, ports: list[int], requests: list[str], seconds: float) -> dict[str, Any]:
        """Send each request repeatedly on its own connection, to the ports in turn. Return the
        latencies in seconds. Continues until there are as many counted responses as connections."""
        clock = time.perf_counter
        lines = [
            Connection(self.loop, ports[number % len(ports)], number)
            for number in range(len(requests))
        ]
        latencies: list[float] = []
        count = size = 0
        left = len(lines)
        start = clock()
        begin, end = start + seconds * WARM_UP, start + seconds

        def drive(line: Connection, request: bytes) -> None:
            sent = clock()

            def heard(answer: bytes) -> None:
                nonlocal sent, count, size, left
                now = clock()
                count += 1
                size = len(answer)
                if sent >= begin:
                    latencies.append(now - sent)
                if now >= end and len(latencies) >= len(lines):
                    left -= 1
                    return
                sent = clock()
                line.ask(request, heard)

            line.ask(request, heard)

        for line, text in zip(lines, requests, strict=True):
            drive(line, text.encode())
        self.loop.until(lambda: left == 0)
        counted = clock() - begin
        for line in lines:
            line.close()
        return {"latencies": latencies, "seconds": counted, "operations": count, "bytes": size}

    def gather(self, name: str, port: int, people: list[str], send: str) -> dict[str, Any]:
        """Register a queue for each person and let them wait. One of them will send."""
        self._fleets[name] = Fleet(self.loop, port, people, send)
        return {"operations": len(people)}

    def storm(
        self, name: str, port: int, requests: list[str], probe: str, seconds: float
    ) -> dict[str, Any]:
        """Overload the server while the fleet waits; see `Storm`."""
        return Storm(self.loop, self._fleets[name], port, requests, probe).rage(seconds)

    def part(self, name: str) -> dict[str, Any]:
        """Disconnect the fleet."""
        self._fleets.pop(name).close()
        return {"operations": 0}

    def bursts(self, name: str, seconds: float) -> dict[str, Any]:
        """Send messages for this many seconds, each once everyone waits."""
        fleet = self._fleets[name]
        start = time.perf_counter()
        results: list[dict[str, float]] = []
        warm = 0
        with fleet.sending():
            while time.perf_counter() < start + seconds or len(results) == warm:
                results.append(fleet.burst())
                if time.perf_counter() < start + seconds * WARM_UP or not warm:
                    warm = len(results)
        operations = len(results) * len(fleet.waiters)
        return {"operations": operations, **{k: [o[k] for o in results[warm:]] for k in results[0]}}

    def cycles(self, name: str, seconds: float) -> dict[str, Any]:
        """Deliver and poll, sending each message once everyone waits."""
        with self._fleets[name].sending():
            result = self._fleets[name].cycles(seconds)
        return {"operations": result["answers"], **result}

    def flood(self, name: str, seconds: float) -> dict[str, Any]:
        """Deliver and poll, sending messages without a pause."""
        with self._fleets[name].sending():
            result = self._fleets[name].flood(seconds)
        return {"operations": result["answers"], **result}


def main() -> None:
    """Run the jobs from standard input."""
    generator = Generator()
    descriptor = sys.stdin.fileno()
    unread = b""
    is_over = False

    def asked() -> None:
        nonlocal unread, is_over
        data = os.read(descriptor, 1 << 20)
        is_over = not data
        unread += data

    generator.loop.watch(descriptor, asked)
    try:
        while not is_over:
            generator.loop.turn()
            while b"\n" in unread:
                line, _, unread = unread.partition(b"\n")
                sys.stdout.write(json.dumps(_done(generator, json.loads(line))) + "\n")
                sys.stdout.flush()
    except BadAnswer as error:
        raise SystemExit(f"The server's answer was not the one expected: {error}") from None


def _done(generator: Generator, job: dict[str, Any]) -> dict[str, Any]:
    used, start = time.process_time(), time.perf_counter()
    result: dict[str, Any] = getattr(generator, job.pop("job"))(**job)
    used = time.process_time() - used
    return {**result, "generator": used / (time.perf_counter() - start)}


if __name__ == "__main__":
    main()
