"""A simulation of nodes, their database, and senders, from the cost of each step."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from statistics import median
from typing import Final

from bench.scale.events import Clock, Lock, Machine, Process, Then

GROUP: Final = 256
"""The maximum number of messages in a commit, as in `log/requests.py`."""
HELD, DATABASE_BEGINS, DATABASE_HELD = 0.8, 0.25, 0.8
"""Shares of a group's cost: at a node while the log is locked, at the database before that, and of
the rest while the log is locked. Chosen by hand to match one node and several."""
TURN: Final = 0.01
"""How long delivery runs before other work has its turn, in seconds."""
MANY: Final = 7
MANY_SECONDS: Final = 1.0
"""The number of messages from which, and the time for which, a node commits its own messages, as in
`log/forwarding.py`."""
WARM_UP: Final = 0.2
"""The share of the time that doesn't count."""


@dataclass(frozen=True)
class Costs:
    """The processor time of each step of a message, as measured, in seconds."""

    prepare: float
    """At its node before it's submitted: reading the request, finding the sender, and rendering."""
    decide: float
    """At its node while the log is locked."""
    write: float
    """At its node while the log is locked: encoding it, and the database driver."""
    answer: float
    """At its node when it's on disk: the response, and the event for waiting clients."""
    group: float
    """At its node per group: a part of it while the log is locked."""
    foreign: float
    """At every other node per message."""
    forward: float
    """For a message that another node commits, at both nodes."""
    wake: float
    """At a node, each time it starts after being idle."""
    poll: float
    """At a node, for each waiting client that gets the message, with the next poll."""
    database_group: float
    """At the database per group: a part of it while the log is locked."""
    database_message: float
    """The same per message."""
    flush: float
    """Seconds until a commit is on disk, without processor time."""
    trip: float
    """Seconds for a round trip to the database, without processor time."""
    client: float
    """At the sender: sending the request and reading the response."""


@dataclass(frozen=True)
class Setup:
    """The nodes, senders, and clients of a simulation."""

    nodes: int
    forwards: bool = False
    """Whether the last writer writes for the others, as on one machine."""
    gathered: float = 0.0
    """Seconds for which a node without requests leaves announcements unread."""
    listening: int = 0
    """Additional nodes without requests."""
    senders: int = 0
    """Clients that send the next message after each response."""
    rate: float = 0.0
    """Messages sent per second instead, regardless of responses."""
    audience: float = 0.0
    """The average number of waiting clients, at any node, that get a message."""
    cores: int | None = None
    """The cores of one machine for everything, or None if each node and the database have their
    own."""
    database_cores: int = 8
    seconds: float = 5.0


@dataclass
class Outcome:
    """The results of a simulation."""

    rate: float
    """Acknowledged messages per second."""
    median: float
    """Seconds from the request to the response."""
    p99: float
    group: float
    """The average number of messages per commit."""
    wakes: float
    """Wake-ups per message of all nodes with requests."""
    idle_wakes: float
    """Wake-ups per message of a node without requests."""
    forwarded: float
    """The share of messages that another node committed."""
    node_load: float
    """The busiest node's event loop load."""
    lock_load: float
    """The share of the time in which the log is locked."""
    database_cores: float
    """The number of cores that the database uses."""


@dataclass
class _Message:
    asked: float
    answered: Then | None
    node: "_Node"
    """The node that received the request."""


@dataclass
class _Tally:
    acknowledged: int = 0
    seconds: list[float] = field(default_factory=list)
    groups: int = 0
    forwarded: int = 0
    held: float = 0.0


