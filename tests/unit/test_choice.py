"""Which tests run on PostgreSQL, and when."""

import datetime
from pathlib import Path

import pytest

from tests import choice

ROOT = Path(choice.__file__).parents[1]
DAY = datetime.date(2026, 11, 22)
DAYS = [(DAY + datetime.timedelta(n)).isoformat() for n in range(choice.PARTS)]
NAMES = [f"tests/wire/test_channels.py::test_it[postgresql-{n}]" for n in range(400)]


def test_each_test_runs_once_in_so_many_days() -> None:
    for name in NAMES:
        assert [choice.is_chosen(name, day) for day in DAYS].count(True) == 1


def test_the_parts_are_about_as_large() -> None:
    for day in DAYS:
        chosen = sum(choice.is_chosen(name, day) for name in NAMES)
        assert 25 < chosen < 75


def test_a_day_chooses_the_same_again() -> None:
    name = "tests/wire/test_channels.py::test_it[postgresql-7]"
    assert [day for day in DAYS if choice.is_chosen(name, day)] == ["2026-11-25"]


@pytest.mark.parametrize(
    "name",
    [
        "tests/wire/test_search.py::test_it[postgresql]",
        "tests/e2e/test_bot.py::test_it[postgresql]",
        "tests/e2e/test_new.py::test_it[postgresql-tests/wire]",
    ],
)
def test_what_differs_runs_each_day(name: str) -> None:
    assert all(choice.is_chosen(name, day) for day in DAYS)


def test_everything_is_everything() -> None:
    assert all(choice.is_chosen(name, choice.EVERYTHING) for name in NAMES)


@pytest.mark.parametrize("path", [*choice.DIFFERENT_ON_POSTGRESQL, *choice.LONG])
def test_what_is_listed_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("day", ["", "yesterday", "2026-13-01"])
def test_a_day_that_is_none_is_refused(day: str) -> None:
    with pytest.raises(ValueError):
        choice.part_of(day)


def test_what_is_said_names_the_day() -> None:
    said = choice.described("2026-11-22")
    assert "part 7 of 8" in said
    assert "--postgres=2026-11-22" in said
    assert choice.described(choice.EVERYTHING) == ""
