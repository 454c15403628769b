"""Exporting an organization: in Zulip's format, and as pages to read without a server."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import processes
from bench.arithmetic import Target
from bench.cases import Case
from bench.context import Bench
from bench.datasets import COMPANY, OLD_COMPANY, SHAPES
from bench.report import Line
from bench.serving import BenchError

RATES: Final = {"zulip": 1500.0, "html": 5000.0}
"""The required rate of each format, in messages per second. Zulip's has a row for each reader of a
message: 1,200 in this organization."""
MEMORY = 300 * 2**20
"""The most memory, in bytes, for any number of messages."""


def _measure(bench: Bench) -> Iterator[Line]:
    for form in RATES:
        for name in (COMPANY,) if bench.quick else (COMPANY, OLD_COMPANY):
            yield from _lines(bench, form, name)


def _lines(bench: Bench, form: str, name: str) -> Iterator[Line]:
    messages = SHAPES[name].messages
    with bench.datasets.copied(name) as made:
        place = Path(made.config.data_dir)
        began = time.monotonic()
        command = [sys.executable, "-m", "tertulia", "export", "--data-dir", str(place)]
        if made.config.database_url:
            command += ["--database-url", made.config.database_url]
        target = place / "export.tar.gz"
        process = subprocess.Popen([*command, "--format", form, str(target)])
        peak = processes.family_peak(process)
        if process.returncode:
            raise BenchError("the export failed")
        seconds, size = time.monotonic() - began, target.stat().st_size
    title = f"export {messages:,} messages, {form}"
    if messages == SHAPES[OLD_COMPANY].messages:  # The rest takes equally long for a few messages.
        rate = messages / seconds
        yield Line(
            f"export_{form}",
            title,
            "/s",
            [rate],
            targets=[Target("", rate, RATES[form], "/s", at_least=True)],
            more={"bytes": size},
        )
    yield Line(
        f"export_{form}_memory_{messages}",
        f"{title}: peak memory",
        "MiB",
        [peak],
        targets=[Target("", peak, MEMORY, "MiB")],
    )


CASE = Case("exports", "exporting an organization", _measure)
