"""Importing exports of each kind, continuing after the process was killed, and how long others wait
during an import into their organization.

With `MESSAGES=1000000`, that many messages of each kind are imported. `KIND=slack` selects a kind.
Each large import is killed halfway and continued, so it isn't compared with an uninterrupted one.
"""

import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from bench import processes
from bench.arithmetic import Target
from bench.cases import Case
from bench.company import Waits
from bench.context import Bench
from bench.datasets import COMPANY
from bench.importing import KINDS
from bench.report import Line
from tertulia.service.config import Config
from tertulia.store.database import LONG, READING
from tertulia.store.store import database_at

MESSAGES = 200_000
QUICK_MESSAGES = 20_000
QUIET_SECONDS = 3.0
COMPARED = 200_000
"""The most messages that are imported twice for comparison."""
RATE = 5000.0
"""The required rate, in messages per second."""
MEMORY = 300 * 2**20
"""The most memory of all of the import's processes, in bytes."""
OTHERS = 0.25
"""The longest time that another client may wait, in seconds."""


def _measure(bench: Bench) -> Iterator[Line]:
    usual = QUICK_MESSAGES if bench.quick else MESSAGES
    messages = int(os.environ.get("MESSAGES") or usual)
    for kind in [kind for kind in KINDS if kind == os.environ.get("KIND", kind)]:
        with _written_export(bench.directory / "export", kind, messages) as export:
            if messages > COMPARED:
                yield from _large(bench, kind, export, messages)
            else:
                yield from _compared(bench, kind, export, messages)
    kind = os.environ.get("KIND", next(iter(KINDS)))
    with _written_export(bench.directory / "export", kind, QUICK_MESSAGES) as export:
        yield from _beside(bench, kind, export)


def _large(bench: Bench, kind: str, export: Path, messages: int) -> Iterator[Line]:
    with bench.datasets.empty() as config:
        began = time.monotonic()
        first = _killed(config, kind, export, messages // 2)
        before = time.monotonic() - began
        figures, second = _run(config, kind, export)
        figures["seconds"] += before
        # The memory of the killed process isn't known.
        figures["cpu"] = figures["others_cpu"] = math.nan
        is_all = _count(config) == messages == figures["imported"]["messages"]
    yield from _lines(kind, messages, figures, max(first, second), is_all)


def _compared(bench: Bench, kind: str, export: Path, messages: int) -> Iterator[Line]:
    with bench.datasets.empty() as config:
        figures, peak = _run(config, kind, export)
        whole = _digest(config)
    with bench.datasets.empty() as config:
        _killed(config, kind, export, messages // 2)
        resumed, _ = _run(config, kind, export)
        reports = [
            {name: fields[name] for name in ("imported", "skipped", "changed")}
            for fields in (figures, resumed)
        ]
        is_equal = _digest(config) == whole and reports[0] == reports[1]
    yield from _lines(kind, messages, figures, peak, is_equal)


def _beside(bench: Bench, kind: str, export: Path) -> Iterator[Line]:
    """Import into an organization in use."""
    with bench.fresh(COMPANY) as served:
        with Waits(served.port, served.made.people) as before:
            time.sleep(QUIET_SECONDS)  # The other thread measures waits without an import.
        with Waits(served.port, served.made.people) as others:
            figures, _ = _run(served.made.config, kind, export)
    for what, waits in others.waits.items():
        line = Line(
            f"import_beside_{what.removeprefix('a ')}",
            f"{what} while {QUICK_MESSAGES:,} messages are imported, {kind}",
            "ms",
            [median(waits)],
        )
        line.limit, line.limit_title = [median(before.waits[what])], "without an import"
        line.p99 = sorted(waits)[len(waits) * 99 // 100]
        line.targets = [Target("longest", max(waits), OTHERS, "ms")]
        line.more = {"imported_per_second": QUICK_MESSAGES / figures["seconds"]}
        yield line


def _lines(
    kind: str, messages: int, figures: dict[str, Any], peak: int, is_complete: bool
) -> Iterator[Line]:
    title = f"import {messages:,} messages, {kind}"
    rate = messages / figures["seconds"]
    yield Line(
        f"import_{kind}",
        title,
        "/s",
        [rate],
        cpu=None if math.isnan(figures["cpu"]) else figures["cpu"] / messages,
        targets=[
            Target("", rate, RATE, "/s", at_least=True),
            Target("complete after it was killed", float(is_complete), 1.0, "", at_least=True),
        ],
        more={}
        if math.isnan(figures["others_cpu"])
        else {"rendering_cpu_per_message": figures["others_cpu"] / messages},
    )
    yield Line(
        f"import_{kind}_memory",
        f"{title}: peak memory of all processes",
        "MiB",
        [peak],
        targets=[Target("", peak, MEMORY, "MiB")],
    )


@contextmanager
def _written_export(directory: Path, kind: str, messages: int) -> Iterator[Path]:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    command = [sys.executable, "-m", "bench.importing", kind, "--write", str(messages)]
    written = subprocess.run(
        [*command, str(directory)], check=True, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Path(written.stdout.strip())
    finally:
        shutil.rmtree(directory)


def _started(config: Config, kind: str, export: Path) -> "subprocess.Popen[str]":
    given = msgspec.json.encode(config).decode()
    command = [sys.executable, "-m", "bench.importing", kind, "--config", given, str(export)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _run(config: Config, kind: str, export: Path) -> tuple[dict[str, Any], int]:
    """Import everything. Return the process's result, and its peak memory in bytes."""
    process = _started(config, kind, export)
    peak = processes.family_peak(process)
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError("the import failed")
    return json.loads(output), peak


def _killed(config: Config, kind: str, export: Path, messages: int) -> int:
    """Import about this many messages, and kill the process. Return its peak memory in bytes."""
    process = _started(config, kind, export)
    peak = processes.family_peak(process, lambda: _written(config) >= messages)
    process.kill()
    process.communicate()
    return peak


def _written(config: Config) -> int:
    database = database_at(config.data_path, config.database_url)
    if not database.exists():
        return 0
    with (
        suppress(Exception),
        closing(database.connect(readonly=True, limits=READING)) as connection,
    ):
        return int(connection.query("SELECT coalesce(max(id), 0) FROM messages")[0][0] or 0)
    return 0


def _count(config: Config) -> int:
    """Return the number of messages without the report."""
    database = database_at(config.data_path, config.database_url)
    with closing(database.connect(readonly=True, limits=LONG)) as connection:
        return int(connection.query("SELECT count(*) FROM messages WHERE sender_id > 3")[0][0])


def _digest(config: Config) -> str:
    """Return a digest of all messages without the report, and of the read state."""
    digest = hashlib.sha256()
    database = database_at(config.data_path, config.database_url)
    with closing(database.connect(readonly=True, limits=READING)) as connection:
        for query in (
            "SELECT id, sender_id, sent_at, channel_id, topic_id, content, rendered FROM messages"
            " WHERE sender_id > 3 AND id > ? ORDER BY id LIMIT 5000",
            "SELECT message_id, user_id, name FROM reactions WHERE message_id > ?"
            " ORDER BY message_id, user_id LIMIT 5000",
        ):
            after = 0
            while rows := connection.query(query, (after,)):
                digest.update(repr([tuple(row) for row in rows]).encode())
                after = int(rows[-1][0])
        for row in connection.query("SELECT user_id, chunk, bitmap FROM read_state ORDER BY 1, 2"):
            digest.update(repr((row[0], row[1], bytes(row[2]))).encode())
    return digest.hexdigest()


CASE = Case("imports", "importing messages from another server", _measure)
