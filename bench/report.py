"""The figures: one table for people, and the same as JSON."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Sample:
    """Latencies (seconds) and how long it took to have them."""

    latencies: list[float]
    seconds: float
    cpu: float | None = None
    """The part of a core that the generator used."""
    more: dict[str, list[float]] = field(default_factory=dict)


@dataclass
class Case:
    """One line of the table."""

    name: str
    title: str
    http: str = ""
    """The limit of the HTTP server that belongs to it, by name; empty for limits."""
    disk: str = ""
    """The limit of the disk."""
    rows: int = 1
    """What counts for each latency."""
    answers: int = 1
    """HTTP answers until it is done."""
    paced: bool = False
    """Whether there are pauses between, so that a rate says nothing."""
    samples: list[Sample] = field(default_factory=list)

    def add(self, sample: Sample) -> "Case":
        """One more run of it."""
        self.samples.append(sample)
        return self

    @property
    def rate(self) -> float:
        """Requests, messages or rows per second."""
        count = sum(len(sample.latencies) for sample in self.samples) * self.rows
        return count / sum(sample.seconds for sample in self.samples)

    @property
    def drift(self) -> float:
        """How far apart the runs are: 0.1 is 10 % between the slowest and the fastest."""
        rates = [len(sample.latencies) / sample.seconds for sample in self.samples]
        return max(rates) / min(rates) - 1

    @property
    def cpu(self) -> float | None:
        """The generator's part of a core, at most."""
        return max((sample.cpu for sample in self.samples if sample.cpu is not None), default=None)

    def quantile(self, part: float, of: str = "") -> float:
        """The latency (seconds) below which this part of all lies."""
        found = sorted(
            latency
            for sample in self.samples
            for latency in (sample.more[of] if of else sample.latencies)
        )
        return found[min(int(len(found) * part), len(found) - 1)]


def figures(cases: list[Case], about: dict[str, str]) -> dict[str, Any]:
    """Everything as JSON: milliseconds, and per second."""
    by_name = {case.name: case for case in cases}
    return {"about": about, "cases": {case.name: _figures(case, by_name) for case in cases}}


def _figures(case: Case, by_name: dict[str, Case]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "title": case.title,
        "p50_ms": round(case.quantile(0.5) * 1000, 3),
        "p99_ms": round(case.quantile(0.99) * 1000, 3),
        "count": sum(len(sample.latencies) for sample in case.samples) * case.rows,
    }
    if not case.paced:
        found["per_second"] = round(case.rate, 1)
    if case.cpu is not None:
        found["generator_cpu"] = round(case.cpu, 2)
    if len(case.samples) > 1:
        found["drift"] = round(case.drift, 3)
    for name in case.samples[0].more:
        found[f"{name}_p50_ms"] = round(case.quantile(0.5, name) * 1000, 3)
    if case.http:
        http, disk = by_name[case.http], by_name[case.disk]
        further = (case.answers - 1) / max(limit.rate for limit in (http, by_name["empty_8"]))
        floor = http.quantile(0.5) + disk.quantile(0.5) + further
        found["times_floor"] = round(case.quantile(0.5) / floor, 2)
        if not case.paced:
            found["of_http"] = round(case.rate / http.rate, 3)
            found["of_disk"] = round(case.rate / disk.rate, 3)
    return found


_HEADS = ("", "per s", "p50 ms", "p99 ms", "of HTTP", "of disk", "floors", "generator")


def table(cases: list[Case], about: dict[str, str]) -> str:
    """The table, and below it what it was measured on."""
    by_name = {case.name: case for case in cases}
    rows = [_HEADS]
    for case in cases:
        shown = _figures(case, by_name)
        rows.append(
            (
                case.title,
                f"{shown['per_second']:,.0f}" if "per_second" in shown else "",
                f"{shown['p50_ms']:.2f}",
                f"{shown['p99_ms']:.2f}",
                _percent(shown.get("of_http")),
                _percent(shown.get("of_disk")),
                f"{shown['times_floor']:.1f}" if "times_floor" in shown else "",
                _percent(shown.get("generator_cpu")),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    drift = max(case.drift for case in cases if len(case.samples) > 1)
    lines.append("")
    lines.append(f"The limits, measured before and after, differed by up to {drift:.0%}.")
    lines += [f"{name}: {value}" for name, value in about.items()]
    return "\n".join(lines) + "\n"


def _percent(part: float | None) -> str:
    return "" if part is None else f"{part:.0%}"
