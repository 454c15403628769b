"""`python -m bench.markdown FIGURES.json`: the results written by `--json` as a table for the
documentation."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_HEAD = (
    "work",
    "measured",
    "p99",
    "machine's limit",
    "relative to limit",
    "CPU per operation",
    "target",
    "",
)
_SCALES = {"s": 1.0, "ms": 1e3, "µs": 1e6, "MiB": 2.0**-20, "KiB": 2.0**-10, "/s": 1.0}


def table(figures: dict[str, Any]) -> Iterator[str]:
    """The lines of the table."""
    yield _row(_HEAD)
    yield "|---|" + "---:|" * 5 + "---|---|"
    for line in figures["lines"].values():
        unit, limit = line["shown_in"], line.get("limit")
        targets = line["targets"]
        holds = all(target["holds"] for target in targets)
        yield _row(
            (
                line["title"],
                _value(line["value"], unit),
                _value(line.get("p99"), unit),
                f"{_value(limit['value'], unit)} {limit['title']}" if limit else "",
                _times(line.get("of_limit"), is_rate=unit == "/s"),
                _value(line.get("server_cpu_per_operation"), "µs"),
                ", ".join(target["target"] for target in targets),
                ("met" if holds else "**missed**") if targets else "",
            )
        )


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    shown = value * _SCALES.get(unit, 1.0)
    text = f"{shown:,.0f}" if shown >= 100 else f"{shown:.3g}"
    return f"{text}{unit}" if unit.startswith("/") else f"{text} {unit}"


def _times(ratio: float | None, *, is_rate: bool) -> str:
    if ratio is None:
        return ""
    return f"{ratio:.0%}" if is_rate else f"{ratio:.3g}x"


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(prog="python -m bench.markdown", description=__doc__)
    parser.add_argument("figures", type=Path, help="what --json wrote")
    figures = json.loads(parser.parse_args().figures.read_text())
    print("\n".join(table(figures)))
    print(f"\n{figures['summary']}\n")
    for name, value in figures["about"].items():
        print(f"- {name}: {value}")


if __name__ == "__main__":
    main()
