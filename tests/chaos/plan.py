"""The plan of faults, generated from a seed before the run."""

import enum
import random
from collections.abc import Iterator
from dataclasses import dataclass


class Kind(enum.Enum):
    """Kinds of faults."""

    KILL_NODE = "kill -9 of node"
    STOP_NODE = "SIGSTOP of node"
    FREEZE = "nothing passes between the database and node"
    CUT = "connections to the database are refused to node"
    SNAP = "connections to the database are cut, once, of node"
    DELAY = "the way to the database is slow for node"
    LOSE_ANSWER = "the connection is cut instead of the answer to a commit of node"
    FREEZE_ANSWER = "the answer to a commit does not arrive at node"
    CUT_LISTENER = "the listening connection is cut of node"
    FREEZE_LISTENER = "the listening connection falls silent of node"
    STOP_DATABASE = "SIGSTOP of PostgreSQL"
    KILL_DATABASE = "kill -9 of PostgreSQL"
    UPGRADE = "a newer version migrates, as node"


AT_NODES: dict[Kind, tuple[int, float, float]] = {
    Kind.KILL_NODE: (3, 0.0, 4.0),
    Kind.STOP_NODE: (4, 1.0, 15.0),
    Kind.FREEZE: (3, 1.0, 25.0),
    Kind.CUT: (2, 1.0, 15.0),
    Kind.SNAP: (2, 0.0, 0.0),
    Kind.DELAY: (2, 3.0, 12.0),
    Kind.LOSE_ANSWER: (3, 2.0, 2.0),
    Kind.FREEZE_ANSWER: (2, 2.0, 20.0),
    Kind.CUT_LISTENER: (2, 0.0, 0.0),
    Kind.FREEZE_LISTENER: (2, 5.0, 30.0),
}
"""The relative frequency, and the duration in seconds, from and to."""
AT_THE_DATABASE: dict[Kind, tuple[int, float, float]] = {
    Kind.STOP_DATABASE: (2, 1.0, 14.0),
    Kind.KILL_DATABASE: (1, 0.0, 4.0),
}
NODE_REST = (3.0, 12.0)
"""Seconds between two faults of one node."""
DATABASE_REST = (15.0, 40.0)
SHORT_SECONDS = 26.0
"""The duration of the short plan."""
UPGRADED_AT = 0.6
"""The share of the time after which a newer node joins."""


@dataclass(frozen=True)
class Fault:
    """A fault that starts at a time and ends after a while."""

    at: float
    """Seconds since the start."""
    kind: Kind
    seconds: float = 0.0
    node: int | None = None

    @property
    def until(self) -> float:
        return self.at + self.seconds

    def __str__(self) -> str:
        name = self.kind.value if self.node is None else f"{self.kind.value} {self.node}"
        return f"{name}, for {self.seconds:.1f} s" if self.seconds else name


def plan(seed: int, seconds: float, nodes: int) -> list[Fault]:
    """Plan faults for a run of this many seconds, in order: some at each node in turn, some at the
    database, and a newer version that joins, if there is time."""
    faults = [
        *_lane(seed, "database", seconds, DATABASE_REST, AT_THE_DATABASE, None),
        *(
            fault
            for node in range(nodes)
            for fault in _lane(seed, f"node {node}", seconds, NODE_REST, AT_NODES, node)
        ),
    ]
    if seconds >= 60:
        faults.append(Fault(seconds * UPGRADED_AT, Kind.UPGRADE, node=nodes))
    return sorted(faults, key=lambda fault: fault.at)


def short() -> list[Fault]:
    """The shortest plan: one fault of each important kind, in half a minute."""
    return [
        Fault(2.0, Kind.CUT_LISTENER, node=0),
        Fault(3.0, Kind.STOP_NODE, 14.0, node=1),
        Fault(6.0, Kind.KILL_NODE, 1.0, node=2),
        Fault(9.0, Kind.STOP_DATABASE, 1.5),
        Fault(12.0, Kind.LOSE_ANSWER, 2.0, node=0),
        Fault(17.0, Kind.KILL_DATABASE, 1.0),
        Fault(20.0, Kind.FREEZE, 4.0, node=2),
    ]


def _lane(
    seed: int,
    name: str,
    seconds: float,
    rest: tuple[float, float],
    kinds: dict[Kind, tuple[int, float, float]],
    node: int | None,
) -> Iterator[Fault]:
    chance = random.Random(f"{seed} {name}")
    at = chance.uniform(*rest)
    while at < seconds:
        (kind,) = chance.choices(list(kinds), [weight for weight, _, _ in kinds.values()])
        _, least, most = kinds[kind]
        fault = Fault(at, kind, min(chance.uniform(least, most), seconds - at), node)
        yield fault
        at = fault.until + chance.uniform(*rest)
