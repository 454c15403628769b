"""What is too much to do, by a clock that is told."""

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
        """Answer so many, one after the other, each of which takes so long and so much of the
        processor, and always in one turn of the loop with the one that comes after it."""
        for _ in range(count):
            self.load.is_too_high()
            self.now += took
            self.used += took if used is None else used
            self.load.end()
            self.turn()

    def serve(self, count: int, took: float, used: float | None = None) -> None:
        """Answer so many, and let as many come in their place."""
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
        """How many requests at once are not too many, up to 100,000."""
        before, self.load.in_progress = self.load.in_progress, 0
        while not self.load.is_too_high() and self.load.in_progress < 100_000:
            self.load.in_progress += 1
        found, self.load.in_progress = self.load.in_progress, before
        return found


def learned(took: float = 0.001) -> Node:
    """A node that has answered many requests, of which each took so long, one at a time."""
    node = Node()
    for _ in range(3200):
        node.begin(1)
        node.answer(1, took)
    return node


def test_nothing_is_too_much_before_it_is_known_what_a_request_costs() -> None:
    assert Node().takes == 100_000


@pytest.mark.parametrize("took", [1.0, 60.0])
def test_a_few_are_never_too_many(took: float) -> None:
    node = Node()
    node.begin(ALWAYS - 1)
    node.serve(320, took)
    assert node.load.in_progress == ALWAYS - 1
    assert not node.load.is_too_high()


@pytest.mark.parametrize(("took", "takes"), [(0.001, 1000), (0.004, 250), (0.0001, 10_000)])
def test_it_is_too_much_when_all_together_take_longer_than_one_may_wait(
    took: float, takes: int
) -> None:
    assert learned(took).takes == pytest.approx(takes, rel=0.01)


@pytest.mark.parametrize("longest_wait", [0.5, 2.0])
def test_how_long_one_may_wait_is_as_configured(longest_wait: float) -> None:
    node = Node(longest_wait)
    for _ in range(3200):
        node.begin(1)
        node.answer(1, 0.001)
    assert node.takes == pytest.approx(longest_wait * 1000, rel=0.01)


def test_with_no_longest_wait_nothing_is_too_much() -> None:
    node = Node(0)
    node.begin(50_000)
    node.serve(3200, 1.0)
    assert not node.load.is_too_high()


def test_what_others_take_of_the_machine_counts_while_there_is_always_more_to_do() -> None:
    node = Node()
    node.begin(100)
    node.serve(3200, 0.02, used=0.001)
    assert node.load.is_too_high()
    assert node.takes == pytest.approx(50, rel=0.05)


def test_with_little_to_do_the_time_between_requests_says_nothing() -> None:
    node = learned(0.001)
    for _ in range(3200):
        node.idle(0.02)
        node.begin(1)
        node.answer(1, 0.001)
    assert node.takes == pytest.approx(1000, rel=0.01)


def test_what_is_used_in_a_long_time_with_few_requests_is_not_theirs() -> None:
    node = learned(0.001)
    for _ in range(3200):
        node.idle(10)
        node.used += 5
        node.begin(1)
        node.answer(1, 0.001)
    assert node.takes == pytest.approx(1000, rel=0.01)


def test_that_one_costs_less_is_believed_after_any_time() -> None:
    node = learned(0.01)
    for _ in range(3200):
        node.idle(10)
        node.begin(1)
        node.answer(1, 0.001)
    assert node.takes == pytest.approx(1000, rel=0.01)


def test_requests_that_wait_for_something_else_keep_nobody_waiting() -> None:
    """Of pages elsewhere on the web, a hundred are waited for; and now and then one is there."""
    node = learned(0.001)
    node.begin(100)
    for _ in range(3200):
        node.idle(0)
        node.now += 1.0
        node.serve(1, 0.001)
        assert not node.load.is_too_high()


def test_a_database_that_has_stopped_does_not_let_requests_gather_without_end() -> None:
    node = learned(0.001)
    for _ in range(5000):
        node.idle(0.01)
        if not node.load.is_too_high():
            node.begin(1)
    assert node.load.in_progress == pytest.approx(1000, rel=0.01)


def test_all_that_come_in_one_turn_of_the_loop_are_counted_at_once() -> None:
    node = learned(0.001)
    taken = 0
    for _ in range(5000):
        node.now += 0.00005
        if not node.load.is_too_high():
            node.begin(1)
            taken += 1
    assert taken == pytest.approx(1000, rel=0.01)


def test_it_adapts_to_requests_that_cost_more_and_comes_back() -> None:
    node = learned(0.001)
    for took, takes in [(0.01, 100), (0.001, 1000)]:
        for _ in range(3200):
            node.begin(1)
            node.answer(1, took)
        assert node.takes == pytest.approx(takes, rel=0.01)


def test_when_they_are_answered_there_is_room_again() -> None:
    node = learned(0.001)
    node.begin(2000)
    assert node.load.is_too_high()
    node.answer(2000, 0.001)
    assert node.load.in_progress == 0
    assert not node.load.is_too_high()


def test_refusals_are_logged_once_in_a_second(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    node.begin(5)
    node.now += 60
    with caplog.at_level(logging.WARNING):
        for _ in range(40):
            node.load.refused()
            node.now += 1 / 16
    lines = [(r.message, r.__dict__["fields"]) for r in caplog.records]
    assert [fields["refused"] for _, fields in lines] == [1, 16, 16]
    assert lines[0] == ("there is too much to do", {"refused": 1, "in_progress": 5})
