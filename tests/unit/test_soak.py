"""The soak test finds all violations, and nothing else."""

import pytest
from bench.soak.checks import of_files, of_memory, of_queues
from bench.soak.record import Record, Watch

CHANNEL = 7


def under_way(*received: int) -> Record:
    """Messages 1 to 4 in a channel, with events 10 to 40, and what a client received that joined
    after the first and left before the last."""
    record = Record(acknowledged=dict.fromkeys((1, 2, 3, 4), (CHANNEL,)))
    for message_id in (1, 2, 3, 4):
        record.brought(message_id, message_id * 10)
    watch = Watch(user_id=5, start=5)
    watch.enter(CHANNEL, 15)
    watch.leave(CHANNEL, 35)
    watch.received.extend(received)
    record.watches.append(watch)
    return record


def test_a_client_that_received_everything_due_passes() -> None:
    record = under_way(2, 3)
    assert record.judge() == 2
    assert record.failures == []


@pytest.mark.parametrize(
    ("received", "said"),
    [
        ((2,), "did not get 1 messages: [3]"),
        ((2, 3, 3), "more than once"),
        ((1, 2, 3), "should not have got 1 messages: [1]"),
        ((2, 3, 4), "should not have got 1 messages: [4]"),
        ((2, 3, 99), "should not have got 1 messages: [99]"),
    ],
)
def test_each_kind_of_violation_is_reported(received: tuple[int, ...], said: str) -> None:
    record = under_way(*received)
    record.judge()
    assert record.failed == 1
    assert said in record.failures[0]


def test_deleted_messages_may_be_missing() -> None:
    record = under_way(2)
    record.excused.add(3)
    record.judge()
    assert record.failures == []


def test_events_after_the_end_of_a_queue_are_not_due() -> None:
    record = under_way(2)
    record.watches[0].end = 25
    assert record.judge() == 1
    assert record.failures == []


def test_a_message_that_nobody_received_is_reported() -> None:
    record = under_way(2, 3)
    record.acknowledged[9] = (CHANNEL,)
    record.judge()
    assert record.failures == ["message 9 was acknowledged and came to nobody"]


def test_a_message_has_one_event() -> None:
    record = under_way(2, 3)
    record.brought(2, 21)
    assert record.failed == 1


@pytest.mark.parametrize(
    ("minutes", "each_minute", "wrong"), [(20, 0, 0), (20, 400, 0), (20, 600, 1), (5, 600, 0)]
)
def test_memory_must_be_flat_in_the_second_half(
    minutes: int, each_minute: float, wrong: int
) -> None:
    """Growth in the first half doesn't matter. Short runs aren't judged."""
    half = minutes / 2
    heap = [(m, 9000.0 * min(m, half) + each_minute * max(m - half, 0)) for m in range(minutes + 1)]
    assert len(of_memory(heap)[1]) == wrong


def test_leftover_files_and_queues_are_reported() -> None:
    assert of_files(20, 2025, 2000, 22) == []
    assert len(of_files(20, 2100, 2000, 90)) == 2
    assert of_queues({"a"}, {"a"}) == []
    assert len(of_queues({"a", "b"}, {"a", "c"})) == 2
