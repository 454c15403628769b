"""Nodes, their database and those who send, as a simulation of what each step costs."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from statistics import median
from typing import Final

from bench.scale.events import Clock, Lock, Machine, Process, Then

GROUP: Final = 256
"""Messages that are committed together at most, as in `log/requests.py`."""
HELD, DATABASE_BEGINS, DATABASE_HELD = 0.8, 0.25, 0.8
"""The parts of what a group costs: a node while the log is held, the database before it is, and of
the rest while it is. Chosen by hand, such that one node and several come out together."""
TURN: Final = 0.01
"""Seconds for which a node answers those who wait, before other work has its turn."""
MANY: Final = 7
MANY_SECONDS: Final = 1.0
"""From how many on, and for how long, a node commits its messages itself, as in
`log/forwarding.py`."""
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
    """At its node, for a group of any size: a part of it while the log is held."""
    foreign: float
    """At every other node, for each message."""
    forward: float
    """For a message that another node commits: at each of the two."""
    wake: float
    """At a node, each time it begins after it had nothing to do."""
    poll: float
    """At a node, for each client that waits there and gets the message: with the poll that
    follows."""
    database_group: float
    """At the database, for a group of any size: a part of it while the log is held."""
    database_message: float
    """The same for each message."""
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
    forwards: bool = False
    """Whether the node that wrote last writes for the others, as on one machine."""
    gathered: float = 0.0
    """Seconds for which a node of which nobody asks anything leaves unread what others tell."""
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
    wakes: float
    """How often a node that is asked woke up for each message, all of them together."""
    idle_wakes: float
    """The same of a node of which nobody asks anything."""
    forwarded: float
    """The part of the messages that another node committed."""
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
    node: "_Node"
    """Which was asked."""


@dataclass
class _Tally:
    acknowledged: int = 0
    seconds: list[float] = field(default_factory=list)
    groups: int = 0
    forwarded: int = 0
    held: float = 0.0


class _Node:
    """One node: its event loop, and its writer, which has one group in hand at a time."""

    def __init__(self, world: "_World", machine: Machine) -> None:
        self._world = world
        self.loop = Process(machine, world.costs.wake)
        self._inbox: deque[_Message] = deque()
        self._is_writing = False
        self._unread = 0
        """Messages of others that it has not read."""
        self._unanswered = 0
        self._many_until = -1.0

    def ask(self, message: _Message) -> None:
        """A request has come."""
        self._unanswered += 1
        self.loop.work(self._world.costs.prepare, lambda: self._submit(message))

    def hear(self, count: int, then: Then = lambda: None) -> None:
        """Others have committed messages; call when they are folded."""
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
            # It begins, and waits for the lock.
            seconds = world.costs.database_group * DATABASE_BEGINS
            world.database_busy += seconds
            world.database.work(seconds, lambda: world.lock.take(granted))

        def granted() -> None:
            began = world.clock.now
            world.clock.after(world.costs.trip / 2, lambda: self._decide(began))

        world.clock.after(world.costs.trip / 2, asked)

    def _decide(self, began: float) -> None:
        """The log is held. What waits when the loop comes to it is the group: requests that have
        come, and what others have committed, are in the queue of the loop."""
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
        """It is on disk, and the log is free."""
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
        """Answer those who wait, for some time; then other work has its turn."""
        if seconds > 0:
            part = min(seconds, TURN)
            self.loop.work(part, lambda: self._deliver(seconds - part))

    def answer(self, messages: list[_Message]) -> None:
        """Answer those that were asked of this node."""
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
            one = Machine(self.clock, setup.cores)
            machines, self.database, self.clients = [one] * count, one, one
        else:
            # A node computes on its loop, with a core beside it for its threads.
            machines = [Machine(self.clock, 2) for _ in range(count)]
            self.database = Machine(self.clock, setup.database_cores)
            self.clients = Machine(self.clock, 1_000)
        self.generator = Process(self.clients)
        self.nodes = [_Node(self, machine) for machine in machines]
        self.asked = self.nodes[: setup.nodes]
        self.writer: _Node | None = None
        """Which wrote last."""
        self.database_busy = 0.0

    def delivering(self, messages: int) -> float:
        """What it takes a node to give so many messages to those who wait there."""
        return messages * self.setup.audience / self.setup.nodes * self.costs.poll

    def commit(self, size: int, then: Then) -> None:
        """Write a group, and call when it is on disk."""
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
        """Let them send."""
        setup = self.setup
        if setup.rate:
            self._send_by_rate()
        for number in range(setup.senders):
            self._send_again(self.nodes[number % setup.nodes])()

    def _send_again(self, node: _Node) -> Callable[[], None]:
        def send() -> None:
            # One process asks for all of them, as in the bench.
            self.generator.work(
                self.costs.client, lambda: node.ask(_Message(self.clock.now, send, node))
            )

        return send

    def _send_by_rate(self) -> None:
        node = self.random.choice(self.asked)
        node.ask(_Message(self.clock.now, None, node))
        self.clock.after(self.random.expovariate(self.setup.rate), self._send_by_rate)


def simulated(costs: Costs, setup: Setup) -> Outcome:
    """Let it run for the set-up's seconds."""
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
    """The highest rate at which 99 of 100 messages are answered within so many seconds."""
    low, high = 0.0, 16_000.0
    while high - low > max(50.0, low * 0.05):
        middle = (low + high) / 2
        found = simulated(costs, replace(setup, rate=middle))
        if found.rate >= middle * 0.97 and found.p99 <= seconds:
            low = middle
        else:
            high = middle
    return low
