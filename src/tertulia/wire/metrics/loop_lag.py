"""How late the event loop is."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tertulia.log.measures import Histogram

PERIOD_SECONDS: Final = 0.5
"""Between two looks."""


@contextmanager
def watched(lag: Histogram) -> Iterator[None]:
    """Observe, for the time of the context, how much later than wanted the loop calls something."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def look(wanted: float) -> None:
        nonlocal timer
        now = loop.time()
        lag.observe(max(now - wanted, 0.0))
        timer = loop.call_later(PERIOD_SECONDS, look, now + PERIOD_SECONDS)

    timer = loop.call_later(PERIOD_SECONDS, look, loop.time() + PERIOD_SECONDS)
    try:
        yield
    finally:
        timer.cancel()
