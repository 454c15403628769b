"""Delivery: event queues, their polls, and the events that they give out.

A queue holds no entries. A poll names the last event that its client has seen; what came after is
read off the log, as the queue is to see it (`recent_entries`). Where there is nothing, the poll
waits (`waiting_polls`).
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final, get_args

from tertulia.delivery import cached_entry
from tertulia.delivery.announcements import Announcements
from tertulia.delivery.encoder import Encoder, GuardedEncoder, NotEncoded
from tertulia.delivery.presence import Presence
from tertulia.delivery.queue import FutureWaiter, Queue, Waiter
from tertulia.delivery.recent_entries import RecentEntries
from tertulia.delivery.registry import QueueRegistry
from tertulia.delivery.waiting_polls import WaitingPolls
from tertulia.log.errors import stale_error
from tertulia.log.log import Log
from tertulia.model.changes import Entry, EventIdsUsedUp
from tertulia.model.errors import NoSuchQueue, Refused, Unavailable
from tertulia.model.queues import QueueRecord
from tertulia.model.transients import PresenceChanged, QueueGone, Transient
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import queries
from tertulia.store.notes import Note, QueueDeleted
from tertulia.store.store import READ_SECONDS

CLOSING_SECONDS: Final = 2.0
"""How long a node that stops waits until its last transient events have been sent to others."""
NOTES: Final = 500
"""Notes that are written together; then others have their turn."""


class Delivery:
    """One node's delivery of events."""

    def __init__(
        self,
        log: Log,
        encoder: Encoder,
        *,
        poll_seconds: tuple[float, float] = (45.0, 55.0),
        queues_per_user: int = 100,
        clock: Callable[[], float] | None = None,
        elapsed: Callable[[], float] | None = None,
    ) -> None:
        """`poll_seconds` are how long a poll waits for its heartbeat, at least and at most. `clock`
        tells UNIX seconds; how long a queue is idle is measured by what has `elapsed`, whatever
        becomes of the clock. Both are the log's, unless they are given."""
        clock, elapsed = clock or log.clock, elapsed or log.elapsed
        guarded = GuardedEncoder(encoder)
        self.encoder = encoder
        self.presence = Presence(clock)
        self.queues = QueueRegistry(
            log.store, queues_per_user=queues_per_user, clock=clock, elapsed=elapsed
        )
        self.recent = RecentEntries(log, guarded)
        self.polls = WaitingPolls(log, self.queues, guarded, self._delete)
        self._log = log
        self._poll_seconds = poll_seconds
        self.announcements = Announcements(log.store.announce)
        for kind in get_args(Transient):
            self.announcements.listen(kind, self._on_transient)
        self._closing = False
        log.follow(self._on_entries)
        log.attend(lambda: len(self.polls) > 0)
        log.on_reload(self.recent.reloaded)
        log.on_history(self._end_all)
        log.on_stale(self._suspend)

    # Beginning and end

    async def open(self) -> None:
        """Load when users were last present."""
        self.presence.load(await self._log.store.read_log(queries.presence, READ_SECONDS))

    async def close(self) -> None:
        """Answer every poll that waits, and have stored when queues and users were last seen."""
        self._closing = True
        self.polls.close()
        await self.announcements.close(CLOSING_SECONDS)
        self._note(self._unwritten())

    # Polls

    @property
    def waiting(self) -> int:
        """How many polls wait."""
        return len(self.polls)

    async def poll(
        self,
        queue_id: str,
        user_id: int,
        last_event_id: int,
        *,
        block: bool,
        session_id: int | None = None,
    ) -> Sequence[bytes]:
        """The events after `last_event_id` (-1: all since registration), encoded.

        `session_id` is of a browser's session, with which the poll ends; without one, it ends with
        the API key. With `block` this waits until there is one, if only a heartbeat. Empty without
        `block`, or when a newer poll of the queue has come or the server stops. Raises NoSuchQueue,
        Refused for an ID that was never given out, and what ended the account.
        """
        credential = self._log.state.credentials.get(user_id)
        queue = await self.queues.find(queue_id, user_id)
        cursor = await self._cursor(queue, last_event_id)
        turn = self._begin(queue, cursor)
        try:
            events = await self.recent.read_log(queue, cursor)
        except NotEncoded:
            self._delete(queue)
            raise NoSuchQueue(queue_id) from None
        if queue.ended:
            raise NoSuchQueue(queue_id)
        if turn != queue.turn:
            return []
        if events or not block or self._closing:
            return events
        self._log.require_fresh()
        cached_entry.require_queue(self._log.state, user_id, credential, session_id)
        waiter = FutureWaiter()
        self.polls.wait(queue, waiter, session_id)
        try:
            return await waiter.events
        finally:
            self.polls.cancel(queue, waiter)  # The client went away.

    def start(
        self,
        queue_id: str,
        user_id: int,
        last_event_id: int,
        waiter: Waiter,
        *,
        block: bool,
        session_id: int | None = None,
    ) -> bool:
        """The same for a waiter, which is called at once or when there is something. If its client
        goes away before that, `cancel`.

        False, and nothing has happened, where it cannot be done without reading the database, or
        is to be refused: then `poll`. The user must have been authenticated just now.
        """
        queue = self.queues.get(queue_id)
        if queue is None or queue.user_id != user_id or self._closing:
            return False
        if self._log.freshness.is_stale:
            return False
        first = queue.numbering.end_of(queue.record.start)
        cursor = first if last_event_id == -1 else last_event_id
        durable = self._log.durable
        if cursor < first or queue.numbering.seq_of(cursor) > durable:
            return False
        seen = queue.known_through(cursor)
        if not self.recent.reach_back_to(seen):
            return False
        self._begin(queue, cursor)
        try:
            is_up_to_date = seen >= durable and not queue.transients
            events = [] if is_up_to_date else self.recent.read(queue, cursor)
        except NotEncoded:
            self._delete(queue)
            waiter.fail(NoSuchQueue(queue_id))
            return True
        if not events and block:
            self.polls.wait(queue, waiter, session_id)
        else:
            # What is shown may be ahead of the disk by a moment.
            self._log.when_settled(
                lambda error: waiter.answer(events) if error is None else waiter.fail(error)
            )
        return True

    def cancel(self, queue_id: str, waiter: Waiter) -> None:
        """The waiter's client went away."""
        queue = self.queues.get(queue_id)
        if queue is not None:
            self.polls.cancel(queue, waiter)

    async def _cursor(self, queue: Queue, last_event_id: int) -> int:
        """Where a poll goes on. Raises NoSuchQueue where the log has lost what the queue has given
        out, and Refused for an ID that it never gave out."""
        record = queue.record
        if queue.is_found and record.start > self._log.durable:
            await self._log.reached(record.start)  # It was registered at another node.
            if record.start > self._log.durable:
                self._delete(queue)
                raise NoSuchQueue(record.id)
        first = queue.numbering.end_of(record.start)
        if last_event_id == -1:
            return first
        if last_event_id < first:
            raise Refused(f"An event newer than {last_event_id} has already been pruned.")
        seq = queue.numbering.seq_of(last_event_id)
        await self._log.reached(seq)  # Another node may have given it.
        if seq > self._log.durable:
            if queue.is_found:
                # It may have been given out before the log lost its end. The ID will be used again,
                # for an event that the client then would miss.
                self._delete(queue)
                raise NoSuchQueue(record.id)
            raise Refused(f"Event {last_event_id} was not in this queue.")
        return last_event_id

    def _begin(self, queue: Queue, cursor: int) -> int:
        """A poll has come, from a client that has everything up to the cursor. Returns its turn."""
        self.queues.touch(queue)
        queue.turn += 1
        if queue.waiter is not None:
            self.polls.answer(queue, [])
        queue.acknowledge(cursor)
        return queue.turn

    # Events

    def _on_entries(self, entries: Sequence[Entry]) -> None:
        self.polls.offer(self.recent.append(entries))
        for entry in entries:
            self.polls.end_access(entry.change)

    def publish(self, transient: Transient) -> None:
        """Deliver a transient event, here and on the other nodes."""
        self._on_transient(transient)
        if self._log.store.is_shared:
            self.announcements.add(transient)

    def _on_transient(self, transient: Transient) -> None:
        match transient:
            case QueueGone(queue_id=queue_id):
                self._end(queue_id)
            case PresenceChanged(notable=notable):
                self.presence.learn(transient)
                if notable:
                    self.polls.offer_transient(transient)
            case _:
                self.polls.offer_transient(transient)

    def send_heartbeats(self) -> None:
        """Answer polls that have waited for long. To be called every `HEARTBEAT_ROUND_SECONDS`, on
        the event loop."""
        self.polls.send_heartbeats(*self._poll_seconds)

    async def renew_ids(self) -> None:
        """Where transient events have nearly used up the IDs after the newest entry, write another
        one. To be called as often."""
        if self.polls.used_up != self._log.durable or self._log.freshness.is_stale:
            return
        await self._log.submit(None, _used_up)

    def _suspend(self) -> None:
        """The state cannot be verified any more: polls that wait may be missing something."""
        self.polls.fail_all(stale_error)

    # Queues

    def add(self, record: QueueRecord) -> None:
        """A queue was registered. Where its user has too many, the idlest is deleted."""
        surplus = self.queues.add(record)
        if surplus is not None:
            self._delete(surplus, soon=False)

    async def delete(self, queue_id: str, user_id: int) -> None:
        """Delete the user's queue. Raises NoSuchQueue."""
        await self.queues.find(queue_id, user_id)
        await self._log.submit(None, _nothing, notes=(QueueDeleted(queue_id),))
        self.publish(QueueGone(queue_id=queue_id))

    async def sweep(self) -> None:
        """Delete the queues that were idle for too long or that their users have too many of, and
        store when the others, and users, were last seen. To be called every `SWEEP_SECONDS`."""
        for queue in self.queues.idle():
            if await self.queues.is_abandoned(queue):
                self._delete(queue)
        notes = self._unwritten()
        for first in range(0, len(notes), NOTES):
            self._note(notes[first : first + NOTES])
            # Commands wait for as many as are written together.
            with contextlib.suppress(Unavailable):  # They are written the next time.
                await self._log.submit(None, _nothing)
        for queue_id in await self.queues.abandoned_elsewhere():
            self.queues.remove(queue_id)
            self._log.note(QueueDeleted(queue_id))
        for queue_id in await self.queues.surplus():
            self._delete_everywhere(queue_id)

    def _unwritten(self) -> list[Note]:
        return [*self.queues.take_unwritten(), *self.presence.take_unwritten()]

    def _note(self, notes: Iterable[Note]) -> None:
        for note in notes:
            self._log.note(note)

    def _delete(self, queue: Queue, *, soon: bool = True) -> None:
        self._delete_everywhere(queue.record.id, soon=soon)

    def _delete_everywhere(self, queue_id: str, *, soon: bool = True) -> None:
        self._log.note(QueueDeleted(queue_id), soon=soon)
        self.publish(QueueGone(queue_id=queue_id))

    def _end(self, queue_id: str) -> None:
        queue = self.queues.remove(queue_id)
        if queue is not None:
            self.polls.fail(queue, NoSuchQueue(queue_id))

    def _end_all(self) -> None:
        """The log is another history, or a part of it was pruned that this node has not read: the
        IDs by which clients say what they have seen mean nothing any more. (In the database, queues
        of another history are gone; the others are deleted when they idle.)"""
        self.recent.clear()
        for queue in self.queues.all():
            self._end(queue.record.id)


def _used_up(_: CommandContext) -> Decision[None]:
    return Decision(None, (EventIdsUsedUp(),))


def _nothing(_: CommandContext) -> Decision[None]:
    """A command that waits for its notes to be on disk."""
    return Decision(None)
