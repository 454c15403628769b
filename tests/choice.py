"""Which tests run on a day, and in which order.

A test that takes the fixture `database_url` (or `org`, or `kept`) runs on SQLite and on PostgreSQL.
`make test` runs on PostgreSQL all that differs there, and of the rest an eighth, another one each
day, all cases of a function together: in eight days everything. Tests that name PostgreSQL
themselves always run.

What is tested in the same way again and again has its turn one day in four or eight (`BY_TURNS`).
So has, one day in four, what is made up from a `seed`, and a made-up history (`tests/property`), on
SQLite, and two days later on PostgreSQL.
"""

import datetime
import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import Any, TypeVar

import pytest

Request = TypeVar("Request")

DIFFERENT_ON_POSTGRESQL = (
    # Whole histories, programs and faults.
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
    # The log, and what is stored.
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
    # What happens at the same moment, and queues.
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
"""Folders and modules all of whose tests run on PostgreSQL always. A new module is not among them
unless what it tests is done otherwise there: its own SQL, locks, transactions, processes."""

PARTS = 8
"""The tests that are not always run on PostgreSQL come in so many parts, one for each day."""

ROUND = 4
"""Days in which each made-up history has its turn once, twice in `PARTS`, and what a test makes up
from its parameter `seed`."""

BY_TURNS = {
    "tests/browser/test_accessibility.py": PARTS,
    "tests/chaos/test_chaos.py": ROUND,
    "tests/fuzz/test_fuzz.py": ROUND,
}
"""Modules whose tests do the same to each endpoint, or to each page in each look, and one that goes
on for a while with what others try once: each test has its turn one day in so many."""

EVERYTHING = "all"
"""In place of a day: all parts."""

LONG = {
    "tests/browser": 250,
    "tests/e2e": 140,
    "tests/cli": 90,
    "tests/unit/test_database_faults.py": 75,
    "tests/chaos": 45,
    "tests/property": 40,
    "tests/fuzz": 12,
    "tests/stored": 5,
}
"""Where single tests take seconds, or stand on what takes seconds to start: about how many seconds
all of them take. Each is one process's own, which begins with it. Most of it is waiting: for a
program, for a browser, or for a time limit."""


def part_of(day: str) -> int | None:
    """Which part a day (YYYY-MM-DD) has, from 0; None for `EVERYTHING`. ValueError for what is no
    day."""
    if day == EVERYTHING:
        return None
    return datetime.date.fromisoformat(day).toordinal() % PARTS


def described(day: str) -> str:
    """What runs that day, and how to run it again; nothing for `EVERYTHING`."""
    part = part_of(day)
    if part is None:
        return ""
    return (
        f"PostgreSQL: what differs there, and part {part + 1} of {PARTS} of the rest;"
        f" made-up requests and histories: turn {part % ROUND + 1} of {ROUND};"
        f" again: make test DAY={day}, or pytest --postgres={day}"
    )


def is_chosen(name: str, day: str, *, on_postgresql: bool = True, seed: int | None = None) -> bool:
    """Whether the test with that ID runs that day: on PostgreSQL, if it is one of those that run on
    both databases, and made up from that seed, if it is one of many of that kind."""
    part = part_of(day)
    if part is None:
        return True
    if seed is not None and seed % ROUND != part % ROUND:
        return False
    turn = _place(name, (*BY_TURNS,))
    if turn is not None:
        days = [*BY_TURNS.values()][turn]
        return _number(name) % days == part % days
    if not on_postgresql or _place(name, DIFFERENT_ON_POSTGRESQL) is not None:
        return True
    # All cases of a function on one day: then its others are not even collected.
    return _number(name.partition("[")[0]) % PARTS == part


def is_on_sqlite_alone(function: str, day: str) -> bool:
    """Whether no case of the test function with that ID runs on PostgreSQL that day."""
    is_by_turns = _place(function, (*BY_TURNS,)) is not None
    return not is_by_turns and not is_chosen(function, day)


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])


def is_chosen_history(seed: int, kind: str, day: str) -> bool:
    """Whether the history that is made up from the seed runs that day on that kind of database: on
    each one day in four, two days apart."""
    part = part_of(day)
    if part is None:
        return True
    turn = 0 if kind == "sqlite" else ROUND // 2
    return (zlib.crc32(b"%d" % seed) + part) % ROUND == turn


def chosen_requests(requests: Sequence[Request], day: str) -> Sequence[Request]:
    """Which of an endpoint's many requests are sent on a day when it has its turn: one half, and
    the other half four days later."""
    part = part_of(day)
    return requests if part is None else requests[part // ROUND :: PARTS // ROUND]


def divided(items: Iterable[pytest.Item], day: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that run that day, and the others."""
    chosen: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        given = _parameters_of(item)
        runs = is_chosen(
            item.nodeid, day, on_postgresql=_is_on_postgresql(given), seed=given.get("seed")
        )
        (chosen if runs else left).append(item)
    return chosen, left


def arranged(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """The tests in an order in which three of four processes begin with long ones of their own, and
    all are left with short ones, which others can take over when they have nothing left.

    The fourth has short ones from the beginning: while some wait, there must be somebody who keeps
    the processors busy. xdist's `worksteal` gives each process a part of the list, all of
    them of equal length.
    """
    long: dict[str, list[pytest.Item]] = {path: [] for path in LONG}
    short: list[pytest.Item] = []
    for item in items:
        place = _place(item.nodeid, (*LONG,))
        (short if place is None else long[[*LONG][place]]).append(item)
    own: list[list[pytest.Item]] = [[] for _ in range(processes)]
    seconds = [0] * max(1, processes * 3 // 4)
    for path in sorted(LONG, key=LONG.__getitem__, reverse=True):
        least = seconds.index(min(seconds))
        own[least] += long[path]
        seconds[least] += LONG[path]
    found: list[pytest.Item] = []
    for number, first in enumerate(own):
        length = (len(items) - len(found)) // (processes - number)
        found += first[:length]
        short = [*first[length:], *short]
        missing = length - len(first[:length])
        found += short[:missing]
        short = short[missing:]
    return found


def _parameters_of(item: pytest.Item) -> Mapping[str, Any]:
    """What the test is given of its tables, by name."""
    made = getattr(item, "callspec", None)
    return {} if made is None else made.params


def _is_on_postgresql(given: Mapping[str, Any]) -> bool:
    """Whether `database_url` or `kept_database_url` made it a test on PostgreSQL."""
    return any(given.get(name) == "postgresql" for name in ("database_url", "kept_database_url"))


def _place(name: str, paths: tuple[str, ...]) -> int | None:
    """Which of the paths is that of the test, or of a folder that it is in."""
    return _place_of_module(name.partition("::")[0], paths)


@cache
def _place_of_module(path: str, paths: tuple[str, ...]) -> int | None:
    module = PurePosixPath(path)
    own = {path, *map(str, module.parents)}
    return next((n for n, path in enumerate(paths) if path in own), None)
