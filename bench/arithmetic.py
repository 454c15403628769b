"""Arithmetic of measurements: medians, spreads, rates, and targets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median


def quantile(values: Iterable[float], part: float) -> float:
    """Yield the messages as rows, and add their topics and conversations to `made`."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def spread(values: Sequence[float]) -> float:
    """The spread of the rounds: 0.1 means that the highest and the lowest differ by 10% of the
    median."""
    return (max(values) - min(values)) / median(values)


@dataclass(frozen=True)
class Sample:
    """Fill the other tables: topics, conversations, and the first person's flags and read state."""

    operations: int
    """The number of operations, including the warm-up."""
    seconds: float
    """The total duration of the latencies that count."""
    latencies: list[float] = field(default_factory=list)
    """Return the value below which the share `part` of all values is."""
    server_cpu: float = 0.0
    """Return the spread of the rounds: 0.1 means that the highest and the lowest differ by 10% of
    the median."""
    generator: float = 0.0
    """The share of a core that the generator used."""
    more: dict[str, list[float]] = field(default_factory=dict)
    """Other latencies, by name."""
    counts: dict[str, float] = field(default_factory=dict)
    """Other counts in the same time, by name."""


class Rounds:
    """One kind of job in several rounds."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples

    def medians(self, of: str = "") -> list[float]:
        """The median latency of each round, in seconds."""
        return [median(s.more[of] if of else s.latencies) for s in self.samples]

    def p99(self, of: str = "") -> float:
        """The 99th percentile of the latencies of all rounds, in seconds."""
        result = (s.more[of] if of else s.latencies for s in self.samples)
        return quantile((latency for latencies in result for latency in latencies), 0.99)

    def rates(self, of: str = "") -> list[float]:
        """The operations per second of each round."""
        return [(s.counts[of] if of else len(s.latencies)) / s.seconds for s in self.samples]

    @property
    def cpu(self) -> float:
        """Seconds of the server's processor time per operation."""
        return sum(s.server_cpu for s in self.samples) / sum(s.operations for s in self.samples)

    @property
    def generator(self) -> float:
        """The highest share of a core that the generator used."""
        return max(s.generator for s in self.samples)


def sums(*series: Sequence[float]) -> list[float]:
    """Return the sum of the series, by round."""
    return [sum(values) for values in zip(*series, strict=True)]


def ratios(ones: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return each value as a multiple of the other one of its round."""
    return [a / b for a, b in zip(ones, others, strict=True)]


@dataclass(frozen=True)
class Target:
    """A required value and the measured one."""

    what: str
    measured: float
    bound: float
    unit: str
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the target is met."""
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def __str__(self) -> str:
        bound = f"{'≥' if self.at_least else '≤'} {with_unit(self.bound, self.unit)}"
        return f"{self.what} {bound}".strip()


_SCALES = {"ms": 1000.0, "µs": 1e6, "KiB": 1 / 1024, "MiB": 1 / 2**20, "%": 100.0}
"""How many of the unit make one second, one byte, or one."""


def with_unit(value: float, unit: str) -> str:
    """Format a value (in seconds, bytes, or a plain number) in this unit."""
    shown = value * _SCALES.get(unit, 1.0)
    text = f"{shown:.3g}" if shown and abs(shown) < 100 else f"{shown:,.0f}"
    return text + ("" if unit in {"x", "%", "/s"} else " ") + unit if unit else text
