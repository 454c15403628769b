"""Which tests `make test` runs, and in which order.

Plain `pytest` and `make test ALL=1` run every test, on SQLite and on PostgreSQL. `make test` passes
`--quick`: it leaves out tests marked `slow`, and on PostgreSQL it runs the modules listed here and
the first test of every other module.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

import pytest

ON_POSTGRESQL = (
    # Histories, programs, and faults.
    "tests/chaos",
    "tests/e2e/test_availability.py",
    "tests/e2e/test_conversation.py",
    "tests/e2e/test_first_run.py",
    "tests/e2e/test_operations.py",
    "tests/e2e/test_rolling_upgrade.py",
    "tests/e2e/test_scheduled.py",
    "tests/e2e/test_workers.py",
    "tests/property",
    "tests/stored",
    # The log and storage.
    "tests/cli/test_check.py",
    "tests/cli/test_log_history.py",
    "tests/cli/test_pruning.py",
    "tests/cli/test_transfer.py",
    "tests/unit/test_database_faults.py",
    "tests/unit/test_pruning.py",
    "tests/unit/test_log_history.py",
    "tests/unit/test_event_loop.py",
    "tests/unit/test_log.py",
    "tests/unit/test_migrations.py",
    "tests/unit/test_file_modes.py",
    "tests/unit/test_server_lock.py",
    "tests/unit/test_tables.py",
    "tests/wire/test_internal_errors.py",
    "tests/wire/test_readiness.py",
    "tests/wire/test_retention.py",
    # Concurrency and queues.
    "tests/unit/test_queues.py",
    "tests/wire/test_event_queues.py",
    "tests/wire/test_register_messages.py",
    "tests/wire/test_races.py",
    "tests/wire/test_outgoing_webhooks.py",
    # Queries: search, history, flags, unread messages, moves.
    "tests/unit/test_message_search.py",
    "tests/wire/test_moves_between_channels.py",
    "tests/wire/test_history.py",
    "tests/wire/test_flags.py",
    "tests/wire/test_read_receipts.py",
    "tests/wire/test_flags_by_narrow.py",
    "tests/wire/test_search.py",
    "tests/wire/test_topics.py",
)
"""Folders and modules that test what differs on PostgreSQL: its SQL, locks, transactions,
processes. `--quick` runs all of their tests on PostgreSQL."""

WAITING = (
    ("tests/browser",),
    ("tests/e2e", "tests/chaos", "tests/fuzz", "tests/stored"),
    ("tests/cli", "tests/unit/test_database_faults.py", "tests/property"),
)
"""Tests that mostly wait: for a browser, a program, a time limit. Each group takes a few minutes,
and shares fixtures that take seconds to set up, so one process should run all of it."""


def is_in(path: str, places: Sequence[str]) -> bool:
    """Whether the file is one of the paths or in one of the folders."""
    return not {path, *map(str, PurePosixPath(path).parents)}.isdisjoint(places)


def arranged(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """Return the tests in an order that keeps all processors busy until the end.

    `--dist worksteal` gives each process an equal share of the list. The first three shares begin
    with a group of tests that wait; quick tests fill the rest, and idle processes steal them.
    """
    paths = {item: item.nodeid.partition("::")[0] for item in items}
    groups = [[item for item in items if is_in(paths[item], group)] for group in WAITING]
    waiting = {item for group in groups for item in group}
    quick = [item for item in items if item not in waiting]
    share = len(items) // processes
    ordered: list[pytest.Item] = []
    for group in groups:
        missing = max(0, share - len(group))
        ordered += [*group, *quick[:missing]]
        quick = quick[missing:]
    return ordered + quick
