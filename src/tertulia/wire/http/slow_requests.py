"""The requests that took longer than they should: the latest of a node, a line of the log for
each."""

import logging
from collections import deque
from collections.abc import Callable

import msgspec

from tertulia.log.measures import Histogram
from tertulia.store.nodes import SlowRequest
from tertulia.wire.http.request_measures import RequestMeasures

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
