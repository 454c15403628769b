"""Charts of the results, for light and dark themes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

WIDTH, HEIGHT = 860, 560
LEFT, RIGHT, TOP, PANEL, GAP = 64, 24, 98, 176, 74
STEPS = (1, 2, 5)

_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #3d444d; }
  .title { font-size: 17px; font-weight: 600; fill: #1f2328; }
  .head { font-weight: 600; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  .half { stroke: #818b98; stroke-width: 1; stroke-dasharray: 3 4; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .first { stroke: #0a6cbd; } .second { stroke: #bc4c00; }
  text.first, text.second { stroke: none; }
  text.first { fill: #0a6cbd; } text.second { fill: #bc4c00; }
  .paper { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #b7bdc8; } .title { fill: #f0f6fc; }
    .grid { stroke: #30363d; } .half { stroke: #6e7681; }
    .first { stroke: #58a6ff; } .second { stroke: #f0883e; }
    text.first { fill: #58a6ff; } text.second { fill: #f0883e; }
    .paper { fill: #0d1117; }
  }
"""


@dataclass(frozen=True)
class Curve:
    """A curve in a panel: (minutes, value)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One of the two panels, with at most two curves."""

    title: str
    unit: str
    curves: Sequence[Curve]


def drawn(title: str, subtitle: str, panels: Sequence[Panel]) -> str:
    """Return the panels as SVG, one below the other."""
    minutes = max((x for p in panels for c in p.curves for x, _ in c.points), default=1.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{title}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        f'<text class="title" x="{LEFT}" y="34">{title}</text>',
        f'<text x="{LEFT}" y="54">{subtitle}</text>',
    ]
    for number, panel in enumerate(panels):
        top = TOP + number * (PANEL + GAP)
        parts += _panel(panel, top, minutes)
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, top: float, minutes: float) -> list[str]:
    most = max((y for c in panel.curves for _, y in c.points), default=1.0) or 1.0
    step = _step(most / 4)
    most = ceil(most / step) * step
    width = WIDTH - LEFT - RIGHT
    bottom = top + PANEL

    def x(minute: float) -> float:
        return round(LEFT + width * minute / minutes, 1)

    def y(value: float) -> float:
        return round(bottom - PANEL * value / most, 1)

    parts = [f'<text class="head" x="{LEFT}" y="{top - 10}">{panel.title}, {panel.unit}</text>']
    for count in range(round(most / step) + 1):
        value = count * step
        parts.append(f'<path class="grid" d="M{LEFT} {y(value)}H{WIDTH - RIGHT}"/>')
        where = f'x="{LEFT - 8}" y="{y(value) + 4}"'
        parts.append(f'<text {where} text-anchor="end">{value:,g}</text>')
    across = _step(minutes / 8)
    for count in range(floor(minutes / across + 1e-9) + 1):
        minute = count * across
        label = f"{minute:g}" if count else "0 min"
        parts.append(f'<text x="{x(minute)}" y="{bottom + 20}" text-anchor="middle">{label}</text>')
    half = x(minutes / 2)
    parts.append(f'<path class="half" d="M{half} {top}V{bottom}"/>')
    place = WIDTH - RIGHT
    for curve, kind in reversed(list(zip(panel.curves, ("first", "second"), strict=False))):
        line = " ".join(f"{x(a)},{y(b)}" for a, b in curve.points)
        parts.append(f'<polyline class="line {kind}" points="{line}"/>')
        parts.append(
            f'<text class="{kind}" x="{place}" y="{top - 10}" text-anchor="end">{curve.name}</text>'
        )
        place -= 8 * len(curve.name) + 24
    return parts


def _step(least: float) -> float:
    """Return the next step of 1, 2, 5, 10, 20, … or 0.5, 0.2, …"""
    power = 10.0 ** floor(log10(least))
    return next((s * power for s in STEPS if s * power >= least), 10 * power)
