"""Counts of the requests that a node has answered, by what they were for: plain numbers, so that a
request pays next to nothing for them."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Set
from typing import Final

import msgspec

from tertulia.log.measures import SECONDS, Histogram
from tertulia.store.nodes import SlowRequest

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


logger = logging.getLogger("tertulia.http")


class SlowRequests:
    """One node's."""

    def __init__(
        self,
        after_ms: int,
        kept: deque[SlowRequest],
        loop_lag: Histogram,
        measures: RequestMeasures,
        clock: Callable[[], float],
    ) -> None:
        """Those that take `after_ms` milliseconds (0: none) are `kept`."""
        self._after = after_ms / 1000
        self._kept = kept
        self._loop_lag = loop_lag
        self._measures = measures
        self._clock = clock

    @property
    def lag(self) -> float:
        """By how many seconds the event loop has been late altogether."""
        return self._loop_lag.total

    def look(
        self,
        method: str,
        route: str,
        user_id: int | None,
        status: int,
        seconds: float,
        on_database: float,
        lag: float,
    ) -> None:
        """Write the request down if it took long: so many `seconds` without what was waited for
        the client, and of these so many for the database. `lag` is what `lag` was when it began."""
        if not self._after or seconds < self._after:
            return
        self._measures.slow += 1
        found = SlowRequest(
            at=int(self._clock()),
            method=method,
            route=route,
            user_id=user_id,
            status=status,
            ms=round(seconds * 1000),
            database_ms=round(min(on_database, seconds) * 1000),
            loop_ms=round(min(self.lag - lag, seconds) * 1000),
        )
        self._kept.append(found)
        said = msgspec.structs.asdict(found)
        del said["at"]
        said["user"] = said.pop("user_id") or "-"
        logger.warning("slow request", extra={"fields": said})
