"""The server under test, as seen from outside."""

import contextlib
import json
import os
import re
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import processes
from bench.serving import environment
from tertulia.service.config import Config
from tertulia.store.store import database_at


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
    """Memory that the program itself allocated."""
    fds: int
    threads: int
    cpu: float


def sampled(pid: int) -> Sample:
    """Return the process's current resources. Raises OSError if it isn't running."""
    proc = Path(f"/proc/{pid}")
    memory = dict(re.findall(r"^(\w+): +(\d+) kB", (proc / "smaps_rollup").read_text(), re.M))
    threads = re.search(r"^Threads:\s+(\d+)", (proc / "status").read_text(), re.M)
    return Sample(
        pss=int(memory["Pss"]),
        rss=int(memory["Rss"]),
        heap=int(memory["Anonymous"]),
        fds=len(os.listdir(proc / "fd")),
        threads=int(threads[1]) if threads else 0,
        cpu=processes.cpu(pid),
    )


def queues(config: Config) -> set[str]:
    """Return the event queues in the database."""
    database = database_at(config.data_path, config.database_url)
    with contextlib.closing(database.connect(readonly=True)) as connection:
        return {row[0] for row in connection.query("SELECT id FROM queues")}


def complaints(config: Config) -> list[str]:
    """Return the warnings and errors in the server's log."""
    lines = (config.data_path / "serve.log").read_text(errors="replace").splitlines()
    return [line for line in lines if re.search(r"level=(warning|error)|Traceback", line, re.I)]


def checked(config: Config) -> list[str]:
    """Return the problems found by `tertulia check`."""
    command = [sys.executable, "-m", "tertulia", "check", "--json", "--data-dir", config.data_dir]
    if config.database_url:
        command += ["--database-url", config.database_url]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return [done.stderr or f"it ended with {done.returncode}"]
    return [f"{c['check']}: {c['detail']}" for c in answer["checks"] if not c["ok"]]
