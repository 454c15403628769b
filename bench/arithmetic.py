"""What is made of measurements: medians, spreads, rates, and whether a target holds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median


def quantile(values: Iterable[float], part: float) -> float:
    """The value below which this part of all lies."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def spread(values: Sequence[float]) -> float:
    """How far apart the rounds are: 0.1 is 10 % of the median between the least and the most."""
    return (max(values) - min(values)) / median(values)


@dataclass(frozen=True)
class Sample:
    """One job of a generator in one round."""

    operations: int
    """All of them, those of the warm-up too."""
    seconds: float
    """How long the latencies that count took together."""
    latencies: list[float] = field(default_factory=list)
    """Seconds each, without those of the warm-up."""
    server_cpu: float = 0.0
    """Seconds that the server's process used for all operations."""
    generator: float = 0.0
    """The part of a core that the generator used."""
    more: dict[str, list[float]] = field(default_factory=dict)
    """Other latencies, by name."""
    counts: dict[str, float] = field(default_factory=dict)
    """What else was counted in those seconds, by name."""


class Rounds:
    """One kind of job in several rounds."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples

    def medians(self, of: str = "") -> list[float]:
        """The median latency (seconds) of each round."""
        return [median(s.more[of] if of else s.latencies) for s in self.samples]

    def p99(self, of: str = "") -> float:
        """The latency (seconds) below which 99 % lie, of all rounds together."""
        found = (s.more[of] if of else s.latencies for s in self.samples)
        return quantile((latency for latencies in found for latency in latencies), 0.99)

    def rates(self, of: str = "") -> list[float]:
        """How many there were per second in each round."""
        return [(s.counts[of] if of else len(s.latencies)) / s.seconds for s in self.samples]

    @property
    def cpu(self) -> float:
        """Seconds of the server's processor time for each operation."""
        return sum(s.server_cpu for s in self.samples) / sum(s.operations for s in self.samples)

    @property
    def generator(self) -> float:
        """The part of a core that the generator used, at most."""
        return max(s.generator for s in self.samples)


def sums(*series: Sequence[float]) -> list[float]:
    """Round by round."""
    return [sum(values) for values in zip(*series, strict=True)]


def ratios(ones: Sequence[float], others: Sequence[float]) -> list[float]:
    """Each of the ones as a multiple of the other of its round."""
    return [one / other for one, other in zip(ones, others, strict=True)]


@dataclass(frozen=True)
class Target:
    """What a figure must be, and what it is."""

    what: str
    measured: float
    bound: float
    unit: str
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is so."""
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def __str__(self) -> str:
        bound = f"{'≥' if self.at_least else '≤'} {with_unit(self.bound, self.unit)}"
        return f"{self.what} {bound}".strip()


_SCALES = {"ms": 1000.0, "µs": 1e6, "KiB": 1 / 1024, "MiB": 1 / 2**20, "%": 100.0}
"""How many of the unit one is: of a second, of a byte, of the whole."""


def with_unit(value: float, unit: str) -> str:
    """A value (in seconds, bytes, or just a number) for people to read, in that unit."""
    shown = value * _SCALES.get(unit, 1.0)
    text = f"{shown:.3g}" if shown and abs(shown) < 100 else f"{shown:,.0f}"
    return text + ("" if unit in {"x", "%", "/s"} else " ") + unit if unit else text
