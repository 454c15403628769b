"""Counts of the requests that a node has answered, by what they were for: plain numbers, so that a
request pays next to nothing for them."""

from collections.abc import Iterable
from typing import Final

from tertulia.log.measures import SECONDS, Histogram

OTHERS: Final = "other"
"""The group of what is nowhere."""


class RequestMeasures:
    """Requests by group and status. A group is the first part of a path that there is, so nobody
    who asks can make up new ones."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], int] = {}
        """By group and status; 0 where the answer was never begun."""
        self.seconds: dict[str, Histogram] = {}
        """How long answers took, by group; without polls, which wait."""
        self._groups: set[str] = set()
        """How the paths that there are begin."""
        self._api = "/"

    def know(self, api: str, endpoints: Iterable[str], pages: Iterable[str]) -> None:
        """The paths that there are: those of endpoints come after `api`, with which all of them
        begin."""
        self._api = f"{api}/"
        paths = [*(api + path for path in endpoints), *pages]
        for begin in map(self._begin_of, paths):
            if "{" not in begin:
                self._groups.add(begin)

    def _begin_of(self, path: str) -> str:
        """The path up to its first part that tells what it is for."""
        end = path.find("/", len(self._api) if path.startswith(self._api) else 1)
        return path if end < 0 else path[:end]

    def group_of(self, path: str) -> str:
        """The group of a request's path."""
        begin = self._begin_of(path)
        return begin if begin in self._groups else OTHERS

    def answered(self, group: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._count(group, status)
        histogram = self.seconds.get(group)
        if histogram is None:
            histogram = self.seconds[group] = Histogram(SECONDS)
        histogram.observe(seconds)

    def polled(self, group: str, status: int) -> None:
        """Count a poll."""
        self._count(group, status)

    def _count(self, group: str, status: int) -> None:
        key = (group, status)
        self.counts[key] = self.counts.get(key, 0) + 1
