"""The health of a node's log: whether its state is fresh and on disk, counters for metrics, and
errors."""

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tertulia.model.errors import Unavailable


def not_done_error() -> Unavailable:
    """Return the error for a change that certainly wasn't made."""
    return Unavailable("The change couldn't be saved. Nothing was changed. Try again.")


def stale_error() -> Unavailable:
    """Return the error for any request to a node whose state may be outdated."""
    return Unavailable("This node can't tell right now whether its data is up to date. Try again.")


def described(error: BaseException) -> str:
    """Return the error as one line for the server's log."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__


LOOK_SECONDS: Final = 2.0
"""The interval, in seconds, between looks at the log's head."""
STALE_SECONDS: Final = 10.0
"""A node that couldn't verify its state for this many seconds refuses requests."""


class Lag(NamedTuple):
    """The distance of a node from the log's head."""

    entries: int
    seconds: float
    """The number of seconds for which it has been behind, or unable to tell; 0 if it isn't."""


class Freshness:
    """A node's knowledge about its state and its writer. Times are from `time.monotonic`."""

    def __init__(self) -> None:
        self.verified_at = time.monotonic()
        """The time when the newest look at the head that found the state up to date began."""
        self.head = 0
        """The newest entry that this node has heard of, from any node."""
        self.written_at = time.monotonic()
        """The time of the last write."""
        self.busy_since: float | None = None
        """The time when the writer began its current group; None while it is idle."""
        self.look_trouble = ""
        """The reason why the last look at the log's head failed."""
        self.write_trouble = ""
        """The reason why the last attempt to write failed."""
        self.newer = ""
        """The reason why this program is too old for the database; empty if it isn't."""

    @property
    def is_stale(self) -> bool:
        """Whether the state may be older than `STALE_SECONDS`, or the program is too old."""
        return bool(self.newer) or time.monotonic() - self.verified_at > STALE_SECONDS

    def lag(self, position: int) -> Lag:
        """Return how far a node at this position is behind."""
        entries, seconds = self.head - position, time.monotonic() - self.verified_at
        if entries > 0 or seconds > STALE_SECONDS:
            return Lag(max(entries, 0), seconds)
        return Lag(0, 0.0)

    def heard(self, head: int) -> None:
        """Record that the log has reached this entry."""
        self.head = max(self.head, head)

    def loaded(self, head: int) -> None:
        """Record that the state was loaded at this entry, perhaps of another history."""
        self.head = head

    def verified(self, at: float) -> None:
        """Record that a look that began at this time found the state up to date."""
        self.verified_at = max(self.verified_at, at)
        self.look_trouble = ""

    def doubted(self, trouble: str) -> None:
        """Record that the state certainly differs from the database."""
        self.verified_at = min(self.verified_at, time.monotonic() - STALE_SECONDS - 1)
        self.look_trouble = trouble

    def written(self) -> None:
        """Record a successful commit."""
        self.written_at = time.monotonic()
        self.write_trouble = ""

    def problems(self) -> list[str]:
        """Return one sentence for each problem. Anyone may read them, so they name only the kinds
        of errors; the log has the details."""
        now = time.monotonic()
        problems = []
        if self.newer:
            problems.append(self.newer)
        if now - self.verified_at > STALE_SECONDS:
            why = f" ({_kind(self.look_trouble)})" if self.look_trouble else ""
            problems.append(
                "The node hasn't been able to check whether it's up to date for"
                f" {now - self.verified_at:.0f} s{why}."
            )
        if self.write_trouble:
            problems.append(f"The node can't write to the database ({_kind(self.write_trouble)}).")
        elif self.busy_since is not None and now - self.busy_since > STALE_SECONDS:
            problems.append(
                f"The writer has been waiting for the database for {now - self.busy_since:.0f} s."
            )
        return problems


def _kind(trouble: str) -> str:
    return trouble.partition(":")[0]


BEGIN_SECONDS: Final = 6.0
"""The number of seconds after which a request that hasn't begun is refused while the writer waits
for the database. It's longer than a stalled node can hold the head (`WRITING.idle`); together with
`FORWARDED_SECONDS` and the log's tick, it's less than 10 seconds."""


