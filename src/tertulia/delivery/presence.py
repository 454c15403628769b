"""The time when each user was last present. Every node has it in memory and writes it to the
database from time to time, so a crash may lose the last minute."""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable

from tertulia.model.transients import PresenceChanged
from tertulia.state.shards import Shards
from tertulia.state.tables import next_version
from tertulia.store.notes import InputSeen, PresenceSeen

OFFLINE_SECONDS = 200
"""The number of seconds without a report after which users are offline."""
PING_SECONDS = 60
"""The interval, in seconds, at which clients report."""
DAY = 86400
LATELY = 14
"""The number of days before today that count as lately."""


class Presence:
    """The latest report of each user, and a number that grows with every report."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._latest: dict[int, PresenceChanged] = {}
        self._unwritten: set[int] = set()
        self._input_on: dict[int, int] = {}
        """The last day on which each user interacted with a client."""
        self._input_unwritten: list[InputSeen] = []
        self.last_update_id = 0
        self._lately: tuple[int, frozenset[int]] | None = None
        self._times: dict[int, tuple[int, list[int]]] = {}
        """By shard of users: a version, and the times when they were last present, ascending."""

    def load(self, seen: Iterable[PresenceSeen]) -> None:
        """Load the reports in the database."""
        for row in seen:
            self._latest[row.user_id] = PresenceChanged(
                user_id=row.user_id,
                active_at=row.active_at,
                idle_at=row.idle_at,
                update_id=max(row.active_at, row.idle_at) * 1000,
            )
            self.last_update_id = max(self.last_update_id, self._latest[row.user_id].update_id)
        self._lately = None
        self._times.clear()

    def report(self, user_id: int, *, active: bool) -> PresenceChanged:
        """Report that the user is present. The result is `notable` if they come back or become
        active."""
        now = int(self._clock())
        before = self._latest.get(user_id)
        was_active = before is not None and now - before.active_at < OFFLINE_SECONDS
        was_there = before is not None and (
            now - max(before.active_at, before.idle_at) < OFFLINE_SECONDS
        )
        latest = PresenceChanged(
            user_id=user_id,
            active_at=now if active else before.active_at if before else 0,
            idle_at=now,
            update_id=self._next(),
            at=now,
            notable=not was_there or (active and not was_active),
        )
        return self._report(latest)

    def hide(self, user_id: int) -> PresenceChanged | None:
        """Report the user as offline. Return None if they were never present."""
        now = int(self._clock())
        before = self._latest.get(user_id)
        if before is None:
            return None
        gone = now - OFFLINE_SECONDS - 1
        latest = PresenceChanged(
            user_id=user_id,
            active_at=min(before.active_at, gone),
            idle_at=min(before.idle_at, gone),
            update_id=self._next(),
            at=now,
        )
        return self._report(latest)

    def _next(self) -> int:
        return max(self.last_update_id + 1, int(self._clock() * 1000))

    def _report(self, latest: PresenceChanged) -> PresenceChanged:
        self.learn(latest)
        self._unwritten.add(latest.user_id)
        return latest

    def learn(self, latest: PresenceChanged) -> None:
        """Apply a report from this node or another one."""
        self._latest[latest.user_id] = latest
        if self._lately is not None and latest.user_id not in self._lately[1]:
            self._lately = None
        self._times.pop(latest.user_id // Shards.SIZE, None)
        self.last_update_id = max(self.last_update_id, latest.update_id)

    def of(self, user_id: int) -> PresenceChanged | None:
        """Return the user's latest report."""
        return self._latest.get(user_id)

    def since(self, update_id: int, oldest: float) -> list[PresenceChanged]:
        """Return the reports after `update_id` of users present since `oldest` (UNIX seconds)."""
        return [
            latest
            for latest in self._latest.values()
            if latest.update_id > update_id and max(latest.active_at, latest.idle_at) >= oldest
        ]

    def stamp(self, first: int, oldest: float) -> tuple[int, int]:
        """Return a value that changes when the reports of users present since `oldest` (UNIX
        seconds) do, for the shard of users that contains `first`."""
        number = first // Shards.SIZE
        if number not in self._times:
            users = range(number * Shards.SIZE, (number + 1) * Shards.SIZE)
            reports = [self._latest[user_id] for user_id in users if user_id in self._latest]
            times = sorted(max(report.active_at, report.idle_at) for report in reports)
            self._times[number] = next_version(), times
        version, times = self._times[number]
        return version, bisect_left(times, oldest)

    @property
    def lately(self) -> frozenset[int]:
        """The users who were present in the last two weeks, by days. It's the same object until
        that changes."""
        day = int(self._clock()) // DAY
        if self._lately is None or self._lately[0] != day:
            oldest = (day - LATELY) * DAY
            result = frozenset(latest.user_id for latest in self.since(0, oldest))
            self._lately = day, result
        return self._lately[1]

    def used(self, user_id: int) -> None:
        """Record for the statistics that the user interacted with a client today."""
        day = int(self._clock()) // DAY
        if self._input_on.get(user_id) != day:
            self._input_on[user_id] = day
            self._input_unwritten.append(InputSeen(user_id, day))

    def take_unwritten(self) -> list[PresenceSeen | InputSeen]:
        """Return this node's reports since the last call."""
        latest = [self._latest[user_id] for user_id in self._unwritten]
        taken: list[PresenceSeen | InputSeen] = [
            PresenceSeen(p.user_id, p.active_at, p.idle_at) for p in latest
        ]
        taken += self._input_unwritten
        self._unwritten.clear()
        self._input_unwritten.clear()
        return taken
