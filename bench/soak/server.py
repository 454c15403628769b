"""The server under test, as seen from outside."""

import contextlib
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tertulia.service.config import Config
from tertulia.store.store import database_at

ROOT = Path(__file__).resolve().parents[2]
SETTINGS: dict[str, str] = {}
"""Environment variables that differ from the default configuration: none, since rate limits are per
account and nobody here reaches them."""
_TICKS = os.sysconf("SC_CLK_TCK")


def environment() -> dict[str, str]:
    """The environment of a process with default settings, from this source."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TERTULIA_")}
    return {**kept, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **SETTINGS}


def allow_files(count: int) -> None:
    """Allow this process and its children this many open files. Exits if the system allows
    fewer."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < count:
        raise SystemExit(f"{count} open files are needed and {most} allowed (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, most))


@dataclass(frozen=True)
class Sample:
    """Resources of the server's process: memory in KiB, and processor seconds since its start."""

    pss: int
    rss: int
    heap: int
    """The memory that the program itself allocated."""
    fds: int
    threads: int
    cpu: float


class Server:
    """A running server."""

    def __init__(self, process: "subprocess.Popen[str]", port: int, config: Config) -> None:
        self._process = process
        self._config = config
        self.port = port

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def sample(self) -> Sample:
        """Its current resources. Raises OSError if it isn't running."""
        place = Path(f"/proc/{self._process.pid}")
        memory = dict(re.findall(r"^(\w+): +(\d+) kB", (place / "smaps_rollup").read_text(), re.M))
        threads = re.search(r"^Threads:\s+(\d+)", (place / "status").read_text(), re.M)
        used = (place / "stat").read_text().rpartition(")")[2].split()
        return Sample(
            pss=int(memory["Pss"]),
            rss=int(memory["Rss"]),
            heap=int(memory["Anonymous"]),
            fds=len(os.listdir(place / "fd")),
            threads=int(threads[1]) if threads else 0,
            cpu=(int(used[11]) + int(used[12])) / _TICKS,
        )

    def queues(self) -> set[str]:
        """The event queues in the database."""
        database = database_at(self._config.data_path, self._config.database_url)
        with contextlib.closing(database.connect(readonly=True)) as connection:
            return {row[0] for row in connection.query("SELECT id FROM queues")}


@contextmanager
def serving(config: Config) -> Iterator[Server]:
    """A server with this configuration, within the context."""
    command = [sys.executable, "-m", "tertulia", "serve", "--host", "127.0.0.1", "--port", "0"]
    written = config.data_path / "serve.log"
    with written.open("wb") as log:
        # In its own session, so that Ctrl-C reaches only the soak test, which then stops the
        # server.
        process = subprocess.Popen(
            [*command, *_place(config)],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := re.search(r"ready at http://127\.0\.0\.1:(\d+)", line):
                yield Server(process, int(found[1]), config)
                break
        else:
            raise SystemExit(written.read_text())
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(60)


def complaints(config: Config) -> list[str]:
    """Warnings and errors in the server's log."""
    lines = (config.data_path / "serve.log").read_text(errors="replace").splitlines()
    return [line for line in lines if re.search(r"level=(warning|error)|Traceback", line, re.I)]


def checked(config: Config) -> list[str]:
    """Problems found by `tertulia check`."""
    done = subprocess.run(
        [sys.executable, "-m", "tertulia", "check", "--json", *_place(config)],
        env=environment(),
        capture_output=True,
        text=True,
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return [done.stderr or f"it ended with {done.returncode}"]
    return [f"{c['check']}: {c['detail']}" for c in answer["checks"] if not c["ok"]]


def _place(config: Config) -> list[str]:
    place = ["--data-dir", config.data_dir]
    return [*place, "--database-url", config.database_url] if config.database_url else place
