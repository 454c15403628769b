"""Event queues, their polls, and their events.

A queue doesn't store entries. A poll names the last event that its client has seen, and later ones
that the queue can see are read from the log (`recent_entries`). If there are no later ones, the
poll waits (`waiting_polls`).
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, get_args

from tertulia.delivery.encoder import Encoder, GuardedEncoder, NotEncoded
from tertulia.delivery.peer_messages import PeerMessages
from tertulia.delivery.presence import Presence
from tertulia.delivery.queue import FutureWaiter, Queue, Waiter
from tertulia.delivery.recent_entries import RecentEntries
from tertulia.delivery.registry import QueueRegistry
from tertulia.delivery.waiting_polls import WaitingPolls, require_queue
from tertulia.log.health import stale_error
from tertulia.log.log import Log
from tertulia.model.changes import AccessKeysEnded, Entry, EventIdsUsedUp, QueuesEnded
from tertulia.model.errors import NoSuchQueue, Refused, Unavailable
from tertulia.model.queues import QueueRecord
from tertulia.model.transients import PresenceChanged, QueueGone, Transient
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import queries
from tertulia.store.notes import Note, QueueDeleted
from tertulia.store.store import READ_SECONDS

CLOSING_SECONDS: Final = 2.0
"""The number of seconds for which a stopping node waits until its last transient events have
reached other nodes."""
NOTES: Final = 500
"""The most notes that are written together before other tasks run."""


class Delivery:
    """Delivers a node's events."""

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
        """Create a node's delivery. A poll waits for its heartbeat between the two `poll_seconds`.
        `clock` returns UNIX seconds, and `elapsed` is the monotonic clock for idle queues; both
        default to the log's."""
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
        self.peer_messages = PeerMessages(log.store.send_to_peers)
        for kind in get_args(Transient):
            self.peer_messages.listen(kind, self._on_transient)
        self._closing = False
        log.subscribers.followers.append(self._on_entries)
        log.add_demand(lambda: len(self.polls) > 0)
        log.subscribers.on_reload.append(self.recent.reloaded)
        log.subscribers.on_history.append(self._end_all)
        log.subscribers.on_stale.append(self._suspend)

    # Start and stop

    async def open(self) -> None:
        """Load the stored presence of users."""
        self.presence.load(await self._log.store.read_log(queries.presence, READ_SECONDS))

    async def close(self) -> None:
        """Answer all polls, and store when queues were polled and users were present."""
        self._closing = True
        self.polls.close()
        await self.peer_messages.close(CLOSING_SECONDS)
        self._note(self._unwritten())

    @property
    def waiting(self) -> int:
        """The number of polls that wait."""
        return len(self.polls)

    async def poll(
        self,
        queue_id: str,
        user_id: int,
        last_event_id: int,
        *,
        block: bool,
        session_id: int | None = None,
        key_id: int | None = None,
    ) -> Sequence[bytes]:
        """Return the encoded events after `last_event_id` (-1: all since registration).

        The poll ends with the browser session `session_id` or the access key `key_id` or, if both
        are None, with the API key. With `block`, wait until there is an event, at least a
        heartbeat. Return an empty list without `block`, when a newer poll of the queue has arrived,
        or when the server stops. Raise NoSuchQueue, Refused for an ID that was never issued, and
        the error for a user who lost access.
        """
        credential = self._log.state.credentials.get(user_id)
        queue = await self.queues.find(queue_id, user_id, key_id)
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
        require_queue(self._log.state, user_id, credential, session_id, key_id)
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
        """Start a poll as `poll` does, for a waiter that is called immediately or later. If its
        client leaves before that, call `cancel`.

        Return False, and do nothing, if this would require a database read or a refusal: use `poll`
        then. The user must have been authenticated just now, and not by an access key.
        """
        queue = self.queues.get(queue_id)
        if queue is None or not queue.is_of(user_id, None) or self._closing:
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
            # The events may be ahead of the disk.
            self._log.durability.when_settled(
                lambda error: waiter.answer(events) if error is None else waiter.fail(error)
            )
        return True

    def cancel(self, queue_id: str, waiter: Waiter) -> None:
        """Remove the waiter, because its client left."""
        queue = self.queues.get(queue_id)
        if queue is not None:
            self.polls.cancel(queue, waiter)

    async def _cursor(self, queue: Queue, last_event_id: int) -> int:
        """Return the cursor from which a poll continues. Raise NoSuchQueue if the log lost events
        that the queue has delivered, and Refused for an ID that was never issued."""
        record = queue.record
        if queue.is_found and record.start > self._log.durable:
            await self._log.catching_up.reached(record.start)  # It was registered at another node.
            if record.start > self._log.durable:
                self._delete(queue)
                raise NoSuchQueue(record.id)
        first = queue.numbering.end_of(record.start)
        if last_event_id == -1:
            return first
        if last_event_id < first:
            raise Refused(f"An event newer than {last_event_id} has already been pruned.")
        seq = queue.numbering.seq_of(last_event_id)
        await self._log.catching_up.reached(seq)  # Another node may have issued it.
        if seq > self._log.durable:
            if queue.is_found:
                # The event may have been issued before the log lost its end. Its ID will be reused,
                # for an event that the client would then miss.
                self._delete(queue)
                raise NoSuchQueue(record.id)
            raise Refused(f"Event {last_event_id} was not in this queue.")
        return last_event_id

    def _begin(self, queue: Queue, cursor: int) -> int:
        """Register a poll whose client has everything up to the cursor. Return its number."""
        self.queues.touch(queue)
        queue.turn += 1
        if queue.waiter is not None:
            self.polls.answer(queue, [])
        queue.acknowledge(cursor)
        return queue.turn

    def _on_entries(self, entries: Sequence[Entry]) -> None:
        self.polls.offer(self.recent.append(entries))
        for entry in entries:
            self.polls.end_access(entry.change)
            match entry.change:
                case QueuesEnded():
                    self._end_before(entry.seq)
                case AccessKeysEnded(user_id=user_id, key_ids=key_ids):
                    self._end_of_keys(user_id, key_ids)

    def publish(self, transient: Transient) -> None:
        """Deliver a transient event on this node and the others."""
        self._on_transient(transient)
        if self._log.store.is_shared:
            self.peer_messages.add(transient)

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
        """Send heartbeats to polls that have waited long enough. Call this every
        `HEARTBEAT_ROUND_SECONDS` on the event loop."""
        self.polls.send_heartbeats(*self._poll_seconds)

    async def renew_ids(self) -> None:
        """Write an entry if transient events have nearly used up the IDs after the newest one. Call
        this every `HEARTBEAT_ROUND_SECONDS`."""
        if self.polls.used_up != self._log.durable or self._log.freshness.is_stale:
            return
        await self._log.submit(None, _used_up)

    def _suspend(self) -> None:
        """Fail all polls, because the state can't be verified, and they may be missing events."""
        self.polls.fail_all(stale_error)

    def add(self, record: QueueRecord) -> None:
        """Add a registered queue. If its user has too many, delete the one that was idle
        longest."""
        surplus = self.queues.add(record)
        if surplus is not None:
            self._delete(surplus, soon=False)

    async def delete(self, queue_id: str, user_id: int, key_id: int | None = None) -> None:
        """Delete a queue that the user registered with this access key. Raise NoSuchQueue."""
        await self.queues.find(queue_id, user_id, key_id)
        await self._log.submit(None, _nothing, notes=(QueueDeleted(queue_id),))
        self.publish(QueueGone(queue_id=queue_id))

    async def sweep(self) -> None:
        """Delete queues that were idle for too long or exceed their user's limit, and store when
        the other queues were polled and users were present. Call this every `SWEEP_SECONDS`."""
        for queue in self.queues.idle():
            if await self.queues.is_abandoned(queue):
                self._delete(queue)
        notes = self._unwritten()
        for first in range(0, len(notes), NOTES):
            self._note(notes[first : first + NOTES])
            # Commands wait for notes that are written together.
            with contextlib.suppress(Unavailable):  # They're written next time.
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

    def _end_before(self, seq: int) -> None:
        """End all queues that were registered before that entry."""
        for queue in self.queues.all():
            if queue.record.start < seq:
                self._end(queue.record.id)

    def _end_of_keys(self, user_id: int, key_ids: Collection[int]) -> None:
        """End the queues of access keys that ended. (The database's records of them expire.)"""
        for queue in self.queues.of((user_id,)):
            if queue.record.registration.key_id in key_ids:
                self._end(queue.record.id)

    def _end_all(self) -> None:
        """End all queues: the log has a new history, or entries were pruned before this node read
        them, so the event IDs that clients have mean nothing. (The database has no queues of other
        histories; the others are deleted when they idle.)"""
        self.recent.clear()
        for queue in self.queues.all():
            self._end(queue.record.id)


def _used_up(_: CommandContext) -> Decision[None]:
    return Decision(None, (EventIdsUsedUp(),))


def _nothing(_: CommandContext) -> Decision[None]:
    """Do nothing: this command only waits until its notes are on disk."""
    return Decision(None)
