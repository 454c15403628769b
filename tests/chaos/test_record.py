"""The checks find violations, and only those."""

from itertools import pairwise

import pytest

from tests.chaos.cluster import mistakes
from tests.chaos.plan import Kind, plan
from tests.chaos.record import Attempt, Outcome, Probe, Record, Revocation, last, once, stale

DONE, REFUSED, UNKNOWN = Outcome.DONE, Outcome.REFUSED, Outcome.UNKNOWN


def attempts(*outcomes: Outcome) -> list[Attempt]:
    """Attempts to set 0, 1, 2, …, with these outcomes."""
    return [
        Attempt("set", "it", value, node=0, outcome=outcome)
        for value, outcome in enumerate(outcomes)
    ]


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ([0, 2], 0),
        ([0], 0),  # An unknown attempt may not have been applied.
        ([2], 1),  # An acknowledged attempt is lost,
        ([0, 0], 1),  # or was applied twice;
        ([0, 1], 1),  # a failed attempt was applied;
        ([0, 2, 2], 1),  # an unknown attempt was applied twice;
        ([0, 7], 1),  # nobody attempted it.
    ],
)
def test_acknowledged_additions_appear_once(found: list[int], wrong: int) -> None:
    assert len(once(attempts(DONE, REFUSED, UNKNOWN), found)) == wrong


@pytest.mark.parametrize(
    ("found", "is_right"),
    [("before", False), (0, False), (1, True), (2, False), (3, True), (4, False)],
)
def test_a_value_is_the_last_acknowledged_or_a_later_unknown_one(
    found: object, is_right: bool
) -> None:
    tried = attempts(DONE, DONE, REFUSED, UNKNOWN)
    assert (not last(tried, found, "before")) is is_right


def test_a_value_without_attempts_is_unchanged() -> None:
    assert last(attempts(REFUSED), "before", "before") == []
    assert last(attempts(REFUSED), 0, "before") != []


@pytest.mark.parametrize(
    ("sent", "is_write", "wrong"),
    [(99.0, False, 0), (99.0, True, 0), (109.9, False, 0), (110.1, False, 1), (100.1, True, 1)],
)
def test_a_revoked_permission_ends_within_the_bound_and_immediately_for_changes(
    sent: float, is_write: bool, wrong: int
) -> None:
    revocation = Revocation("account deactivated", acknowledged=100.0)
    probe = Probe(revocation, node=1, sent=sent, answered=sent + 20, is_write=is_write)
    assert len(stale([probe], bound=10.0)) == wrong


def test_all_clients_see_one_order() -> None:
    record = Record()
    record.brought(1, 5 << 8, "one")
    record.brought(2, 6 << 8, "one")
    record.brought(1, (5 << 8) + 3, "another")
    assert record.order() == record.violations == []
    record.brought(2, 7 << 8, "another")
    assert len(record.violations) == 1
    record.brought(3, 4 << 8, "one")
    assert len(record.order()) == 1


TROUBLE = """\
2026-01-01T10:00:00.000Z level=error event="something failed"
Traceback (most recent call last):
  File "a.py", line 1, in a
    a()
psycopg.OperationalError: it is away

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 1, in b
    b()
{}
2026-01-01T10:00:01.000Z level=info event=request
"""


def test_a_traceback_is_an_error_unless_the_database_was_unavailable() -> None:
    away = TROUBLE.format("tertulia.store.database.DatabaseUnavailable: it is away")
    assert mistakes(away) == []
    (found,) = mistakes(away + TROUBLE.format("KeyError: 'x'"))
    assert "something failed" in found
    assert "KeyError" in found
    assert "request" not in found


def test_the_same_seed_makes_the_same_plan() -> None:
    one = plan(5, 300, 3)
    assert one == plan(5, 300, 3)
    assert one != plan(6, 300, 3)
    assert {fault.kind for seed in range(5) for fault in plan(seed, 300, 3)} == set(Kind)
    assert all(fault.until <= 300 for fault in one)
    for node in range(3):
        own = [fault for fault in one if fault.node == node]
        assert all(a.until < b.at for a, b in pairwise(own))
