"""Nodes, their database and those who send, as a simulation of what each step costs."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from statistics import median
from typing import Final

from bench.scale.events import Clock, Lock, Machine, Process, Then

GROUP: Final = 500
"""Messages that are committed together at most, as in `log/inbox.py`."""
WARM_UP: Final = 0.2
"""The part of the time that does not count."""


@dataclass(frozen=True)
class Costs:
    """Seconds of processor time for each step of a message's way, as they were measured."""

    prepare: float
    """At its node, before it is submitted: the request is read, the sender found, the text
    rendered."""
    decide: float
    """At its node, while the log is held."""
    write: float
    """At its node, while the log is held: encoding it and what the driver does with it."""
    answer: float
    """At its node, when it is on disk: the answer, and the event for those who wait there."""
    group: float
    """At its node, while the log is held: for a group of any size."""
    foreign: float
    """At every other node, for each message."""
    foreign_group: float
    """The same for each group: being woken, and reading what was told."""
    poll: float
    """At a node, for each client that waits there and gets the message: with the poll that
    follows."""
    database_group: float
    """At the database, while the log is held: for a group of any size."""
    database_message: float
    """At the database, while the log is held."""
    flush: float
    """Seconds until a commit is on disk, in which nothing computes."""
    trip: float
    """Seconds from a node to the database and back, in which nothing computes."""
    client: float
    """At who sends: asking and reading the answer."""


@dataclass(frozen=True)
class Setup:
    """What is simulated."""

    nodes: int
    listening: int = 0
    """Further nodes, of which nobody asks anything."""
    senders: int = 0
    """Clients that send the next message when the last is answered."""
    rate: float = 0.0
    """Instead of them: messages that are sent in a second, whatever becomes of them."""
    audience: float = 0.0
    """How many clients that wait, at whichever node, get a message, on average."""
    cores: int | None = None
    """Of the one machine on which everything runs; None where each node, and the database, has
    one of its own."""
    database_cores: int = 8
    seconds: float = 5.0


@dataclass
class Outcome:
    """What came of it."""

    rate: float
    """Messages acknowledged in a second."""
    median: float
    """Seconds from asking to the answer."""
    p99: float
    group: float
    """Messages in a commit, on average."""
    node_load: float
    """The part of the time in which the busiest node's event loop works."""
    lock_load: float
    """The part of the time in which the log is held."""
    database_cores: float
    """How many cores the database keeps busy."""


@dataclass
class _Message:
    asked: float
    answered: Then | None


@dataclass
class _Tally:
    acknowledged: int = 0
    seconds: list[float] = field(default_factory=list)
    groups: int = 0
    held: float = 0.0


class _Node:
    """One node: its event loop, and its writer, which has one group in hand at a time."""

    def __init__(self, world: "_World", machine: Machine) -> None:
        self._world = world
        self.loop = Process(machine)
        self._inbox: deque[_Message] = deque()
        self._is_writing = False
        self._unseen = 0
        """Messages of others that it has not folded."""

    def ask(self, message: _Message) -> None:
        """A request has come."""
        self.loop.work(self._world.costs.prepare, lambda: self._submit(message))

    def hear(self, count: int) -> None:
        """Others have committed messages."""
        world = self._world
        seconds = world.costs.foreign_group + world.costs.foreign * count
        seconds += world.delivering(count)
        self._unseen += count

        def folded() -> None:
            self._unseen -= count

        self.loop.work(seconds, folded)

    def _submit(self, message: _Message) -> None:
        self._inbox.append(message)
        if not self._is_writing:
            self._begin()

    def _begin(self) -> None:
        self._is_writing = True
        world = self._world

        def asked() -> None:
            world.lock.take(granted)

        def granted() -> None:
            began = world.clock.now
            world.clock.after(world.costs.trip / 2, lambda: self._decide(began))

        world.clock.after(world.costs.trip / 2, asked)

    def _decide(self, began: float) -> None:
        """The log is held. What waits now is the group."""
        world, costs = self._world, self._world.costs
        group = [self._inbox.popleft() for _ in range(min(len(self._inbox), GROUP))]
        size = len(group)
        # What others have committed and this node has not folded yet is in the queue of its loop.
        seconds = costs.group + size * (costs.decide + costs.write)
        self.loop.work(seconds, lambda: world.commit(size, lambda: self._committed(group, began)))

    def _committed(self, group: list[_Message], began: float) -> None:
        """It is on disk, and the log is free."""
        world = self._world
        world.tally.groups += 1
        world.tally.held += world.clock.now - began
        world.lock.release()
        for node in world.nodes:
            if node is not self:
                node.hear(len(group))
        world.clock.after(world.costs.trip / 2, lambda: self._answer(group))

    def _answer(self, group: list[_Message]) -> None:
        world = self._world
        self._is_writing = False
        if self._inbox:
            self._begin()
        for message in group:
            self.loop.work(world.costs.answer, partial(world.answered, message))
        self.loop.work(world.delivering(len(group)), lambda: None)


