"""The results: one table, and the same as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.arithmetic import Target, ratios, spread, with_unit


@dataclass
class Line:
    """A line of the table. Times are in seconds, sizes in bytes."""

    name: str
    title: str
    unit: str
    """The unit of the result: ms, s, /s, MiB, KiB, x, …"""
    rounds: list[float]
    """The result of each round. Their median counts."""
    p99: float | None = None
    """The 99th percentile of all rounds, if the result is a latency."""
    limit: list[float] | None = None
    """The machine's limit in the same unit and rounds."""
    limit_title: str = ""
    targets: list[Target] = field(default_factory=list)
    cpu: float | None = None
    """The server's processor time per operation, in seconds."""
    generator: float | None = None
    """The highest share of a core that the generator used."""
    more: dict[str, float] = field(default_factory=dict)
    """Additional values for the JSON output, with the unit in each name."""
    table: str = ""
    """The title of the separate table; empty for the first one."""

    @property
    def value(self) -> float:
        """The result."""
        return median(self.rounds)

    @property
    def is_rate(self) -> bool:
        return self.unit == "/s"

    @property
    def of_limit(self) -> float | None:
        """The result as a multiple of the limit, by round."""
        return None if self.limit is None else median(ratios(self.rounds, self.limit))

    @property
    def verdict(self) -> str:
        """Whether all targets were met; empty if the line has no targets."""
        missed = [target for target in self.targets if not target.holds]
        if not missed:
            return "met" if self.targets else ""
        names = ", ".join(
            f"{target.what} {with_unit(target.measured, target.unit)}".strip() for target in missed
        )
        return f"missed ({names})"


def summary(lines: Sequence[Line]) -> str:
    """Return how many targets are met, and which ones are missed."""
    targets = [target for line in lines for target in line.targets]
    said = f"{sum(target.holds for target in targets)} of {len(targets)} targets met"
    missed = [
        f"{line.title} ({', '.join(bounds)})"
        for line in lines
        if (bounds := [str(target) for target in line.targets if not target.holds])
    ]
    return f"{said}; missed: {'; '.join(missed)}." if missed else f"{said}."


def short(line: Line) -> str:
    """Return the line as shown during the run."""
    limit = ""
    if line.of_limit is not None:
        limit = f", {with_unit(line.of_limit, '%' if line.is_rate else 'x')} of the limit"
    return f"{line.title}: {with_unit(line.value, line.unit)}{limit}  {line.verdict}".rstrip()


def figures(lines: Sequence[Line], about: dict[str, str]) -> dict[str, Any]:
    """Return everything as JSON: in seconds, bytes, and per second."""
    return {
        "about": about,
        "summary": summary(lines),
        "lines": {line.name: _figures(line) for line in lines},
    }


def _figures(line: Line) -> dict[str, Any]:
    result: dict[str, Any] = {
        "title": line.title,
        "shown_in": line.unit,
        "value": line.value,
        "rounds": line.rounds,
        "spread": spread(line.rounds),
    }
    if line.p99 is not None:
        result["p99"] = line.p99
    if line.limit is not None:
        result["limit"] = {
            "title": line.limit_title,
            "value": median(line.limit),
            "rounds": line.limit,
        }
        result["of_limit"] = line.of_limit
    if line.cpu is not None:
        result["server_cpu_per_operation"] = line.cpu
    if line.generator is not None:
        result["generator"] = line.generator
    result["targets"] = [
        {
            "target": str(target),
            "measured": target.measured,
            "bound": target.bound,
            "holds": target.holds,
        }
        for target in line.targets
    ]
    return {**result, **line.more}


_HEADS = (
    "work",
    "measured",
    "p99",
    "spread",
    "machine's limit",
    "relative to limit",
    "CPU per operation",
    "generator",
    "target",
    "verdict",
)
_LEFT = {"work", "machine's limit", "target", "verdict"}


def table(lines: Sequence[Line], about: dict[str, str]) -> str:
    """Return the table, the separate tables, and the machine."""
    text: list[str] = []
    for title in dict.fromkeys(line.table for line in lines):
        text += [title, ""] if title else []
        text += _table([line for line in lines if line.table == title])
    text += [f"{name}: {value}" for name, value in about.items()]
    return "\n".join(text) + "\n"


def _table(lines: Sequence[Line]) -> list[str]:
    rows = [_HEADS, *(_row(line) for line in lines)]
    # Empty columns are left out.
    said = [column for column in range(len(_HEADS)) if any(row[column] for row in rows[1:])]
    rows = [tuple(row[column] for column in said) for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(said))]
    text = [
        "  ".join(
            cell.ljust(width) if head in _LEFT else cell.rjust(width)
            for head, cell, width in zip(rows[0], row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    return [*text, ""]


def markdown(lines: Sequence[Line], about: dict[str, str]) -> str:
    """Return the lines as a Markdown table for the documentation, without spread and generator."""
    columns = [n for n, head in enumerate(_HEADS) if head not in {"spread", "generator"}]
    rows = [[row[n] for n in columns] for row in (_HEADS, *(_row(line) for line in lines))]
    rows.insert(1, ["---" if head in _LEFT else "---:" for head in rows[0]])
    text = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*text, "", summary(lines), "", *(f"- {k}: {v}" for k, v in about.items())])


def _row(line: Line) -> tuple[str, ...]:
    limit = of_limit = ""
    if line.limit is not None and line.of_limit is not None:
        limit = f"{with_unit(median(line.limit), line.unit)} {line.limit_title}"
        of_limit = with_unit(line.of_limit, "%" if line.is_rate else "x")
    return (
        line.title,
        with_unit(line.value, line.unit),
        "" if line.p99 is None else with_unit(line.p99, line.unit),
        with_unit(spread(line.rounds), "%") if len(line.rounds) > 1 else "",
        limit,
        of_limit,
        "" if line.cpu is None else with_unit(line.cpu, "µs"),
        "" if line.generator is None else with_unit(line.generator, "%"),
        ", ".join(str(target) for target in line.targets),
        line.verdict,
    )