class _Node:
    """A node: its event loop, and its writer, which has one group in progress at a time."""

    def __init__(self, world: "_World", machine: Machine) -> None:
        self._world = world
        self.loop = Process(machine, world.costs.wake)
        self._inbox: deque[_Message] = deque()
        self._is_writing = False
        self._unread = 0
        """The number of other nodes' messages that this node hasn't read."""
        self._unanswered = 0
        self._many_until = -1.0

    def ask(self, message: _Message) -> None:
        """Handle a new request."""
        self._unanswered += 1
        self.loop.work(self._world.costs.prepare, lambda: self._submit(message))

    def hear(self, count: int, then: Then = lambda: None) -> None:
        """Handle messages that other nodes have committed. Call the function when they're
        folded."""
        world = self._world
        gathered = world.setup.gathered
        if self in world.asked or world.setup.audience or not gathered:
            self.loop.work(count * world.costs.foreign, then)
            self._deliver(world.delivering(count))
            return
        if not self._unread:
            world.clock.after(gathered, self._read)
        self._unread += count

    def _read(self) -> None:
        count, self._unread = self._unread, 0
        self.loop.work(count * self._world.costs.foreign, lambda: None)

    def _submit(self, message: _Message) -> None:
        world = self._world
        if self._unanswered >= MANY:
            self._many_until = world.clock.now + MANY_SECONDS
        writer = world.writer
        if not world.setup.forwards or writer in (None, self) or world.clock.now < self._many_until:
            self._enqueue(message)
            return
        assert writer is not None
        world.tally.forwarded += 1

        def carry() -> None:
            writer.loop.work(world.costs.forward, lambda: writer._enqueue(message))

        self.loop.work(world.costs.forward, carry)

    def _enqueue(self, message: _Message) -> None:
        self._inbox.append(message)
        if not self._is_writing:
            self._begin()

    def _begin(self) -> None:
        self._is_writing = True
        world = self._world

        def asked() -> None:
            # The transaction starts and waits for the lock.
            seconds = world.costs.database_group * DATABASE_BEGINS
            world.database_busy += seconds
            world.database.work(seconds, lambda: world.lock.take(granted))

        def granted() -> None:
            began = world.clock.now
            world.clock.after(world.costs.trip / 2, lambda: self._decide(began))

        world.clock.after(world.costs.trip / 2, asked)

    def _decide(self, began: float) -> None:
        """Decide the group while the log is locked. It has everything that waits when the loop gets
        to it, because requests and other nodes' commits are in the loop's queue."""
        world, costs = self._world, self._world.costs

        def join() -> None:
            group = [self._inbox.popleft() for _ in range(min(len(self._inbox), GROUP))]
            size = len(group)
            seconds = size * (costs.decide + costs.write)
            self.loop.work(
                seconds, lambda: world.commit(size, lambda: self._committed(group, began))
            )

        self.loop.work(costs.group * HELD, join)

    def _committed(self, group: list[_Message], began: float) -> None:
        """Handle a commit that is on disk. The log is free."""
        world = self._world
        world.tally.groups += 1
        world.tally.held += world.clock.now - began
        world.lock.release()
        world.writer = self
        for node in world.nodes:
            if node is not self:
                mine = [message for message in group if message.node is node]
                node.hear(len(group), partial(node.answer, mine))
        mine = [message for message in group if message.node is self]
        world.clock.after(world.costs.trip / 2, lambda: self._end(mine, len(group)))

    def _end(self, mine: list[_Message], count: int) -> None:
        self._is_writing = False
        if self._inbox:
            self._begin()
        self.loop.work(self._world.costs.group * (1 - HELD), lambda: None)
        self.answer(mine)
        self._deliver(self._world.delivering(count))

    def _deliver(self, seconds: float) -> None:
        """Deliver to waiting clients for some time, and then let other work have its turn."""
        if seconds > 0:
            part = min(seconds, TURN)
            self.loop.work(part, lambda: self._deliver(seconds - part))

    def answer(self, messages: list[_Message]) -> None:
        """Answer this node's requests."""
        for message in messages:
            self._unanswered -= 1
            self.loop.work(self._world.costs.answer, partial(self._world.answered, message))