class _World:
    def __init__(self, costs: Costs, setup: Setup) -> None:
        self.costs, self.setup = costs, setup
        self.clock = Clock()
        self.lock = Lock()
        self.tally = _Tally()
        self.random = Random(1)
        count = setup.nodes + setup.listening
        if setup.cores is not None:
            one = Machine(self.clock, setup.cores)
            machines, self.database, self.clients = [one] * count, one, one
        else:
            # A node computes on its loop, with a core beside it for its threads.
            machines = [Machine(self.clock, 2) for _ in range(count)]
            self.database = Machine(self.clock, setup.database_cores)
            self.clients = Machine(self.clock, 1_000)
        self.generator = Process(self.clients)
        self.nodes = [_Node(self, machine) for machine in machines]
        self.database_busy = 0.0

    def delivering(self, messages: int) -> float:
        """What it takes a node to give so many messages to those who wait there."""
        return messages * self.setup.audience / self.setup.nodes * self.costs.poll

    def commit(self, size: int, then: Then) -> None:
        """Write a group, and call when it is on disk."""
        costs = self.costs
        seconds = costs.database_group + size * costs.database_message
        self.database_busy += seconds

        def arrived() -> None:
            self.database.work(seconds, lambda: self.clock.after(costs.flush, then))

        self.clock.after(costs.trip / 2, arrived)

    def answered(self, message: _Message) -> None:
        if self.clock.now >= self.setup.seconds * WARM_UP:
            self.tally.acknowledged += 1
            self.tally.seconds.append(self.clock.now - message.asked)
        if message.answered is not None:
            message.answered()

    def begin(self) -> None:
        """Let them send."""
        setup = self.setup
        if setup.rate:
            self._send_by_rate()
        for number in range(setup.senders):
            self._send_again(self.nodes[number % setup.nodes])()

    def _send_again(self, node: _Node) -> Callable[[], None]:
        def send() -> None:
            # One process asks for all of them, as in the bench.
            self.generator.work(self.costs.client, lambda: node.ask(_Message(self.clock.now, send)))

        return send

    def _send_by_rate(self) -> None:
        self.random.choice(self.nodes[: self.setup.nodes]).ask(_Message(self.clock.now, None))
        self.clock.after(self.random.expovariate(self.setup.rate), self._send_by_rate)


def simulated(costs: Costs, setup: Setup) -> Outcome:
    """Let it run for the set-up's seconds."""
    world = _World(costs, setup)
    world.begin()
    world.clock.run(setup.seconds)
    tally = world.tally
    seconds = sorted(tally.seconds) or [0.0]
    return Outcome(
        rate=tally.acknowledged / (setup.seconds * (1 - WARM_UP)),
        median=median(seconds),
        p99=seconds[int(len(seconds) * 0.99)] if len(seconds) > 1 else seconds[0],
        group=tally.acknowledged / (1 - WARM_UP) / max(tally.groups, 1),
        node_load=max(node.loop.busy for node in world.nodes) / setup.seconds,
        lock_load=tally.held / setup.seconds,
        database_cores=world.database_busy / setup.seconds,
    )


def at_most(costs: Costs, setup: Setup, seconds: float) -> float:
    """The highest rate at which 99 of 100 messages are answered within so many seconds."""
    low, high = 0.0, 100_000.0
    while high - low > max(20.0, low * 0.02):
        middle = (low + high) / 2
        found = simulated(costs, replace(setup, rate=middle))
        if found.rate >= middle * 0.97 and found.p99 <= seconds:
            low = middle
        else:
            high = middle
    return low