RELOAD_WAIT_SECONDS: Final = 5.0
"""The number of seconds for which a read waits for the state to be reloaded."""


class Durability:
    """Tracks how far the state is ahead of the disk. The writer sets it, and responses wait for
    it."""

    def __init__(self) -> None:
        self.generation = 0
        """The number of times that the state was discarded."""
        self._settling: asyncio.Future[None] | None = None
        """Done when it is known whether the state is on disk; None if it is."""
        self._since = 0.0
        self._loaded = asyncio.Event()
        """Cleared while the state is discarded and not yet reloaded."""
        self._loaded.set()

    # For the writer

    def begin(self) -> None:
        """Record that the state is ahead of the disk from now on."""
        self._settling = asyncio.get_running_loop().create_future()
        self._since = time.monotonic()

    def succeed(self) -> None:
        """Record that the state is on disk."""
        if self._settling is not None and not self._settling.done():
            self._settling.set_result(None)
        self._settling = None

    def fail(self) -> None:
        """Record that the state is discarded, since it won't be on disk. Everyone who waits for it
        is refused, until `restore`."""
        self.generation += 1
        self._loaded.clear()
        if self._settling is None:
            self.begin()
        self._refuse()

    def restore(self) -> None:
        """Record that the state was reloaded."""
        self._settling = None
        self._loaded.set()

    def expire(self) -> None:
        """Refuse callers that have waited longer than `BEGIN_SECONDS`."""
        if self._settling is not None and time.monotonic() - self._since > BEGIN_SECONDS:
            self._refuse()

    def _refuse(self) -> None:
        settling = self._settling
        if settling is not None and not settling.done():
            settling.set_exception(not_done_error())
            settling.exception()  # It's not an error if nobody waits for it.

    # For responses

    async def settled(self, since: int | None = None) -> None:
        """Wait until everything that the state shows now is on disk. Raise Unavailable if it won't
        be, or if the state was reloaded since the `generation` at which the caller read it."""
        if self._settling is not None:
            await asyncio.shield(self._settling)
        if since is not None and since != self.generation:
            raise Unavailable("The server had to reload its data. Try again.")

    def when_settled(self, report: Callable[[Exception | None], None]) -> None:
        """Call `report` when everything that the state shows now is on disk, immediately if it is;
        with Unavailable if it won't be."""
        if self._settling is None:
            report(None)
            return
        self._settling.add_done_callback(
            lambda settled: report(not_done_error() if settled.exception() else None)
        )

    async def was_reloaded(self, since: int) -> bool:
        """Return whether the state was discarded since that `generation` and reloaded. Wait up to
        `RELOAD_WAIT_SECONDS` for the reload."""
        if self.generation == since:
            return False
        try:
            async with asyncio.timeout(RELOAD_WAIT_SECONDS):
                await self._loaded.wait()
        except TimeoutError:
            return False
        return True


SECONDS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper bounds for times in seconds."""
SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Upper bounds for the sizes of groups."""


class Histogram:
    """Counts of values by range. An observation costs a fraction of a microsecond."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        """The upper bounds of the ranges, inclusive."""
        self.counts = [0] * (len(bounds) + 1)
        """Counts by range; the last is above all bounds."""
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Measures:
    """Counters of a node's writer since the node started."""

    def __init__(self) -> None:
        self.group_sizes = Histogram(SIZES)
        """Commands per commit."""
        self.lock_seconds = Histogram(SECONDS)
        """The time to lock the log's head."""
        self.commit_seconds = Histogram(SECONDS)
        """The time from asking for the lock until the group was on disk."""
        self.entries = 0
        """The number of committed entries."""
        self.forwarded = 0
        """Commands of this node that another one executed."""
        self.carried_out = 0
        """Commands of other nodes that this one executed."""
        self.retried = 0
        """Transactions that were retried after the connection was lost."""
        self.failed = 0
        """Failed begins and commits."""

    def committed(self, commands: int, entries: int, began: float, locked: float) -> None:
        """Count a committed group. The times, from `time.monotonic`, are when the writer asked for
        the lock and when it got it."""
        if commands:
            self.group_sizes.observe(commands)
        self.entries += entries
        self.lock_seconds.observe(locked - began)
        self.commit_seconds.observe(time.monotonic() - began)
