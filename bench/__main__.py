"""`make bench`: the cost of operations, compared with the machine's limits. See bench/README.md.

Prints one table: each cost next to the machine's own limit for the same work, measured in the same
run, with its target and whether it's met. The last line counts the targets that are met.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import StatisticsError

import psycopg
from tests import postgres

from bench import machine, processes, report
from bench.api import BadAnswer
from bench.cases import Case
from bench.cases.all import CASES
from bench.context import Bench
from bench.datasets import Datasets
from bench.report import Line
from bench.serving import ROOT, BenchError

DISTURBED = 0.05
"""The share of the machine above which other programs distort the results."""
EXAMPLES = """examples:
  python -m bench --quick                    the whole table, with less certainty
  python -m bench --only send --only wait    some of the cases (--list says which there are)
  python -m bench --database postgresql      the same table on a private PostgreSQL
  python -m bench --json figures.json        the figures for a program as well
"""


def main() -> None:
    """Run the benchmarks and print the results."""
    options = _parser().parse_args()
    if options.list:
        sys.stdout.writelines(f"{case.name:<10}{case.about}\n" for case in CASES)
        return
    cases = [case for case in CASES if not options.only or case.name in options.only]
    if options.quick and not options.only:
        cases = [case for case in cases if case.is_quick]
    directory: Path = options.directory.resolve() / "bench"
    directory.mkdir(parents=True, exist_ok=True)
    try:
        started, before = time.perf_counter(), processes.busy()
        with _cluster(options.database) as url:
            datasets = Datasets(directory, url)
            with Bench(directory, datasets, url, quick=options.quick) as bench:
                failures: list[str] = []
                lines = list(_measured(bench, cases, failures))
            about = machine.described(directory, url)
        if not url:
            # The process of an existing PostgreSQL isn't known.
            about["others"] = _others(time.perf_counter() - started, before, processes.busy())
    except BenchError as error:
        raise SystemExit(str(error)) from None
    if options.json:
        options.json.write_text(json.dumps(report.figures(lines, about), indent=2) + "\n")
    if options.markdown:
        options.markdown.write_text(report.markdown(lines, about) + "\n")
    sys.stdout.write(report.table(lines, about))
    sys.stdout.write(f"{report.summary(lines)}\n")
    if failures:
        raise SystemExit(f"Could not be measured as a whole: {', '.join(failures)}.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        default=os.environ.get("QUICK", "") not in {"", "0"},
        help="shorter and fewer rounds; the same as QUICK=1",
    )
    parser.add_argument(
        "--database",
        choices=("sqlite", "postgresql"),
        default=os.environ.get("DATABASE") or "sqlite",
        help="on which to measure; the same as DATABASE=…",
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="CASE",
        choices=[case.name for case in CASES],
        help="measure this case; may be given several times",
    )
    parser.add_argument("--list", action="store_true", help="say which cases there are, and end")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table there as well"
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=ROOT / "build",
        help="where the databases are to lie: let it be the disk you mean (default: build/)",
    )
    return parser


def _measured(bench: Bench, cases: Sequence[Case], failures: list[str]) -> Iterator[Line]:
    """Yield the lines of each case. A case that fails is added to `failures`, and the others
    continue."""
    for number, case in enumerate(cases, 1):
        bench.tell(f"[{number}/{len(cases)}] {case.name}: {case.about}")
        start = time.perf_counter()
        try:
            for line in case.measure(bench):
                bench.tell(f"  {report.short(line)}")
                yield line
        except (BadAnswer, BenchError, StatisticsError) as error:
            bench.tell(f"  failed: {error}")
            failures.append(case.name)
        bench.tell(f"  ({time.perf_counter() - start:.0f} s)")


def _others(seconds: float, before: tuple[float, float], after: tuple[float, float]) -> str:
    """Return the share of the machine that other programs used."""
    everybody, by_user = (later - sooner for sooner, later in zip(before, after, strict=True))
    part = max(everybody - by_user, 0.0) / (seconds * (os.cpu_count() or 1))
    said = f"{part:.0%} of the processors' time went to other programs"
    return f"{said}: these figures mean little" if part > DISTURBED else said


@contextmanager
def _cluster(database: str) -> Iterator[str]:
    """Yield the URL of a private PostgreSQL with default durability, or an empty text for
    SQLite."""
    if database == "sqlite":
        yield ""
        return
    # pgserver's import fails with this message if no user is signed in.
    warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR is not set")
    with postgres.cluster() as url:
        if url is None:
            raise BenchError("There is no PostgreSQL here to start (see CONTRIBUTING.md).")
        with psycopg.connect(url, autocommit=True) as connection:
            # The tests' cluster doesn't wait for the disk, but the benchmark's must.
            connection.execute("ALTER SYSTEM RESET ALL")
            connection.execute("SELECT pg_reload_conf()")
        yield url


if __name__ == "__main__":
    main()
