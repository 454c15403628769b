"""The real server in its own process, with a data directory or a database URL."""

import base64
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, ClassVar

from tests.cli.support import Place
from tests.programs import HeardProgram, Program

SOURCE = Path(__file__).resolve().parents[2] / "src"
PASSWORD = "correct horse"
START_SECONDS = 60
STOP_SECONDS = 60
"""Less than a waiting poll takes until its first heartbeat, which a stopping server must not wait
for."""
FIRST_PORT, LAST_PORT = 20_000, 32_000
"""Below the ports of outgoing connections, so that while the server is down, no connection of a
client gets its port."""


@dataclass(frozen=True)
class Account:
    """Credentials."""

    user_id: int
    email: str
    api_key: str


@dataclass
class Server:
    """A node that can be started, stopped, and killed. It keeps its port."""

    is_forked: ClassVar = True
    """Whether its process is a `Program`. Otherwise its command line is run."""
    data_dir: Path
    database_url: str = ""
    rate_limits: bool = False
    port: int = field(default_factory=lambda: free_port())
    process: "subprocess.Popen[bytes] | Program | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log_path(self) -> Path:
        """The node's log, over all its runs."""
        return self.data_dir / f"serve-{self.port}.log"

    def command(self, *words: str) -> Any:
        """Run a `tertulia` command and return its JSON output. It must succeed. While the server
        runs, the command is a separate program; otherwise it runs in this process, which is
        faster."""
        if self.process is None:
            place = Place(self.data_dir, self.database_url)
            return self._in_thread(partial(place.answer, *words))
        typed = [words[0], *self._place(), *words[1:], "--json"]
        if not self.is_forked:
            done = subprocess.run(
                self._command_line(*typed),
                env=self._environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=START_SECONDS,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return json.loads(done.stdout)
        program = HeardProgram(typed, self._environment())
        try:
            said, errors = program.communicate(START_SECONDS)
        finally:
            program.close()
        assert program.returncode == 0, said + errors
        return json.loads(said)

    def create_organization(self) -> Account:
        """Create the organization and return its owner."""
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _account(
            self._in_thread(Place(self.data_dir, self.database_url).create_organization)
        )

    def add(self, name: str, role: str = "member") -> Account:
        """Create a user, who is subscribed to the default channels."""
        words = ("--email", f"{name}@example.com", "--full-name", name.title(), "--role", role)
        account = _account(self.command("create-user", *words, "--password", PASSWORD))
        if self.process is not None:
            # On SQLite, a server checks ten times per second for changes by commands.
            self.wait(lambda: self._answers("/api/v1/users/me", account), f"{name} is known")
        return account

    @staticmethod
    def _in_thread(function: Callable[[], Any]) -> Any:
        """Run the function in a thread, since the browser's event loop may be running in this
        one."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(function).result()

    def start(self, path: str = "/ready", *more: str) -> None:
        """Start the process, and return when it's ready. `more` are additional flags of `serve`."""
        self.launch(*more)
        self.wait(lambda: self._answers(path), f"the server answers at {path}")

    def launch(self, *more: str) -> None:
        """Start the process without waiting for it."""
        assert self.process is None or self.process.poll() is not None
        at = ("--host", "127.0.0.1", "--port", str(self.port))
        words = ["serve", *self._place(), *at, *more]
        with self.log_path.open("ab") as log:
            if self.is_forked:
                self.process = Program(words, self._environment(), log.fileno())
                return
            self.process = subprocess.Popen(
                self._command_line(*words),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def stop(self) -> int:
        """Stop the process like an operator, and return its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """Kill the process, as a power failure would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(STOP_SECONDS)

    def log_text(self) -> str:
        """The node's log so far."""
        return self.log_path.read_text(errors="replace")

    def wait(self, happened: Callable[[], bool], what: str) -> None:
        """Wait until the condition is true. Fails after a timeout, or if the process ends."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            assert self.process is not None
            assert self.process.poll() is None, f"the server ended:\n{self.log_text()}"
            if happened():
                return
            assert time.monotonic() < deadline, f"waited in vain until {what}:\n{self.log_text()}"
            time.sleep(0.02)  # A separate process can only be polled.

    def wait_for_log(self, text: str, times: int = 1) -> None:
        """Wait until the node has logged the text this many times."""
        self.wait(lambda: self.log_text().count(text) >= times, f"the log has {text!r}")

    def _answers(self, path: str, account: Account | None = None) -> bool:
        # (Not httpx, which first reads all certificates and takes longer than the request.)
        connection = HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)
        try:
            connection.request(
                "GET", path, headers={"Authorization": basic(account)} if account else {}
            )
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def _command_line(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "tertulia", *words]

    def _place(self) -> list[str]:
        return Place(self.data_dir, self.database_url).flags

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TERTULIA_")}
        limits = json.dumps(self.rate_limits)
        ours = {"PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1", "TERTULIA_RATE_LIMITS": limits}
        return {**kept, **ours}


def basic(account: Account) -> str:
    """The account's Authorization header."""
    pair = f"{account.email}:{account.api_key}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _account(printed: Any) -> Account:
    return Account(printed["user_id"], printed["email"], printed["api_key"])


_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_STRETCH = 500
_offsets = itertools.count(random.randrange(_STRETCH))


def free_port() -> int:
    """A port that isn't in use and wasn't returned recently. Each test worker has its own range."""
    first = FIRST_PORT + (_WORKER * _STRETCH) % (LAST_PORT - FIRST_PORT)
    for offset in itertools.islice(_offsets, _STRETCH):
        port = first + offset % _STRETCH
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


@contextmanager
def ended(server: Server) -> Iterator[Server]:
    """Stop the process at the end of the context, and fail if it logged a traceback."""
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            try:
                server.stop()
            except subprocess.TimeoutExpired:
                server.kill()
                raise
    assert "Traceback" not in server.log_text(), server.log_text()
