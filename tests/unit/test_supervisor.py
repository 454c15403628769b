"""Decisions of a supervisor of several workers, with simulated processes and clock."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tertulia.app.serving.supervisor import (
    FAILED_STARTS,
    LOOK_SECONDS,
    LOOKS,
    PAUSES,
    START_SECONDS,
    STEADY_SECONDS,
    WorkerSupervisor,
)


@dataclass(eq=False)
class Worker:
    number: int
    pid: int
    told: list[str] = field(default_factory=list)
    beat: float | None = None

    def leave(self) -> None:
        self.told.append("leave")

    def stop(self) -> None:
        self.told.append("stop")

    def kill(self) -> None:
        self.told.append("kill")


class Server:
    """A supervisor, and what it has done."""

    def __init__(self, workers: int = 2) -> None:
        self.now = 0.0
        self.started: list[Worker] = []
        self.said: list[str] = []
        self.error: OSError | None = None
        self.supervisor = WorkerSupervisor(
            workers, self._start, self.said.append, now=self.now, stop_seconds=10
        )

    def _start(self, number: int) -> Worker:
        if self.error is not None:
            raise self.error
        self.started.append(Worker(number, 100 + len(self.started)))
        return self.started[-1]

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.supervisor.tick(self.now)

    def ready(self, *workers: Worker, text: str = "ready") -> None:
        for worker in workers:
            self.supervisor.ready(worker, text, self.now)

    def ends(self, worker: Worker, code: int = 0) -> None:
        self.supervisor.ended(worker, code, self.now)

    def new(self) -> Iterator[Worker]:
        """Workers started since the last call."""
        found, self.started[:] = list(self.started), []
        return iter(found)

    @property
    def exit_code(self) -> int | None:
        return self.supervisor.exit_code


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def pair(server: Server) -> tuple[Worker, Worker]:
    """Its workers, which are ready."""
    one, two = server.new()
    server.ready(one, two)
    return one, two


def test_the_server_is_ready_once_when_all_workers_are(server: Server) -> None:
    one, two = server.new()
    assert (one.number, two.number) == (0, 1)
    server.ready(one, text="waiting")
    assert server.said == []
    server.ready(two, text="waiting")
    # An organization was created, which workers notice one after the other.
    server.ready(two)
    assert server.said == ["waiting"]
    server.ready(one)
    server.ready(one)
    assert server.said == ["waiting", "ready"]


@pytest.mark.usefixtures("pair")
def test_a_dead_worker_is_replaced_immediately_and_then_with_growing_pauses(
    server: Server, pair: tuple[Worker, Worker]
) -> None:
    worker = pair[1]
    for pause in (*PAUSES, PAUSES[-1]):
        server.ends(worker, -9)
        if pause:
            server.pass_time(pause - 0.1)
            assert not list(server.new())
        server.pass_time(0.1)
        (worker,) = server.new()
        assert worker.number == 1
        server.ready(worker)
    # A worker that has run for long enough resets the pauses.
    server.pass_time(STEADY_SECONDS)
    server.ends(worker, -11)
    server.pass_time(0)
    (again,) = server.new()
    assert (again.number, server.exit_code, server.said) == (1, None, ["ready"])


@pytest.mark.parametrize(("code", "expected"), [(1, 1), (2, 2)])
def test_a_worker_that_refuses_to_start_ends_the_server_with_its_exit_code(
    server: Server, code: int, expected: int
) -> None:
    one, two = server.new()
    server.ends(one, code)
    assert (two.told, server.exit_code) == (["stop"], None)
    server.ends(two, -15)
    assert server.exit_code == expected
    assert server.said == []


def test_the_supervisor_gives_up_if_no_worker_starts(server: Server) -> None:
    workers = list(server.new())
    for number in range(FAILED_STARTS):
        assert server.exit_code is None, number
        server.ends(workers.pop(0), -9)
        server.pass_time(PAUSES[-1] if number < FAILED_STARTS - 1 else 0)
        workers += server.new()
    (left,) = workers
    assert left.told == ["stop"]
    server.ends(left, -15)
    assert server.exit_code == 1


def test_the_supervisor_gives_up_if_no_process_can_be_created(server: Server) -> None:
    server.error = OSError("no more processes")
    for worker in server.new():
        server.ends(worker, -9)
    for _ in range(FAILED_STARTS):
        server.pass_time(PAUSES[-1])
    assert server.exit_code == 1


def test_the_supervisor_keeps_trying_while_another_worker_serves(
    server: Server, pair: tuple[Worker, Worker]
) -> None:
    server.ends(pair[0], -9)
    for _ in range(3 * FAILED_STARTS):
        server.pass_time(PAUSES[-1])
        (worker,) = server.new()
        server.ends(worker, 1)
    server.error = OSError("no more processes")
    server.pass_time(PAUSES[-1])
    server.error = None
    server.pass_time(PAUSES[-1])
    (worker,) = server.new()
    assert (worker.number, server.exit_code) == (0, None)


def test_workers_are_replaced_one_by_one(server: Server, pair: tuple[Worker, Worker]) -> None:
    server.supervisor.replace(server.now)
    (third,) = server.new()
    assert (third.number, pair[0].told) == (0, [])
    server.ready(third)
    assert pair[0].told == ["leave"]
    assert not list(server.new())
    server.ends(pair[0])
    (fourth,) = server.new()
    assert (fourth.number, pair[1].told) == (1, [])
    server.ready(fourth)
    assert pair[1].told == ["leave"]
    server.ends(pair[1])
    assert not list(server.new())
    assert third.told == fourth.told == []
    assert server.said == ["ready"]


def test_a_second_replacement_request_starts_again(
    server: Server, pair: tuple[Worker, Worker]
) -> None:
    server.supervisor.replace(server.now)
    (third,) = server.new()
    server.ready(third)
    server.supervisor.replace(server.now)
    assert not list(server.new())
    server.ends(pair[0])
    (fourth,) = server.new()
    server.ready(fourth)
    assert (fourth.number, third.told, pair[1].told) == (0, ["leave"], [])


def test_a_replacement_that_fails_to_start_stops_the_replacing(
    server: Server, pair: tuple[Worker, Worker]
) -> None:
    server.supervisor.replace(server.now)
    (third,) = server.new()
    server.ends(third, 2)
    server.pass_time(1000)
    assert not list(server.new())
    assert pair[0].told == pair[1].told == []
    # The next one may succeed.
    server.supervisor.replace(server.now)
    (fourth,) = server.new()
    server.ready(fourth)
    assert pair[0].told == ["leave"]


def test_a_replacement_stopped_before_it_is_ready_stops_the_replacing(
    server: Server, pair: tuple[Worker, Worker]
) -> None:
    server.supervisor.replace(server.now)
    (third,) = server.new()
    server.supervisor.leaving(third, server.now)
    server.ready(third)
    assert pair[0].told == []
    server.ends(third)
    # Its place is filled as usual, and replacing can be requested again.
    server.ends(pair[0], -9)
    server.pass_time(1)
    (fourth,) = server.new()
    assert fourth.number == 0
    server.ready(fourth)
    server.supervisor.replace(server.now)
    (fifth,) = server.new()
    server.ready(fifth)
    assert fourth.told == ["leave"]


@pytest.mark.parametrize("succeeds", [True, False])
def test_a_worker_that_dies_while_being_replaced(
    server: Server, pair: tuple[Worker, Worker], *, succeeds: bool
) -> None:
    server.supervisor.replace(server.now)
    (third,) = server.new()
    server.ends(pair[0], -9)
    server.pass_time(1000)
    assert not list(server.new()), "somebody takes its place already"
    if succeeds:
        server.ready(third)
        (fourth,) = server.new()
        assert fourth.number == 1
    else:
        server.ends(third, -9)
        server.pass_time(1000)
        (fourth,) = server.new()
        assert fourth.number == 0


def test_a_worker_that_leaves_is_replaced_before_it_has_ended(
    server: Server, pair: tuple[Worker, Worker]
) -> None:
    server.supervisor.leaving(pair[1], server.now)
    server.supervisor.leaving(pair[1], server.now)
    server.pass_time(0)
    (third,) = server.new()
    assert (third.number, pair[1].told) == (1, [])
    server.ready(third)
    server.ends(pair[1])
    server.pass_time(5)
    assert not list(server.new())


def test_the_supervisor_ends_when_all_workers_have_ended(
    server: Server, pair: tuple[Worker, Worker]
) -> None:
    server.ends(pair[0], -9)
    server.pass_time(0)
    (third,) = server.new()
    server.supervisor.stop(server.now)
    assert third.told == pair[1].told == ["stop"]
    server.supervisor.replace(server.now)
    server.ends(third, -15)  # It was too early in its start to exit cleanly.
    assert server.exit_code is None
    server.ends(pair[1])
    assert server.exit_code == 0
    assert not list(server.new())


Ending = Callable[[Server, Worker], None]


@pytest.mark.parametrize(
    "ending",
    [
        lambda server, _: server.supervisor.stop(server.now),
        lambda server, worker: server.supervisor.leaving(worker, server.now),
    ],
    ids=["stop", "leaving"],
)
def test_a_worker_that_does_not_end_in_time_is_killed(
    server: Server, pair: tuple[Worker, Worker], ending: Ending
) -> None:
    ending(server, pair[0])
    assert server.supervisor.tick(server.now) <= 10
    server.pass_time(9)
    assert "kill" not in pair[0].told
    server.pass_time(1)
    server.pass_time(1)
    assert pair[0].told.count("kill") == 1


def test_a_worker_that_does_not_become_ready_is_killed(server: Server) -> None:
    one, two = server.new()
    server.ready(one)
    server.pass_time(START_SECONDS - 1)
    assert one.told == two.told == []
    server.pass_time(1)
    server.pass_time(1)
    assert (one.told, two.told) == ([], ["kill"])
    server.ends(two, -9)
    server.pass_time(0)
    (again,) = server.new()
    assert again.number == two.number


def test_a_frozen_worker_is_killed(server: Server, pair: tuple[Worker, Worker]) -> None:
    for number in range(3 * LOOKS):
        pair[0].beat = number  # The other one sends no heartbeat.
        server.pass_time(LOOK_SECONDS)
    assert pair[0].told == pair[1].told == []
    for _ in range(LOOKS - 1):
        server.pass_time(LOOK_SECONDS)
    # It's forgiven once it continues.
    pair[0].beat = -1
    # Time while the machine slept counts as one check.
    server.pass_time(1000)
    assert pair[0].told == []
    for _ in range(LOOKS):
        server.pass_time(LOOK_SECONDS)
    assert (pair[0].told, pair[1].told) == (["kill"], [])
