"""Overload protection, with a simulated clock."""

import logging
from collections.abc import Callable

import pytest

from tertulia.wire.protocol.load import ALWAYS, Load


class Node:
    """A node's event loop: its time, its processor time, and what its next turn does."""

    def __init__(self, longest_wait: float = 1.0) -> None:
        self.now = 1000.0
        self.used = 0.0
        self.next: list[Callable[[], None]] = []
        self.load = Load(longest_wait, lambda: self.used, lambda: self.now, self.next.append)

    def turn(self) -> None:
        due = self.next[:]
        self.next.clear()
        for told in due:
            told()

    def begin(self, count: int) -> None:
        for _ in range(count):
            self.load.begin()

    def answer(self, count: int, took: float, used: float | None = None) -> None:
        """Answer this many requests one after the other, each with this duration and processor
        time, and each in the same turn of the loop as the next one."""
        for _ in range(count):
            self.load.is_too_high()
            self.now += took
            self.used += took if used is None else used
            self.load.end()
            self.turn()

    def serve(self, count: int, took: float, used: float | None = None) -> None:
        """Answer this many requests, and start as many new ones."""
        for _ in range(count):
            self.answer(1, took, used)
            self.load.begin()

    def idle(self, seconds: float) -> None:
        self.turn()
        self.now += seconds
        self.load.is_too_high()
        self.turn()

    @property
    def takes(self) -> int:
        """How many concurrent requests are accepted, up to 100,000."""
        before, self.load.in_progress = self.load.in_progress, 0
        while not self.load.is_too_high() and self.load.in_progress < 100_000:
            self.load.in_progress += 1
        found, self.load.in_progress = self.load.in_progress, before
        return found


def learned(took: float = 0.001) -> Node:
    """A node that has answered many requests of this duration, one at a time."""
    node = Node()
    for _ in range(3200):
        node.begin(1)
        node.answer(1, took)
    return node


def test_nothing_is_refused_before_the_cost_of_a_request_is_known() -> None:
    assert Node().takes == 100_000


@pytest.mark.parametrize("took", [1.0, 60.0])
def test_a_few_requests_are_always_accepted(took: float) -> None:
    node = Node()
    node.begin(ALWAYS - 1)
    node.serve(320, took)
    assert node.load.in_progress == ALWAYS - 1
    assert not node.load.is_too_high()


@pytest.mark.parametrize(("took", "takes"), [(0.001, 1000), (0.004, 250), (0.0001, 10_000)])
def test_requests_that_would_wait_longer_than_allowed_are_refused(took: float, takes: int) -> None:
    assert learned(took).takes == pytest.approx(takes, rel=0.01)


@pytest.mark.parametrize("longest_wait", [0.5, 2.0])
def test_the_longest_wait_is_configurable(longest_wait: float) -> None:
    node = Node(longest_wait)
    for _ in range(3200):
        node.begin(1)
        node.answer(1, 0.001)
    assert node.takes == pytest.approx(longest_wait * 1000, rel=0.01)


def test_without_a_longest_wait_nothing_is_refused() -> None:
    node = Node(0)
    node.begin(50_000)
    node.serve(3200, 1.0)
    assert not node.load.is_too_high()


def test_the_share_of_other_programs_counts_under_constant_load() -> None:
    node = Node()
    node.begin(100)
    node.serve(3200, 0.02, used=0.001)
    assert node.load.is_too_high()
    assert node.takes == pytest.approx(50, rel=0.05)


def test_under_little_load_idle_time_does_not_count() -> None:
    node = learned(0.001)
    for _ in range(3200):
        node.idle(0.02)
        node.begin(1)
        node.answer(1, 0.001)
    assert node.takes == pytest.approx(1000, rel=0.01)


def test_background_work_is_not_charged_to_a_few_requests() -> None:
    node = learned(0.001)
    for _ in range(3200):
        node.idle(10)
        node.used += 5
        node.begin(1)
        node.answer(1, 0.001)
    assert node.takes == pytest.approx(1000, rel=0.01)


def test_a_lower_cost_is_learned_after_any_time() -> None:
    node = learned(0.01)
    for _ in range(3200):
        node.idle(10)
        node.begin(1)
        node.answer(1, 0.001)
    assert node.takes == pytest.approx(1000, rel=0.01)


def test_requests_that_wait_for_external_pages_delay_nobody() -> None:
    """A hundred wait for external pages, and occasionally one arrives."""
    node = learned(0.001)
    node.begin(100)
    for _ in range(3200):
        node.idle(0)
        node.now += 1.0
        node.serve(1, 0.001)
        assert not node.load.is_too_high()


def test_requests_do_not_pile_up_while_the_database_is_down() -> None:
    node = learned(0.001)
    for _ in range(5000):
        node.idle(0.01)
        if not node.load.is_too_high():
            node.begin(1)
    assert node.load.in_progress == pytest.approx(1000, rel=0.01)


def test_all_requests_of_one_turn_are_counted_immediately() -> None:
    node = learned(0.001)
    taken = 0
    for _ in range(5000):
        node.now += 0.00005
        if not node.load.is_too_high():
            node.begin(1)
            taken += 1
    assert taken == pytest.approx(1000, rel=0.01)


def test_a_change_of_cost_is_learned_in_both_directions() -> None:
    node = learned(0.001)
    for took, takes in [(0.01, 100), (0.001, 1000)]:
        for _ in range(3200):
            node.begin(1)
            node.answer(1, took)
        assert node.takes == pytest.approx(takes, rel=0.01)


def test_answered_requests_make_room_for_new_ones() -> None:
    node = learned(0.001)
    node.begin(2000)
    assert node.load.is_too_high()
    node.answer(2000, 0.001)
    assert node.load.in_progress == 0
    assert not node.load.is_too_high()


def test_refusals_are_logged_once_per_second(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    node.begin(5)
    node.now += 60
    with caplog.at_level(logging.WARNING):
        for _ in range(40):
            node.load.refused()
            node.now += 1 / 16
    lines = [(r.message, r.__dict__["fields"]) for r in caplog.records]
    assert [fields["refused"] for _, fields in lines] == [1, 16, 16]
    assert lines[0] == ("overloaded; refusing requests", {"refused": 1, "in_progress": 5})
