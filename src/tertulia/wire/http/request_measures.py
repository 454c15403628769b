"""Counts of the requests that a node has answered, by what they were for: plain numbers, so that a
request pays next to nothing for them."""

from collections.abc import Iterable, Set
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
        self.slow = 0
        """Those that took longer than they should."""
        self._groups: Set[str] = frozenset()
        """How the paths that there are begin."""
        self._api = "/"

    def know(self, api: str, endpoints: Iterable[str], pages: Iterable[str]) -> None:
        """The paths that there are: those of endpoints come after `api`, with which all of them
        begin."""
        self._api = f"{api}/"
        self._groups = groups(self._api, (*(api + path for path in endpoints), *pages))

    def group_of(self, path: str) -> str:
        """The group of a request's path."""
        begin = _begin_of(path, self._api)
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


def groups(api: str, paths: Iterable[str]) -> frozenset[str]:
    """How the paths begin. Those that begin with `api` go one part further."""
    return frozenset(begin for path in paths if "{" not in (begin := _begin_of(path, api)))


def _begin_of(path: str, api: str) -> str:
    """The path up to its first part that tells what it is for."""
    end = path.find("/", len(api) if path.startswith(api) else 1)
    return path if end < 0 else path[:end]
