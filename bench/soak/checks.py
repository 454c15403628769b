"""Checks of the server's process and its database at the end."""

from collections.abc import Sequence

SLOPE_KIB = 512.0
"""The allowed growth of the heap in KiB per minute once caches are warm. The state keeps a little
of each message (its topic, its readers), and nothing else may remain."""
JUDGED_MINUTES = 10.0
"""The shortest run that is judged, in minutes. Shorter runs are warm-up."""
FILES = 8
"""Files that the server may open for itself after its start: the database's readers."""

Point = tuple[float, float]


def slope(points: Sequence[Point]) -> float:
    """Return the slope of the least-squares line."""
    if len(points) < 2:
        return 0.0
    middle = sum(x for x, _ in points) / len(points)
    height = sum(y for _, y in points) / len(points)
    width = sum((x - middle) ** 2 for x, _ in points)
    return sum((x - middle) * (y - height) for x, y in points) / width if width else 0.0


def second_half(points: Sequence[Point]) -> list[Point]:
    """Return the points of the second half of the time."""
    if not points:
        return []
    middle = (points[0][0] + points[-1][0]) / 2
    return [point for point in points if point[0] >= middle]


def of_memory(heap: Sequence[Point]) -> tuple[str, list[str]]:
    """Describe the curve (minutes, KiB), and list its violations."""
    grows = slope(second_half(heap))
    minutes = heap[-1][0] - heap[0][0] if heap else 0.0
    said = f"the heap grew by {grows:.0f} KiB a minute in the second half"
    if minutes < JUDGED_MINUTES:
        return f"{said} (not judged: {minutes:.0f} minutes are warm-up)", []
    if grows > SLOPE_KIB:
        return said, [f"memory is not flat: {said}, more than {SLOPE_KIB:.0f}"]
    return f"{said}, of {SLOPE_KIB:.0f} that it may", []


def of_files(before: int, connected: int, connections: int, after: int) -> list[str]:
    """Return the violations of the number of open files: before, with all clients, and after."""
    wrong = []
    if connected > before + connections + FILES:
        wrong.append(f"{connected} files are open for {connections} connections and {before} own")
    if after > before + FILES:
        wrong.append(f"{after} files are open when all have left; {before} were at the start")
    return wrong


def of_queues(there: set[str], alive: set[str]) -> list[str]:
    """Return the violations of the queues in the database."""
    wrong = []
    if lost := alive - there:
        wrong.append(f"the database lacks {len(lost)} queues that are polled")
    if left := there - alive:
        wrong.append(f"the database has {len(left)} queues of nobody: {sorted(left)[:3]}")
    return wrong
