"""UNIX time that never jumps, however somebody sets the machine's clock."""

import time
from collections.abc import Callable


class MonotonicClock:
    """UNIX seconds by the machine's clock as it was at first; from then on, what has passed."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` tells UNIX seconds and may jump; `elapsed` never does."""
        self._clock = clock
        self._elapsed = elapsed
        self._began = clock() - elapsed()

    def __call__(self) -> float:
        return self._began + self._elapsed()

    @property
    def ahead(self) -> float:
        """By how many seconds the machine's clock is ahead of this one."""
        return self._clock() - self()
