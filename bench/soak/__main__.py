"""`python -m bench.soak [--minutes 20] [--clients 2000]`: an organization in use, with checks at
the end. Exits with 1 if a check fails."""

import argparse
import asyncio
import contextlib
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec

from bench import machine
from bench.serving import ROOT, BenchError, Running, environment, running, server_command
from bench.soak import checks, organization
from bench.soak.chart import Curve, Panel, drawn
from bench.soak.load import Job
from bench.soak.reference_clients import ReferenceClients
from bench.soak.server import allow_files, checked, complaints, queues, sampled
from tertulia.service.config import Config

WINDOW = 5.0
"""Seconds between two samples."""
FULL_CLIENTS = 20
"""The number of full clients."""
RATE = 40.0
"""Messages per second. With 2,000 clients, each message causes about 140 events."""
SETTLING_SECONDS = 200
"""The lifetime of abandoned queues and closed connections, in seconds: the idle timeout, the two
minutes that servers on one PostgreSQL wait for each other, and one run of the cleanup job."""
SPARE_FILES = 300
"""Open files of a process in addition to the clients' connections."""
QUANTITIES = ("pss", "rss", "heap", "fds", "threads", "cpu")


class Soak:
    """One run."""

    def __init__(self, options: argparse.Namespace, config: Config) -> None:
        self.options = options
        self.config = config
        self.windows: list[dict[str, Any]] = []
        self.wrong: list[str] = []
        self.verdict: dict[str, Any] = {}
        self.notes: dict[str, Any] = {}
        self._over = asyncio.Event()
        self._began = 0.0

    async def run(self) -> None:
        """Create the organization, serve it, and check the results."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._over.set)
        loop.add_signal_handler(signal.SIGTERM, self._over.set)
        clients, chance = self.options.clients, random.Random(self.options.seed)
        _print(f"founding an organization of {clients + FULL_CLIENTS:,} people")
        created = await organization.founded(self.config, clients, FULL_CLIENTS, chance)
        command = server_command(self.config.data_path, self.config.database_url)
        log = self.config.data_path / "serve.log"
        with running(command, log, rate_limits=True) as server:
            await self._serve(server, created)
        _print("checking the data directory")
        self.wrong += [f"tertulia check: {problem}" for problem in checked(self.config)]
        self.wrong += [f"the server logged: {line}" for line in complaints(self.config)[:20]]

    async def _serve(self, server: Running, created: organization.Organization) -> None:
        full_clients = ReferenceClients(server.port)
        await full_clients.begin(created.full)
        before = sampled(server.pid)
        job = Job(server.port, created, self.options.rate, WINDOW)
        async with _load(job) as (lines, say):
            _print(f"{self.options.clients:,} clients arrive")
            while (await _next(lines))["kind"] != "arrived":
                pass
            self._began = time.monotonic()
            following = asyncio.create_task(full_clients.follow())
            await self._watch(server, lines)
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
            _print("stopping, and holding what came against what was acknowledged")
            say("stop")
            while True:
                line = await _next(lines)
                if line["kind"] == "verdict":
                    self.verdict = line
                    break
            self.wrong += line["failures"]
            if line["failed"] > len(line["failures"]):
                self.wrong.append(f"and {line['failed'] - len(line['failures'])} more of the like")
            compared = await full_clients.compare()
            self.wrong += full_clients.failures
            await self._await_queues(server, {*line["queues"], *full_clients.queues})
            connected = sampled(server.pid)
            say("close")
        await full_clients.close()
        allowed = before.fds + checks.FILES
        await _settled(lambda: sampled(server.pid).fds <= allowed)
        after = sampled(server.pid)
        connections = line["connections"] + full_clients.connections
        self.wrong += checks.of_files(before.fds, connected.fds, connections, after.fds)
        note, wrong = checks.of_memory([(w["minutes"], w["heap"]) for w in self.windows])
        self.wrong += wrong
        self.notes |= {
            "memory": note,
            "files": f"{before.fds} open files before, {connected.fds} with {connections:,}"
            f" connections, {after.fds} after",
            "full_clients": f"{FULL_CLIENTS} full clients, {compared:,} messages with reactions",
        }

    async def _watch(self, server: Running, lines: asyncio.StreamReader) -> None:
        """Sample every few seconds until the time is over or a signal arrives."""
        used = sampled(server.pid).cpu
        until = self._began + self.options.minutes * 60
        over = asyncio.create_task(self._over.wait())
        while time.monotonic() < until and not over.done():
            coming = asyncio.create_task(_next(lines))
            await asyncio.wait({coming, over}, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                # Read the line to its end, so that nothing is lost.
                self.notes["ended"] = "early, by a signal"
            window = await coming
            try:
                sample = sampled(server.pid)
            except OSError:
                raise SystemExit("the server ended by itself") from None
            self.windows.append(
                {
                    **{name: value for name, value in window.items() if name != "kind"},
                    **{name: getattr(sample, name) for name in QUANTITIES},
                    "minutes": round((time.monotonic() - self._began) / 60, 3),
                    "server_cpu": (sample.cpu - used) / WINDOW,
                    "queues": len(queues(self.config)),
                }
            )
            used = sample.cpu
            _print(_progress(self.windows[-1]))
        over.cancel()

    async def _await_queues(self, server: Running, alive: set[str]) -> None:
        """Wait until queues without polls have expired by themselves."""
        await _settled(lambda: queues(self.config) == alive)
        stored = queues(self.config)
        self.wrong += checks.of_queues(stored, alive)
        self.notes["queues"] = f"{len(stored):,} queues in the database, {len(alive):,} alive"

    def figures(self) -> dict[str, Any]:
        """Return all results as JSON."""
        results = {
            n: v for n, v in self.verdict.items() if n in {"done", "put_off", "acknowledged", "due"}
        }
        return {
            "about": machine.described(self.config.data_path),
            "clients": self.options.clients,
            "rate": self.options.rate,
            "holds": not self.wrong,
            "wrong": self.wrong,
            "notes": self.notes,
            **results,
            "windows": self.windows,
        }

    def picture(self) -> str:
        """Return a chart of memory and latency over time."""

        def curve(name: str, quantity: str, unit: float = 1.0) -> Curve:
            points = [
                (w["minutes"], w[quantity] / unit)
                for w in self.windows
                if w.get(quantity) is not None
            ]
            return Curve(name, points)

        minutes = self.windows[-1]["minutes"] if self.windows else 0.0
        return drawn(
            f"{self.options.clients:,} clients for {minutes:.3g} minutes",
            f"{_mean(self.windows, 'sent'):.0f} messages and"
            f" {_mean(self.windows, 'events'):,.0f} delivered events each second;"
            " dotted: from here on memory must be flat",
            [
                Panel(
                    "Memory of the server",
                    "MiB",
                    [curve("all (PSS)", "pss", 1024), curve("heap", "heap", 1024)],
                ),
                Panel(
                    "From sending to delivery",
                    "ms",
                    [curve("median", "delivered_p50"), curve("99 of 100", "delivered_p99")],
                ),
            ],
        )

    def summary(self) -> str:
        """Return the final report."""
        lines = [f"  {note}" for note in self.notes.values()]
        if self.verdict:
            done = ", ".join(f"{n} {count:,}" for n, count in self.verdict["done"].items())
            lines.append(f"  done: {done}")
            lines.append(
                f"  {self.verdict['acknowledged']:,} messages acknowledged,"
                f" {self.verdict['due']:,} deliveries due to {self.verdict['watches']:,} queues"
            )
            if self.verdict["put_off"]:
                lines.append(
                    f"  {self.verdict['put_off']:,} things were not begun: the machine does not"
                    " sustain this --rate"
                )
        if self.wrong:
            lines.append(f"DOES NOT HOLD ({len(self.wrong)}):")
            lines += [f"  {wrong}" for wrong in self.wrong]
        else:
            lines.append("Everything holds.")
        return "\n".join(lines)


async def _settled(holds: Callable[[], bool]) -> None:
    """Wait until the condition is true, or so long that it never will be."""
    for _ in range(SETTLING_SECONDS):
        if holds():
            return
        await asyncio.sleep(1)


def _progress(w: dict[str, Any]) -> str:
    def milliseconds(name: str) -> str:
        return "-" if w[name] is None else f"{w[name]:.1f}"

    text = (
        f"{w['minutes']:5.1f} min  {w['pss'] / 1024:6.1f} MiB  {w['fds']} files"
        f"  {w['queues']} queues  {w['here']} wait  {w['sent']:.0f} sent/s"
        f"  {w['events']:,.0f} events/s  delivery {milliseconds('delivered_p50')} /"
        f" {milliseconds('delivered_p99')} ms  CPU {w['server_cpu']:.0%} + {w['load_cpu']:.0%}"
    )
    return text + (f"  FAILED {w['failed']}: {w['failure'][:200]}" if w["failed"] else "")


def _mean(windows: list[dict[str, Any]], name: str) -> float:
    total: float = sum(w[name] for w in windows)
    return total / max(len(windows), 1)


@contextlib.asynccontextmanager
async def _load(job: Job) -> AsyncIterator[tuple[asyncio.StreamReader, Any]]:
    """Yield the process with the clients: its output, and a function that sends it a command."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bench.soak.load"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment(rate_limits=True),
        cwd=ROOT,
        limit=1 << 26,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    speaking = process.stdin

    def say(word: str) -> None:
        speaking.write(word.encode() + b"\n")

    try:
        speaking.write(msgspec.json.encode(job) + b"\n")
        await speaking.drain()
        yield process.stdout, say
        await asyncio.wait_for(process.wait(), 60)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _next(lines: asyncio.StreamReader) -> dict[str, Any]:
    line = await lines.readline()
    if not line:
        raise SystemExit("the load generator ended by itself")
    said: dict[str, Any] = json.loads(line)
    return said


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the soak test, and report its result."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="how long (20)")
    parser.add_argument("--clients", type=int, default=2000, help="clients that wait (2000)")
    parser.add_argument("--rate", type=float, default=RATE, help=f"messages each second ({RATE:g})")
    parser.add_argument("--seed", type=int, default=1, help="of who lives where")
    parser.add_argument("--database-url", default="", metavar="URL", help="PostgreSQL; empty")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the curves there (SVG)")
    parser.add_argument(
        "--directory", type=Path, default=ROOT / "build", help="where the database is to lie"
    )
    options = parser.parse_args()
    allow_files(options.clients + SPARE_FILES)
    options.directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="soak-", dir=options.directory) as name:
        config = Config(data_dir=name, database_url=options.database_url)
        soak = Soak(options, config)
        try:
            asyncio.run(soak.run())
        except BenchError as error:
            raise SystemExit(str(error)) from None
        if options.json:
            options.json.write_text(json.dumps(soak.figures(), indent=2) + "\n")
        if options.picture:
            options.picture.write_text(soak.picture())
    _print(soak.summary())
    raise SystemExit(1 if soak.wrong else 0)


if __name__ == "__main__":
    main()
