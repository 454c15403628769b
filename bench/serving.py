"""Processes that the benchmark starts: the server, the bare protocol, and generators."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bench import api, processes

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE = 120.0
"""The longest wait for a server's response, in seconds."""


class BenchError(Exception):
    """A measurement isn't possible. `str(error)` is shown to the user."""


class _Talking:
    """A process that answers each line of its standard input with one line of JSON."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input: IO[str] = process.stdin
        self._output: IO[str] = process.stdout
        self._process = process

    def ask(self, text: str) -> dict[str, Any]:
        """Send a line and return the answer. Raises BenchError if the process has ended."""
        self._input.write(f"{text}\n")
        self._input.flush()
        line = self._output.readline()
        if not line:
            raise BenchError(f"A process ended ({self._process.wait()}); see above.")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Running(_Talking):
    """A listening process."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        super().__init__(process)
        self.port, self.pid = port, process.pid
        self.processes: Sequence[int] = processes.family(process.pid)
        """The server's processes when it was ready: itself and its workers."""

    def cpu(self) -> float:
        """Return the processor time so far, in seconds."""
        return sum(map(processes.cpu, self.processes))


def environment(*, rate_limits: bool = False) -> dict[str, str]:
    """Return the environment of a server from this source with default settings, except for rate
    limits."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TERTULIA_")}
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    return {**kept, "PYTHONPATH": path, "TERTULIA_RATE_LIMITS": str(rate_limits).lower()}


def server_command(data_dir: Path, database_url: str = "", *more: str) -> list[str]:
    """Return the command that starts a server on the data directory, on any port unless `more`
    names one."""
    command = [sys.executable, "-m", "tertulia", "serve", "--data-dir", str(data_dir)]
    if database_url:
        command += ["--database-url", database_url]
    return [*command, "--host", api.HOST, *(more or ("--port", "0"))]


@contextmanager
def running(
    command: list[str], log: Path, given: str = "", *, rate_limits: bool = False
) -> Iterator[Running]:
    """Yield the running program, after it has printed its port. Its input is `given`, or stays
    open. Raises BenchError with its standard error (kept at `log`) if it doesn't start."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            env=environment(rate_limits=rate_limits),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # Ctrl-C reaches only this process, which stops the others.
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if given:
            process.stdin.write(given)
            process.stdin.close()
        for line in process.stdout:
            if match := re.search(r"ready at http://127\.0\.0\.1:(\d+)", line):
                yield Running(process, int(match[1]))
                break
        else:
            raise BenchError(f"{' '.join(command)} did not start:\n{log.read_text()}")
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(60)


@contextmanager
def served(data_dir: Path, database_url: str = "") -> Iterator[int]:
    """Serve the data directory within the context. Yields the port."""
    with running(server_command(data_dir, database_url), data_dir / "serve.log") as server:
        yield server.port


def started(command: list[str], port: int, request: str, log: Path) -> float:
    """Return the seconds from starting the program to its first successful response to the request.
    The program is stopped afterwards."""
    with log.open("wb") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            env=environment(),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        while True:
            try:
                api.asked(port, request)
            except (OSError, api.BadAnswer):
                took = time.perf_counter() - start
                if process.poll() is not None or took > _PATIENCE:
                    raise BenchError(f"The server did not start:\n{log.read_text()}") from None
                time.sleep(0.002)  # A separate process can only be polled.
            else:
                return time.perf_counter() - start
    finally:
        process.terminate()
        process.wait(60)


class Generator(_Talking):
    """A generator process; see bench/load.py for its jobs."""

    def do(self, job: str, **arguments: Any) -> dict[str, Any]:
        """Run a job and return its result. Raises BenchError if that fails."""
        return self.ask(json.dumps({"job": job, **arguments}))


@contextmanager
def generator() -> Iterator[Generator]:
    """Yield a generator, which ends with the context."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.load"],
        env=environment(),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Generator(process)
    finally:
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
