"""`python -m bench [--json FILE]`; `QUICK=1` for less than a minute."""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import postgres

from bench import archive, asking, finding, limits, machine, rendering, report
from bench.organization import LARGE, MIDDLE, SENDERS, SIZES, SMALL, Organization, made
from bench.report import Case, Sample
from tertulia.config import Config

ROOT = Path(__file__).resolve().parents[1]
SECONDS, QUICK_SECONDS = 12.0, 3.0
"""For each case."""


MESSAGES, QUICK_MESSAGES = 1_000_000, 20_000
"""In the archive."""


@contextmanager
def served(data_dir: Path, database_url: str = "") -> Iterator[int]:
    """A server on the data directory, at this port, for the time of the context."""
    command = [sys.executable, "-m", "tertulia", "serve", "--data-dir", str(data_dir)]
    if database_url:
        command += ["--database-url", database_url]
    with (data_dir / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", "0"],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := re.search(r"ready at http://127\.0\.0\.1:(\d+)", line):
                yield int(found[1])
                break
        else:
            raise SystemExit((data_dir / "serve.log").read_text())
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(30)


def environment() -> dict[str, str]:
    """That of a server with default settings and no limits to requests, from this source."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TERTULIA_")}
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    return {**kept, "PYTHONPATH": path, "TERTULIA_RATE_LIMITS": "false"}


def generated(job: dict[str, Any]) -> Sample:
    """What a generator process measured."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"],
        input=json.dumps(job),
        env=environment(),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return Sample(**json.loads(done.stdout))


class Bench:
    """All cases against one server."""

    def __init__(self, directory: Path, organization: Organization, port: int, seconds: float):
        self._directory = directory
        self._people = organization.people
        self._port = port
        self._seconds = seconds

    def empty(self, connections: int) -> Sample:
        """The empty endpoint, each connection as somebody else."""
        asked = [asking.empty(person) for person in self._people[:connections]]
        return self._requests(asked)

    def send(self, channel: str, senders: int) -> Sample:
        """So many senders, each with one message on the way."""
        asked = [
            asking.send(person, channel, f"topic {number}")
            for number, person in enumerate(self._people[:senders])
        ]
        return self._requests(asked)

    def delivered(self, channel: str, waiting: int) -> Sample:
        """One message at a time, to so many who wait."""
        return generated(
            {
                "kind": "delivery",
                "port": self._port,
                "seconds": self._seconds,
                "send": asking.send(self._people[0], channel, "waiting"),
                "waiting": self._people[-waiting:] if channel == LARGE else self._people[:waiting],
            }
        )

    def commits(self, rows: int) -> Sample:
        """Bare commits, while the server has nothing to do."""
        latencies, seconds = limits.commits(self._directory, rows, self._seconds / 3)
        return Sample(latencies, seconds)

    def _requests(self, asked: list[str]) -> Sample:
        return generated(
            {"kind": "requests", "port": self._port, "seconds": self._seconds, "requests": asked}
        )

    def cases(self) -> Iterator[Case]:
        """Everything, the limits twice: before and after."""
        several = f"{SENDERS} at once"
        limit_cases = {
            "empty": Case("empty", "GET /users/me, one connection"),
            "empty_8": Case("empty_8", f"GET /users/me, {several}"),
            "commit": Case("commit", "commit of 1 row"),
            "commit_8": Case("commit_8", f"commit of {SENDERS} rows", rows=SENDERS),
            "commit_256": Case("commit_256", "commit of 256 rows", rows=256),
        }

        def measure_limits() -> None:
            limit_cases["empty"].add(self.empty(1))
            limit_cases["empty_8"].add(self.empty(SENDERS))
            for rows, name in ((1, "commit"), (SENDERS, "commit_8"), (256, "commit_256")):
                limit_cases[name].add(self.commits(rows))

        measure_limits()
        found = []
        for channel in (SMALL, LARGE):
            size = f"{SIZES[channel]:,} subscribers"
            one = Case(f"send_{channel}", f"send, one sender, {size}", "empty", "commit")
            all_ = Case(f"send_8_{channel}", f"send, {several}, {size}", "empty_8", "commit_8")
            hear = Case(
                f"deliver_{channel}",
                f"send until one who waits has it, {size}",
                "empty",
                "commit",
                answers=2,
                paced=True,
            )
            found.append(one.add(self.send(channel, 1)))
            found.append(all_.add(self.send(channel, SENDERS)))
            found.append(hear.add(self.delivered(channel, 1)))
        waiting = SIZES[MIDDLE]
        last = Case(
            "deliver_200",
            f"send until the last of {waiting} who wait has it",
            "empty",
            "commit",
            answers=waiting + 1,
            paced=True,
        )
        found.append(last.add(self.delivered(MIDDLE, waiting)))
        measure_limits()
        yield from limit_cases.values()
        yield from found


def found(directory: Path, database_url: str, count: int, seconds: float) -> Iterator[Case]:
    """Finding messages among so many, in one kind of database."""
    kind = "PostgreSQL" if database_url else "SQLite"
    directory.mkdir()
    config = Config(data_dir=str(directory), database_url=database_url)
    made = asyncio.run(archive.made(config, count))

    def asked(port: int, request: str) -> Sample:
        job = {"kind": "requests", "port": port, "seconds": seconds, "requests": [request]}
        return generated(job)

    name = kind.lower()
    rows = Case(f"rows_{name}", f"{kind}: bare query for 100 messages by ID")
    rows.add(finding.rows(config, made, seconds / 4))
    yield rows
    with served(directory, database_url) as port:
        by_id = Case(f"by_id_{name}", f"{kind}, {count:,} messages: GET 100 by ID")
        yield by_id.add(asked(port, finding.by_id(made)))
        for number, (title, request) in enumerate(finding.requests(made).items()):
            asked(port, request)  # What is read once is read now.
            case = Case(f"find_{name}_{number}", f"  {title}", by_id.name, rows.name)
            yield case.add(asked(port, request))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument(
        "--directory", type=Path, default=ROOT / "build", help="where the database is to lie"
    )
    options = parser.parse_args()
    is_quick = bool(os.environ.get("QUICK"))
    seconds = QUICK_SECONDS if is_quick else SECONDS
    count = QUICK_MESSAGES if is_quick else MESSAGES
    options.directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as name:
        directory = Path(name)
        organization = asyncio.run(made(Config(data_dir=str(directory))))
        with served(directory) as port:
            cases = list(Bench(directory, organization, port, seconds).cases())
        cases.extend(rendering.cases(seconds / 4))
        cases.extend(found(directory / "archive", "", count, seconds / 10))
        with postgres.cluster() as url:
            if url is not None and not is_quick:
                cases.extend(found(directory / "archive-postgres", url, count, seconds / 10))
        about = machine.described(directory)
    sys.stdout.write(report.table(cases, about))
    if options.json:
        options.json.write_text(json.dumps(report.figures(cases, about), indent=2) + "\n")


if __name__ == "__main__":
    main()
