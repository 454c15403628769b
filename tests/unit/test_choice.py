"""Which tests run, on which database, and when."""

import datetime
from pathlib import Path
from typing import Any

import pytest

from tests import choice

ROOT = Path(choice.__file__).parents[1]
DAY = datetime.date(2026, 11, 22)
DAYS = [(DAY + datetime.timedelta(n)).isoformat() for n in range(choice.PARTS)]
NAMES = [f"tests/wire/test_channels.py::test_{n}[postgresql]" for n in range(400)]


def test_each_test_runs_once_in_so_many_days() -> None:
    for name in NAMES:
        assert [choice.is_chosen(name, day) for day in DAYS].count(True) == 1


def test_each_history_is_on_both_databases_in_four_days() -> None:
    for seed in range(100):
        days = {
            kind: [n for n, day in enumerate(DAYS) if choice.is_chosen_history(seed, kind, day)]
            for kind in ("sqlite", "postgresql")
        }
        assert len(days["sqlite"]) == 2
        assert {n % 4 for n in days["postgresql"]} == {(days["sqlite"][0] + 2) % 4}
    chosen = [choice.is_chosen_history(seed, "sqlite", DAYS[0]) for seed in range(100)]
    assert 12 < chosen.count(True) < 40


@pytest.mark.parametrize(("module", "round_of"), choice.BY_TURNS.items())
def test_what_has_its_turn_has_it_every_so_many_days(module: str, round_of: int) -> None:
    requests = list(range(35))
    for name in (f"{module}::test_it[{number}]" for number in range(100)):
        days = [n for n, day in enumerate(DAYS) if choice.is_chosen(name, day, on_postgresql=False)]
        assert days == [*range(days[0], len(DAYS), round_of)]
        if round_of == choice.ROUND:
            sent = [one for n in days for one in choice.chosen_requests(requests, DAYS[n])]
            assert sorted(sent) == requests


def test_what_is_made_up_from_a_seed_has_its_turn_one_day_in_four() -> None:
    name = "tests/unit/test_message_search.py::test_it"
    for first in range(0, 20, choice.ROUND):
        seeds = range(first, first + choice.ROUND)
        for day in DAYS:
            assert [choice.is_chosen(name, day, seed=seed) for seed in seeds].count(True) == 1
    for seed in range(20):
        days = [n for n, day in enumerate(DAYS) if choice.is_chosen(name, day, seed=seed)]
        assert days == [days[0], days[0] + choice.ROUND]
        assert choice.is_chosen(name, choice.EVERYTHING, seed=seed)


def test_the_parts_are_about_as_large() -> None:
    for day in DAYS:
        chosen = sum(choice.is_chosen(name, day) for name in NAMES)
        assert 25 < chosen < 75


def test_a_day_chooses_the_same_again() -> None:
    name = "tests/wire/test_channels.py::test_it"
    days = [day for day in DAYS if choice.is_chosen(f"{name}[postgresql-7]", day)]
    assert days == ["2026-11-23"]
    # With all cases.
    assert days == [day for day in DAYS if choice.is_chosen(f"{name}[postgresql-8]", day)]
    assert days == [day for day in DAYS if not choice.is_on_sqlite_alone(name, day)]


@pytest.mark.parametrize(
    "name",
    [
        "tests/wire/test_search.py::test_it[postgresql]",
        "tests/e2e/test_scheduled.py::test_it[postgresql]",
        "tests/property/test_new.py::test_it[postgresql-tests/wire]",
    ],
)
def test_what_differs_runs_each_day(name: str) -> None:
    assert all(choice.is_chosen(name, day) for day in DAYS)
    assert not any(choice.is_on_sqlite_alone(name.partition("[")[0], day) for day in DAYS)


def test_everything_is_everything() -> None:
    assert all(choice.is_chosen(name, choice.EVERYTHING) for name in NAMES)
    assert not any(choice.is_on_sqlite_alone(name, choice.EVERYTHING) for name in NAMES)
    turns = (f"{module}::test_it" for module in choice.BY_TURNS)
    assert all(choice.is_chosen(name, choice.EVERYTHING, on_postgresql=False) for name in turns)
    assert choice.chosen_requests([1, 2, 3], choice.EVERYTHING) == [1, 2, 3]


@pytest.mark.parametrize("path", [*choice.DIFFERENT_ON_POSTGRESQL, *choice.BY_TURNS, *choice.LONG])
def test_what_is_listed_is_there(path: str) -> None:
    assert (ROOT / path).exists()


class Item:
    """A test, as far as its place in the order is concerned."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


@pytest.mark.parametrize("processes", [1, 2, 4, 8])
def test_three_of_four_processes_begin_with_long_tests_of_their_own(processes: int) -> None:
    names = [f"tests/wire/test_channels.py::test_{n}" for n in range(200)]
    names += [f"{path}::test_{n}" for path in choice.LONG for n in range(5)]
    items: Any = [Item(name) for name in names]
    found = [item.nodeid for item in choice.arranged(items, processes)]
    assert sorted(found) == sorted(names)
    length = len(found) // processes
    parts = [found[at * length : (at + 1) * length] for at in range(processes)]
    waiting = max(1, processes * 3 // 4)
    assert all(not part[0].startswith("tests/wire") for part in parts[:waiting])
    assert all(part[0].startswith("tests/wire") for part in parts[waiting:])
    assert all(part[-1].startswith("tests/wire") for part in parts)
    for path in choice.LONG:
        assert sum(any(name.startswith(path) for name in part) for part in parts) == 1


def test_where_nearly_all_are_long_none_is_lost() -> None:
    names = [f"tests/browser/test_login.py::test_{n}" for n in range(9)] + ["tests/wire/x.py::test"]
    items: Any = [Item(name) for name in names]
    found = [item.nodeid for item in choice.arranged(items, 4)]
    assert sorted(found) == sorted(names)


@pytest.mark.parametrize("day", ["", "yesterday", "2026-13-01"])
def test_a_day_that_is_none_is_refused(day: str) -> None:
    with pytest.raises(ValueError):
        choice.part_of(day)


def test_what_is_said_names_the_day() -> None:
    said = choice.described("2026-11-22")
    assert "part 7 of 8" in said
    assert "turn 3 of 4" in said
    assert "--postgres=2026-11-22" in said
    assert choice.described(choice.EVERYTHING) == ""
