"""How entries and transient events become the events of a queue: what delivery asks of the wire."""

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from tertulia.delivery.cached_entry import CachedEntry
from tertulia.delivery.queue import Queue
from tertulia.model.changes import Entry
from tertulia.model.queues import QueueRecord
from tertulia.model.transients import Transient

logger = logging.getLogger("tertulia.delivery")


class Encoder(Protocol):
    """What events look like. Every encoded event begins with its ID: `{"id":123,…`."""

    def audience(self, entry: Entry, /) -> Collection[int] | None:
        """The users who may have events from the entry; None for everybody.

        Queues that follow all public channels are asked in any case.
        """

    def events_of(
        self, cached: CachedEntry, count: int = 1, /
    ) -> Callable[[QueueRecord], Sequence[bytes]]:
        """What finds the entry's events for a queue, as long as the state is the present one: asked
        for once for all to whom they are told together. `count` is how many these are, about."""

    def transient_audience(self, transient: Transient) -> Collection[int] | None:
        """The users who may have an event of it; None for everybody."""

    def transient(self, transient: Transient, queue: QueueRecord, event_id: int) -> bytes | None:
        """The event for the queue, if it has one."""

    def heartbeat(self, event_id: int) -> bytes:
        """The event that says nothing but that the connection is alive."""


class NotEncoded(Exception):
    """An entry could not be shown to a queue. The queue must end, so that its client fetches
    everything anew: passing the entry over would leave it with a wrong picture."""


class GuardedEncoder:
    """An encoder whose mistakes are logged, and concern one queue or one transient event alone."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def audience(self, entry: Entry) -> Collection[int] | None:
        """As `Encoder.audience`; everybody where it is not known."""
        try:
            return self._encoder.audience(entry)
        except Exception:
            # The view still decides for each queue; nobody may miss the entry for our mistake.
            logger.exception("the audience of entry %d is not known", entry.seq)
            return None

    def events_of(self, cached: CachedEntry, count: int = 1) -> Callable[[Queue], Sequence[bytes]]:
        """As `Encoder.events_of`. What is returned raises NotEncoded, also where a queue's IDs are
        used up."""
        seq = cached.entry.seq
        try:
            encoded = self._encoder.events_of(cached, count)
        except Exception:
            # A mistake about one entry must not stop the others. Who is told of it registers anew.
            logger.exception("entry %d cannot be shown", seq)
            return _not_encoded

        def events(queue: Queue) -> Sequence[bytes]:
            if seq > queue.last_seq:
                logger.info("a queue of account %d has used up its IDs and ends", queue.user_id)
                raise NotEncoded
            try:
                return encoded(queue.record)
            except OverflowError:
                # Of a client that is told of each deleted message by itself, for example.
                logger.info("entry %d is too many events for %d: a queue ends", seq, queue.user_id)
                raise NotEncoded from None
            except Exception:
                # A mistake about one queue must not keep the others from their events.
                logger.exception("entry %d cannot be shown to %d", seq, queue.user_id)
                raise NotEncoded from None

        return events

    def transient_audience(self, transient: Transient) -> Collection[int] | None:
        """As `Encoder.transient_audience`; nobody where it is not known."""
        try:
            return self._encoder.transient_audience(transient)
        except Exception:
            # Another node may speak of what is gone here, or not known here yet.
            logger.exception("the audience of a transient event is not known")
            return ()

    def transient(self, transient: Transient, queue: Queue, event_id: int) -> bytes | None:
        """As `Encoder.transient`; none where it cannot be shown."""
        try:
            return self._encoder.transient(transient, queue.record, event_id)
        except Exception:
            # Nothing depends on it, and the other queues have theirs.
            logger.exception("a transient event cannot be shown to %d", queue.user_id)
            return None

    def heartbeat(self, event_id: int) -> bytes:
        return self._encoder.heartbeat(event_id)


def _not_encoded(_: Queue) -> Sequence[bytes]:
    raise NotEncoded
