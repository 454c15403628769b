"""Whether a node's state is up to date, and whether its writer makes progress."""

import asyncio
import time
from typing import Final, NamedTuple

from tertulia.log.requests import Inbox

LOOK_SECONDS: Final = 2.0
"""Between two looks at the log's head, whatever other nodes announce."""
STALE_SECONDS: Final = 10.0
"""A node that could not verify its state for so long answers nothing from it."""


class Lag(NamedTuple):
    """How far a node is behind the log's head."""

    entries: int
    seconds: float
    """Since when it is, or cannot see whether it is; 0 where it is not."""


class Freshness:
    """What a node knows of its state and its writer. Times are of `time.monotonic`."""

    def __init__(self) -> None:
        self.verified_at = time.monotonic()
        """When the newest look at the head began that found nothing that is not in the state."""
        self.head = 0
        """The number of the newest entry of which this node has heard, of whatever node's."""
        self.written_at = time.monotonic()
        """When something was last written."""
        self.busy_since: float | None = None
        """Since when the writer works at one group; None while it waits."""
        self.look_trouble = ""
        """Why the last look at the log's end failed."""
        self.write_trouble = ""
        """Why nothing can be written, as of the last attempt."""
        self.newer = ""
        """Why this program is too old for the database; empty where it is not."""

    @property
    def is_stale(self) -> bool:
        """Whether the state may be older than `STALE_SECONDS`, or the program is too old."""
        return bool(self.newer) or time.monotonic() - self.verified_at > STALE_SECONDS

    def lag(self, position: int) -> Lag:
        """How far a node that has come to this entry is behind."""
        entries, seconds = self.head - position, time.monotonic() - self.verified_at
        if entries > 0 or seconds > STALE_SECONDS:
            return Lag(max(entries, 0), seconds)
        return Lag(0, 0.0)

    def heard(self, head: int) -> None:
        """The log has come to that entry."""
        self.head = max(self.head, head)

    def loaded(self, head: int) -> None:
        """The state is that of this entry, which may be one of another history."""
        self.head = head

    def verified(self, at: float) -> None:
        """A look that began then found nothing that is not in the state."""
        self.verified_at = max(self.verified_at, at)
        self.look_trouble = ""

    def doubted(self, trouble: str) -> None:
        """The state is certainly not that of the database."""
        self.verified_at = min(self.verified_at, time.monotonic() - STALE_SECONDS - 1)
        self.look_trouble = trouble

    def written(self) -> None:
        """A commit succeeded."""
        self.written_at = time.monotonic()
        self.write_trouble = ""

    def problems(self) -> list[str]:
        """What is wrong, each in a sentence; nothing where all is well. Anybody may read it, so it
        has the kinds of errors only: their texts are in the server's log."""
        now = time.monotonic()
        found = []
        if self.newer:
            found.append(self.newer)
        if now - self.verified_at > STALE_SECONDS:
            why = f" ({_kind(self.look_trouble)})" if self.look_trouble else ""
            found.append(
                "The node hasn't been able to check whether it's up to date for"
                f" {now - self.verified_at:.0f} s{why}."
            )
        if self.write_trouble:
            found.append(f"The node can't write to the database ({_kind(self.write_trouble)}).")
        elif self.busy_since is not None and now - self.busy_since > STALE_SECONDS:
            found.append(
                f"The writer has been waiting for the database for {now - self.busy_since:.0f} s."
            )
        return found


def _kind(trouble: str) -> str:
    return trouble.partition(":")[0]


PROOF_SECONDS: Final = 10.0
"""What was written so lately proves that it can be."""
PROOF_WAIT_SECONDS: Final = 2.0
"""How long a caller waits for the writer to try."""


class WriteProbe:
    """One attempt for all who ask at the same time."""

    def __init__(self, inbox: Inbox, freshness: Freshness) -> None:
        self._inbox = inbox
        self._freshness = freshness
        self._done: asyncio.Future[None] | None = None

    async def is_answered(self) -> bool:
        """Whether `Freshness` says how it is: at once where something was written of late, else
        when the writer has tried. False where it did not within `PROOF_WAIT_SECONDS`."""
        if time.monotonic() - self._freshness.written_at <= PROOF_SECONDS:
            return True
        if self._done is None:
            self._done = asyncio.get_running_loop().create_future()
        self._inbox.add_probe()
        done, _ = await asyncio.wait([self._done], timeout=PROOF_WAIT_SECONDS)
        return bool(done)

    def finish(self) -> None:
        """The writer has tried."""
        if self._done is not None:
            self._done.set_result(None)
            self._done = None