class _World:
    def __init__(self, costs: Costs, setup: Setup) -> None:
        self.costs, self.setup = costs, setup
        self.clock = Clock()
        self.lock = Lock()
        self.tally = _Tally()
        self.random = Random(1)
        count = setup.nodes + setup.listening
        if setup.cores is not None:
            machine = Machine(self.clock, setup.cores)
            machines, self.database, self.clients = [machine] * count, machine, machine
        else:
            # A node uses a core for its event loop, and another one for its threads.
            machines = [Machine(self.clock, 2) for _ in range(count)]
            self.database = Machine(self.clock, setup.database_cores)
            self.clients = Machine(self.clock, 1_000)
        self.generator = Process(self.clients)
        self.nodes = [_Node(self, machine) for machine in machines]
        self.asked = self.nodes[: setup.nodes]
        self.writer: _Node | None = None
        """The node that wrote last."""
        self.database_busy = 0.0

    def delivering(self, messages: int) -> float:
        """Return a node's cost of delivering this many messages to its waiting clients."""
        return messages * self.setup.audience / self.setup.nodes * self.costs.poll

    def commit(self, size: int, then: Then) -> None:
        """Write a group, and call the function when it's on disk."""
        costs = self.costs
        seconds = costs.database_group * (1 - DATABASE_BEGINS) + size * costs.database_message
        self.database_busy += seconds

        def written() -> None:
            self.clock.after(costs.flush * self.random.expovariate(1.0), then)
            self.database.work(seconds * (1 - DATABASE_HELD), lambda: None)

        def arrived() -> None:
            self.database.work(seconds * DATABASE_HELD, written)

        self.clock.after(costs.trip / 2, arrived)

    def answered(self, message: _Message) -> None:
        if self.clock.now >= self.setup.seconds * WARM_UP:
            self.tally.acknowledged += 1
            self.tally.seconds.append(self.clock.now - message.asked)
        if message.answered is not None:
            message.answered()

    def begin(self) -> None:
        """Start the senders."""
        setup = self.setup
        if setup.rate:
            self._send_by_rate()
        for number in range(setup.senders):
            self._send_again(self.nodes[number % setup.nodes])()

    def _send_again(self, node: _Node) -> Callable[[], None]:
        def send() -> None:
            # One process sends all requests, as in the benchmark.
            self.generator.work(
                self.costs.client, lambda: node.ask(_Message(self.clock.now, send, node))
            )

        return send

    def _send_by_rate(self) -> None:
        node = self.random.choice(self.asked)
        node.ask(_Message(self.clock.now, None, node))
        self.clock.after(self.random.expovariate(self.setup.rate), self._send_by_rate)


def simulated(costs: Costs, setup: Setup) -> Outcome:
    """Run the simulation for the setup's duration."""
    world = _World(costs, setup)
    world.begin()
    world.clock.run(setup.seconds)
    tally = world.tally
    seconds = sorted(tally.seconds) or [0.0]
    everything = max(tally.acknowledged, 1) / (1 - WARM_UP)
    return Outcome(
        rate=tally.acknowledged / (setup.seconds * (1 - WARM_UP)),
        median=median(seconds),
        p99=seconds[int(len(seconds) * 0.99)] if len(seconds) > 1 else seconds[0],
        group=everything / max(tally.groups, 1),
        wakes=sum(node.loop.wakes for node in world.asked) / everything,
        idle_wakes=world.nodes[-1].loop.wakes / everything,
        forwarded=tally.forwarded / everything,
        node_load=max(node.loop.busy for node in world.nodes) / setup.seconds,
        lock_load=tally.held / setup.seconds,
        database_cores=world.database_busy / setup.seconds,
    )


def at_most(costs: Costs, setup: Setup, seconds: float) -> float:
    """Return the highest rate at which 99% of messages are answered within this many seconds."""
    low, high = 0.0, 16_000.0
    while high - low > max(50.0, low * 0.05):
        middle = (low + high) / 2
        predicted = simulated(costs, replace(setup, rate=middle))
        if predicted.rate >= middle * 0.97 and predicted.p99 <= seconds:
            low = middle
        else:
            high = middle
    return low
