"""Who is called when something happens to a node's copy of the log."""

import logging
from collections.abc import Callable, Sequence

from tertulia.model.changes import Entry

logger = logging.getLogger("tertulia.log")

Follower = Callable[[Sequence[Entry]], None]


class Subscribers:
    """The callbacks. All of them are called on the event loop."""

    def __init__(self) -> None:
        self.followers: list[Follower] = []
        self.on_reload: list[Callable[[], None]] = []
        self.on_history: list[Callable[[], None]] = []
        self.on_mail: list[Callable[[], None]] = []
        self.on_call: list[Callable[[], None]] = []
        self.on_stale: list[Callable[[], None]] = []
        self.on_newer: list[Callable[[str], None]] = []

    def committed(self, entries: Sequence[Entry]) -> None:
        """The entries are on disk, and in the state."""
        if not entries:
            return
        for follower in self.followers:
            try:
                follower(entries)
            except Exception:  # It is committed all the same, and must be answered so.
                logger.exception(
                    "entries %d to %d were not followed", entries[0].seq, entries[-1].seq
                )

    def reloaded(self, *, is_other_history: bool) -> None:
        """The state was thrown away and loaded again."""
        for callback in [*self.on_reload, *(self.on_history if is_other_history else ())]:
            try:
                callback()
            except Exception:  # The writer goes on.
                logger.exception("a new state was not followed")

    def mail_written(self) -> None:
        """A mail to be sent is on disk."""
        for callback in self.on_mail:
            callback()

    def call_written(self) -> None:
        """A call of a bot's service is on disk."""
        for callback in self.on_call:
            callback()

    def stale(self) -> None:
        """The state cannot be verified any more."""
        for callback in self.on_stale:
            callback()

    def newer(self, reason: str) -> None:
        """This program is too old for the database."""
        for callback in self.on_newer:
            callback(reason)
