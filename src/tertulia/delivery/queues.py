"""Event queues: cursors into the log, and the polls that wait at its end.

A queue holds no events. A poll names the last event that its client has seen; what came after is
read off the log's recent end (kept in memory) or off the database, and looked at with the
queue's eyes by an encoder. Only a poll that waits costs anything when an entry is committed.
"""

import asyncio
import contextlib
import itertools
import logging
import math
import random
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import msgspec

from tertulia.delivery import event_ids
from tertulia.delivery.announcements import Announcements
from tertulia.delivery.cached_entry import CachedEntry, Encoder
from tertulia.delivery.monotonic_clock import MonotonicClock
from tertulia.delivery.presence import Presence
from tertulia.delivery.queue import Awaited, Poll, Queue, Waiter
from tertulia.log.errors import stale_error
from tertulia.log.log import Log
from tertulia.model import changes
from tertulia.model.changes import (
    Entry,
    MessageEdited,
    MessagesDeleted,
    MessageSent,
    MessagesMoved,
)
from tertulia.model.errors import (
    AccountDeactivated,
    NoSuchQueue,
    NotAuthenticated,
    Refused,
    Unavailable,
    WrongApiKey,
)
from tertulia.model.queues import QueueRecord
from tertulia.model.transients import PresenceChanged, QueueGone, Transient
from tertulia.model.users import Credential
from tertulia.state.moment import Decision, Moment
from tertulia.store import queries
from tertulia.store.writing import Note, QueueDeleted, QueueSeen

logger = logging.getLogger("tertulia.delivery")

RECENT = 2048
"""Entries kept in memory with their encoded events."""
PAGE = 500
"""Entries read from the database at once, and events in one answer at most."""
SWEEP_SECONDS = 30
JUMP_SECONDS = 5
"""By so much the machine's clock may go wrong, or be set right, before it counts."""
BEAT_SECONDS = 0.25
"""Between two looks at who has waited for long."""
TURN_SECONDS = 0.01
"""For so long those who wait are told what happened, then others have their turn of the loop."""
TOLD_AT_ONCE = 16
"""Queues that are told between two looks at the clock."""
UNTOLD_TRANSIENTS = 1000
"""Transient events for which there was no time yet; beyond that the oldest are dropped."""
CLOSING_SECONDS = 2.0
"""How long a node that stops waits until the others have been told the last things."""
NOTES = 500
"""Things that are written down together, and then others have their turn."""
GONE = 10_000
"""Deleted queues that a node remembers, for as long as the database may still have them."""


class Delivery:
    """One node's queues."""

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
        """`clock` tells UNIX seconds; how long a queue is idle is measured by what has `elapsed`,
        whatever becomes of the clock. Both are the log's, unless they are given."""
        clock, elapsed = clock or log.clock, elapsed or log.elapsed
        self.log = log
        self.encoder = encoder
        self.presence = Presence(clock)
        self._poll_seconds = poll_seconds
        self._queues_per_user = queues_per_user
        self._now = MonotonicClock(clock, elapsed)
        self._ahead = self._now.ahead
        self._started = self._now()
        """What is known of the database alone is not idle for longer than from then on."""
        self._node = f"{random.getrandbits(64):016x}"
        self._recent: deque[CachedEntry] = deque(maxlen=RECENT)
        self._queues: dict[str, Queue] = {}
        self._by_user: dict[int, dict[str, Queue]] = {}
        self._waiting: dict[Queue, float] = {}
        """Those that are polled, each with the time since when (the event loop's), in its order."""
        self._waiting_for_all: set[Queue] = set()
        self._untold: dict[Queue, list[CachedEntry]] = {}
        """Those that are polled, each with the entries that may concern it, until it is told."""
        self._untold_transients: deque[tuple[Transient, Iterator[Queue]]] = deque(
            maxlen=UNTOLD_TRANSIENTS
        )
        self._telling: asyncio.Handle | None = None
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._announcements = Announcements(log.store.announce, self._announced)
        self._closing = False
        log.follow(self._committed)
        log.on_reload(self._reloaded)
        log.on_history(self._end_all)
        log.on_stale(self._suspend)

    # Beginning and end

    async def open(self) -> None:
        """Learn what was written down."""
        self.presence.load(await self.log.store.read(queries.presence))

    async def close(self) -> None:
        """Answer every waiting poll, and write down what was not yet."""
        self._closing = True
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        for queue in list(self._waiting):
            self._answer(queue, [])
        await self._announcements.close(CLOSING_SECONDS)
        self._write_down()

    # Queues

    @property
    def waiting(self) -> int:
        """How many polls wait."""
        return len(self._waiting)

    def add(self, record: QueueRecord) -> None:
        """A queue was registered. Where a user has too many, the idlest is deleted."""
        self._remember(Queue(record, self._now()))
        own = self._by_user[record.user_id]
        if len(own) > self._queues_per_user:
            idle = [q for q in own.values() if q.poll is None and q.record.id != record.id]
            if idle:
                self._delete(min(idle, key=lambda q: q.seen_at), soon=False)

    def has_room(self, user_id: int) -> bool:
        """Whether the user may register one more queue."""
        own = self._by_user.get(user_id, {})
        return len(own) < self._queues_per_user or any(q.poll is None for q in own.values())

    async def delete(self, queue_id: str, user_id: int) -> None:
        """Delete the user's queue. Raises NoSuchQueue."""
        queue = await self._queue(queue_id, user_id)
        await self.log.submit(None, _nothing, notes=(QueueDeleted(queue_id),))
        self._forget(queue)
        self.publish(QueueGone(queue_id=queue_id))

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
        credential = self.log.state.credentials.get(user_id)
        queue = await self._queue(queue_id, user_id)
        cursor = await self._cursor(queue, last_event_id)
        turn = self._begin(queue, cursor)
        events = await self._pending(queue, cursor)
        if queue.ended:
            raise NoSuchQueue(queue_id)
        if turn != queue.turn:
            return []
        if events or not block or self._closing:
            return events
        self.log.require_fresh()
        self._check_access(user_id, credential, session_id)
        waiter = Awaited()
        self._park(queue, waiter, session_id)
        try:
            return await waiter.events
        finally:
            self.cancel(queue_id, waiter)  # The client went away.

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
        """The same for a waiter that is told: at once, or when there is something to tell. Whoever
        goes away before that must `leave`.

        False, and nothing has happened, where it cannot be done without reading the database, or
        is to be refused: then `poll`. The user must have been authenticated just now.
        """
        queue = self._queues.get(queue_id)
        if queue is None or queue.user_id != user_id or self._closing:
            return False
        if self.log.freshness.is_stale:
            return False
        start = event_ids.end_of(queue.record.start)
        cursor = start if last_event_id == -1 else last_event_id
        if cursor < start or event_ids.seq_of(cursor) > self._head:
            return False
        if not self._has_in_memory(queue, cursor):
            return False
        self._begin(queue, cursor)
        try:
            events = self._collected(queue, cursor)
        except NoSuchQueue as error:
            waiter.fail(error)
            return True
        if not events and block:
            self._park(queue, waiter, session_id)
        else:
            # What is shown may be ahead of the disk by a moment.
            self.log.when_settled(
                lambda error: waiter.answer(events) if error is None else waiter.fail(error)
            )
        return True

    def cancel(self, queue_id: str, waiter: Waiter) -> None:
        """The waiter waits no longer."""
        queue = self._queues.get(queue_id)
        if queue is not None and queue.poll is not None and queue.poll.waiter is waiter:
            self._unpark(queue)

    def _begin(self, queue: Queue, cursor: int) -> int:
        """A poll has come, from a client that has seen everything up to the cursor. Its turn."""
        queue.seen_at = self._now()
        queue.turn += 1
        if queue.poll is not None:
            self._answer(queue, [])
        while queue.transients and queue.transients[0][0] <= cursor:
            queue.transients.popleft()
        queue.last_transient = max(queue.last_transient, cursor)
        return queue.turn

    def _park(self, queue: Queue, waiter: Waiter, session_id: int | None) -> None:
        queue.poll = Poll(waiter, session_id)
        self._waiting[queue] = asyncio.get_running_loop().time()
        if queue.record.registration.all_public_channels:
            self._waiting_for_all.add(queue)

    def publish(self, transient: Transient) -> None:
        """Deliver what is not written down, here and on the other nodes."""
        self._deliver(transient)
        if self.log.store.is_shared:
            self._announcements.add(transient)

    def _announced(self, transient: Transient) -> str:
        return msgspec.json.encode((self._node, transient)).decode()

    def heard(self, text: str) -> None:
        """Another node (or this one) announced a transient."""
        node, transient = _announcement.decode(text)
        if node != self._node:
            self._deliver(transient)

    # Finding queues

    async def _queue(self, queue_id: str, user_id: int) -> Queue:
        queue = self._queues.get(queue_id)
        if queue is None:
            found = await self.log.store.read(queries.queue, queue_id)
            if (
                found is None
                or queue_id in self._gone
                or self._now() - self._known_seen(found[1]) >= found[0].idle_timeout
            ):
                # (The time that the server was not there does not count as idle.)
                raise NoSuchQueue(queue_id)
            queue = self._queues.get(queue_id)
            if queue is None:
                queue = Queue(found[0], self._now(), is_found=True)
                self._remember(queue)
        if queue.user_id != user_id:
            raise NoSuchQueue(queue_id)
        return queue

    def _remember(self, queue: Queue) -> None:
        self._queues[queue.record.id] = queue
        self._by_user.setdefault(queue.user_id, {})[queue.record.id] = queue

    def _forget(self, queue: Queue) -> None:
        queue.ended = True
        self._bury(queue.record.id)
        self._queues.pop(queue.record.id, None)
        own = self._by_user.get(queue.user_id, {})
        own.pop(queue.record.id, None)
        if not own:
            self._by_user.pop(queue.user_id, None)
        if queue.poll is not None:
            self._fail(queue, NoSuchQueue(queue.record.id))

    def _bury(self, queue_id: str) -> None:
        self._gone[queue_id] = None
        if len(self._gone) > GONE:
            self._gone.popitem(last=False)

    def _delete(self, queue: Queue, *, soon: bool = True) -> None:
        self.log.note(QueueDeleted(queue.record.id), soon=soon)
        self._forget(queue)
        self.publish(QueueGone(queue_id=queue.record.id))

    # Reading the log

    @property
    def _head(self) -> int:
        return self.log.durable

    async def _cursor(self, queue: Queue, last_event_id: int) -> int:
        start = event_ids.end_of(queue.record.start)
        if queue.is_found and queue.record.start > self._head:
            await self.log.catch_up()  # It may have been registered at another node.
            if queue.record.start > self._head:
                self._delete(queue)  # The log has lost its end since.
                raise NoSuchQueue(queue.record.id)
        if last_event_id == -1:
            return start
        if last_event_id < start:
            raise Refused(f"An event newer than {last_event_id} has already been pruned.")
        if event_ids.seq_of(last_event_id) > self._head:
            await self.log.catch_up()  # Another node may have given it out.
        if event_ids.seq_of(last_event_id) > self._head:
            if queue.is_found:
                # It may have been given out by a log that has lost its end since. The number will
                # be used again for something that the client then would not hear of.
                self._delete(queue)
                raise NoSuchQueue(queue.record.id)
            raise Refused(f"Event {last_event_id} was not in this queue.")
        return last_event_id

    async def _pending(self, queue: Queue, cursor: int) -> list[bytes]:
        """The events after the cursor. When this returns none, nothing was committed meanwhile."""
        found: list[tuple[int, bytes]] = []
        seq = self._known(queue, cursor)
        while seq < self._head and len(found) < PAGE:
            first = self._first_recent
            if seq + 1 >= first:
                seq = self._collect_recent(found, queue, cursor, seq)
                continue
            until = min(self._head, first - 1)
            for entry in await self.log.store.read(self._older, queue.record.id, seq, until):
                seq = entry.seq
                self._collect(found, CachedEntry(entry), queue, cursor)
                if len(found) >= PAGE:
                    break
        return self._in_order(found, queue, cursor, seq)

    def _has_in_memory(self, queue: Queue, cursor: int) -> bool:
        seq = self._known(queue, cursor)
        return seq >= self._head or seq + 1 >= self._first_recent

    def _collected(self, queue: Queue, cursor: int) -> list[bytes]:
        """The events after the cursor, where they are in memory."""
        found: list[tuple[int, bytes]] = []
        seq = self._known(queue, cursor)
        if seq < self._head:
            seq = self._collect_recent(found, queue, cursor, seq)
        elif not queue.transients:
            return []
        return self._in_order(found, queue, cursor, seq)

    @staticmethod
    def _known(queue: Queue, cursor: int) -> int:
        """The entry up to which the queue's client has everything."""
        seq = event_ids.seq_of(cursor)
        if not event_ids.is_complete(cursor):
            seq -= 1
        return max(seq, queue.seen_through[1]) if queue.seen_through[0] == cursor else seq

    @property
    def _first_recent(self) -> int:
        return self._recent[0].entry.seq if self._recent else self._head + 1

    def _collect_recent(
        self, found: list[tuple[int, bytes]], queue: Queue, cursor: int, after: int
    ) -> int:
        """Add what comes after an entry to what was found, at most a page; the last entry that was
        looked at."""
        for at in range(after + 1 - self._first_recent, len(self._recent)):
            posted = self._recent[at]
            after = posted.entry.seq
            self._collect(found, posted, queue, cursor)
            if len(found) >= PAGE:
                break
        return after

    def _in_order(
        self, found: list[tuple[int, bytes]], queue: Queue, cursor: int, seq: int
    ) -> list[bytes]:
        """What was found up to an entry, with what is not written down."""
        is_all = len(found) < PAGE
        if queue.transients:
            end = event_ids.of_entry(self._head + 1, 0) if is_all else found[-1][0]
            found += [one for one in queue.transients if cursor < one[0] < end]
            found.sort(key=lambda one: one[0])
        if is_all:
            queue.seen_through = (found[-1][0] if found else cursor, seq)
        return [event for _, event in found]

    @staticmethod
    def _older(connection: Any, queue_id: str, after: int, until: int) -> list[Entry]:
        found = queries.entries(connection, after, PAGE, until)
        if not found or found[0].seq != after + 1:
            raise NoSuchQueue(queue_id)  # The log behind the cursor has been pruned.
        return found

    def _collect(
        self, found: list[tuple[int, bytes]], posted: CachedEntry, queue: Queue, cursor: int
    ) -> None:
        audience = self._audience(posted.entry)
        if not (
            audience is None
            or queue.user_id in audience
            or queue.record.registration.all_public_channels
        ):
            return
        for event in self._events(posted, queue):
            event_id = _id_of(event)
            if event_id > cursor:
                found.append((event_id, event))
                if len(found) >= PAGE:
                    return  # The next poll goes on in the middle of the entry.

    # A mistake in how one change is shown is nobody else's, and it must not be passed over: the
    # queue ends, so that its client fetches everything anew.

    def _audience(self, entry: Entry) -> Collection[int] | None:
        try:
            return self.encoder.audience(entry)
        except Exception:
            logger.exception("the audience of entry %d is not known", entry.seq)
            return None

    def _events(self, posted: CachedEntry, queue: Queue) -> Sequence[bytes]:
        try:
            return self.encoder.events(posted, queue.record)
        except Exception:
            logger.exception("entry %d cannot be shown to %d", posted.entry.seq, queue.user_id)
            self._delete(queue)
            raise NoSuchQueue(queue.record.id) from None

    # What happens

    def _committed(self, entries: Sequence[Entry]) -> None:
        batch = [CachedEntry(entry) for entry in entries]
        if self._recent and batch[0].entry.seq != self._recent[-1].entry.seq + 1:
            self._recent.clear()
        self._recent.extend(batch)
        for entry in entries:
            self._take_back(entry)
        untold = self._untold
        for posted in batch:
            for queue in self._waiting_of(self._audience(posted.entry)):
                of_queue = untold.get(queue)
                if of_queue is None:
                    untold[queue] = [posted]
                else:
                    of_queue.append(posted)
                    if len(of_queue) >= PAGE:
                        self._tell(queue)
        if self._telling is None:
            self._tell_some()
        for posted in batch:
            self._end_access(posted.entry.change)

    def _tell_some(self) -> None:
        """Tell those who wait, for a turn of the loop; the others are told in the next ones."""
        self._telling = None
        until = time.perf_counter() + TURN_SECONDS
        untold, transients = self._untold, self._untold_transients
        while untold or transients:
            if untold:
                for queue in list(itertools.islice(untold, TOLD_AT_ONCE)):
                    self._tell(queue)
            else:
                transient, concerned = transients[0]
                some = list(itertools.islice(concerned, TOLD_AT_ONCE))
                for queue in some:
                    self._deliver_to(queue, transient)
                if not some and transients:
                    transients.popleft()
            if time.perf_counter() > until:
                break
        if untold or transients:
            self._telling = asyncio.get_running_loop().call_soon(self._tell_some)

    def _tell(self, queue: Queue) -> None:
        """Answer the queue's poll with what was committed, if anything of it is for the queue."""
        told: Sequence[bytes] = ()
        for posted in self._untold.pop(queue, ()):
            try:
                events = self._events(posted, queue)
            except NoSuchQueue:  # It was told so.
                return
            # Mostly there is one change, whose events are shared by all who hear of it.
            told = [*told, *events] if told and events else told or events
        if len(told) > PAGE:
            self._answer(queue, told[:PAGE])
        elif told:
            queue.seen_through = (_id_of(told[-1]), self._head)
            self._answer(queue, told)

    def _waiting_of(self, audience: Collection[int] | None) -> list[Queue]:
        waiting = self._waiting
        if audience is None:
            return list(waiting)
        if len(audience) > len(waiting):
            found = [queue for queue in waiting if queue.user_id in audience]
        else:
            own = (self._by_user[user] for user in audience if user in self._by_user)
            found = [q for queues in own for q in queues.values() if q.poll is not None]
        return [*found, *(q for q in self._waiting_for_all if q.user_id not in audience)]

    def _end_access(self, change: changes.AnyChange) -> None:
        match change:
            case changes.UserDeactivated(user_id=user_id):
                for queue, _ in self._waiting_polls(user_id):
                    self._fail(queue, _deactivated())
            case changes.CredentialChanged(credential=credential, same_key=False):
                for queue, session_id in self._waiting_polls(credential.user_id):
                    if session_id is None:
                        self._fail(queue, _key_void())
            case changes.SessionsEnded(user_ids=user_ids, session_ids=over):
                for user_id in user_ids:
                    for queue, session_id in self._waiting_polls(user_id):
                        if session_id in over:
                            self._fail(queue, _signed_out())
            case _:
                pass

    def _waiting_polls(self, user_id: int) -> list[tuple[Queue, int | None]]:
        """The user's queues that are being polled, each with the session that polls it."""
        own = self._by_user.get(user_id, {}).values()
        return [(queue, queue.poll.session_id) for queue in own if queue.poll is not None]

    def _check_access(
        self, user_id: int, credential: Credential | None, session_id: int | None
    ) -> None:
        """Refuse what `_end_access` would have ended, had the poll been waiting already."""
        user = self.log.state.users.get(user_id)
        if user is None or not user.is_active:
            raise _deactivated()
        if session_id is not None:
            if session_id not in self.log.state.sessions:
                raise _signed_out()
            return
        present = self.log.state.credentials.get(user_id)
        if present is None or credential is None or present.key_digest != credential.key_digest:
            raise _key_void()

    def _take_back(self, entry: Entry) -> None:
        """What is deleted, or moved out of sight, is not told any more by what came before."""
        change = entry.change
        match change:
            case MessagesDeleted(message_ids=ids):
                values: dict[str, Any] = {"gone": True}
            case MessagesMoved(message_ids=ids, changes_channel=True):
                values = {"moved_to": change.new_channel_id}
            case _:
                return
        concerned = frozenset(ids)
        for posted in self._recent:
            told = posted.entry.change
            if isinstance(told, MessageSent | MessageEdited) and told.message.id in concerned:
                revised = msgspec.structs.replace(told, **values)
                posted.revise(msgspec.structs.replace(posted.entry, change=revised))
            elif (
                isinstance(told, MessagesMoved)
                and posted.entry.seq < entry.seq
                and any(one.message_id in concerned for one in told.arrivals)
            ):
                taken = _arrivals_taken_back(told, concerned, change)
                posted.revise(msgspec.structs.replace(posted.entry, change=taken))

    def _reloaded(self) -> None:
        """The state was loaded anew; what is in memory of the log is still what was committed."""
        while self._recent and self._recent[-1].entry.seq > self._head:
            self._recent.pop()
        for posted in self._recent:
            posted.revise(posted.entry)  # It may have been shown as it never was.

    def _end_all(self) -> None:
        """The log is another history, and what clients have seen, and the IDs by which they say
        so, are of one that is over; or a part of it was pruned that this node has not read. (In the
        database the queues of another history are gone, and others are deleted when they idle.)"""
        self._recent.clear()
        for queue in list(self._queues.values()):
            self._forget(queue)

    def _suspend(self) -> None:
        """The node does not know any more whether who waits may still hear of things."""
        for queue in list(self._waiting):
            self._fail(queue, stale_error())

    def _deliver(self, transient: Transient) -> None:
        match transient:
            case QueueGone(queue_id=queue_id):
                self._bury(queue_id)
                queue = self._queues.get(queue_id)
                if queue is not None:
                    self._forget(queue)
                return
            case PresenceChanged():
                self.presence.learn(transient)
                if not transient.notable:
                    return
            case _:
                pass
        try:
            audience = self.encoder.transient_audience(transient)
        except Exception:
            # What it is about may be gone, or not known here yet, if another node tells of it.
            logger.exception("the audience of a transient event is not known")
            return
        users = self._by_user if audience is None else audience
        own = (self._by_user[user_id] for user_id in users if user_id in self._by_user)
        concerned = [queue for queues in own for queue in queues.values()]
        self._untold_transients.append((transient, iter(concerned)))
        if self._telling is None:
            self._tell_some()

    def _deliver_to(self, queue: Queue, transient: Transient) -> None:
        if queue.ended:
            return
        self._tell(queue)
        event_id = queue.transient_id(self._head)
        if event_id is None:
            return
        try:
            event = self.encoder.transient(transient, queue.record, event_id)
        except Exception:  # It is told to nobody later; the others do not wait behind it.
            logger.exception("a transient event cannot be shown to %d", queue.user_id)
            return
        if event is None:
            return
        queue.transients.append((event_id, event))
        if queue.poll is not None:
            self._answer(queue, [event])

    def beat(self) -> None:
        """Let those hear something who have waited for long: not all at once who began at once.
        To be called every `BEAT_SECONDS`, on the event loop."""
        least, most = self._poll_seconds
        rounds = max((most - least) / BEAT_SECONDS, 1.0)
        now = asyncio.get_running_loop().time()
        latest, count = now - least, math.ceil(len(self._waiting) / rounds)
        due = (queue for queue, since in self._waiting.items() if since <= latest)
        for queue in list(itertools.islice(due, count)):
            self._beat(queue)

    def _beat(self, queue: Queue) -> None:
        self._tell(queue)
        if queue.poll is None:
            return
        event_id = queue.transient_id(self._head)
        self._answer(queue, [] if event_id is None else [self.encoder.heartbeat(event_id)])

    # Ending a poll

    def _unpark(self, queue: Queue) -> Poll | None:
        poll, queue.poll = queue.poll, None
        if poll is None:
            return None
        self._untold.pop(queue, None)
        del self._waiting[queue]
        self._waiting_for_all.discard(queue)
        queue.seen_at = self._now()
        return poll

    def _answer(self, queue: Queue, events: Sequence[bytes]) -> None:
        poll = self._unpark(queue)
        if poll is not None:
            poll.waiter.answer(events)

    def _fail(self, queue: Queue, error: Exception) -> None:
        self._tell(queue)
        poll = self._unpark(queue)
        if poll is not None:
            poll.waiter.fail(error)

    # Housekeeping

    async def sweep(self) -> None:
        """Delete the queues that were idle for too long, and write down when the others were
        seen."""
        self._notice_jump()
        now = self._now()
        store = self.log.store
        # Another node may be serving a queue, and writes down that it does only now and then.
        spared = 4 * SWEEP_SECONDS
        own = spared if store.is_shared else 0
        for queue in list(self._queues.values()):
            if queue.poll is not None:
                queue.seen_at = now
            elif self._is_idle(queue, now, own):
                if store.is_shared and (found := await store.read(queries.queue, queue.record.id)):
                    queue.seen_at = max(queue.seen_at, self._known_seen(found[1]))
                if not queue.ended and queue.poll is None and self._is_idle(queue, now, own):
                    self._delete(queue)
        for notes in self._unwritten(NOTES):
            # Those who send wait for as many as are written together.
            self._note(notes)
            with contextlib.suppress(Unavailable):  # They are written the next time.
                await self.log.submit(None, _nothing)
        self._notice_jump()
        moment = self._now() + self._ahead, self._started + self._ahead
        for queue_id in await store.read(queries.idle_queues, *moment, spared):
            if queue_id not in self._queues:
                self._bury(queue_id)
                self.log.note(QueueDeleted(queue_id))

    @staticmethod
    def _is_idle(queue: Queue, now: float, spared: float) -> bool:
        return now - queue.seen_at >= queue.record.idle_timeout + spared

    def _known_seen(self, seen_at: float) -> float:
        """When a queue was seen at last, as this node counts, of which the database says so."""
        self._notice_jump()
        return max(seen_at - self._ahead, self._started)

    def _notice_jump(self) -> None:
        """Where the machine's clock was set, the times in the database say nothing for a while:
        each node has to write down anew when its queues were seen."""
        ahead = self._now.ahead
        if abs(ahead - self._ahead) < JUMP_SECONDS:
            return
        logger.warning(
            "the machine's clock was set", extra={"fields": {"seconds": round(ahead - self._ahead)}}
        )
        self._ahead = ahead
        self._started = self._now()
        for queue in self._queues.values():
            queue.written_at = -math.inf

    def _write_down(self) -> None:
        for notes in self._unwritten(NOTES):
            self._note(notes)

    def _note(self, notes: Sequence[Note]) -> None:
        for note in notes:
            self.log.note(note)

    def _unwritten(self, size: int) -> Iterator[Sequence[Note]]:
        """When queues and people were seen, as far as that is not written down; so many at once."""
        notes: list[Note] = []
        for queue in self._queues.values():
            if queue.seen_at - queue.written_at >= queue.record.idle_timeout / 4:
                queue.written_at = queue.seen_at
                notes.append(QueueSeen(queue.record.id, int(queue.seen_at + self._ahead)))
        notes += self.presence.take_unwritten()
        for first in range(0, len(notes), size):
            yield notes[first : first + size]


def _arrivals_taken_back(
    told: MessagesMoved, concerned: Collection[int], change: MessagesDeleted | MessagesMoved
) -> MessagesMoved:
    """The move, after some of its messages were deleted, or moved again."""
    values: dict[str, Any] = {"message": None, "submessages": ()}
    if isinstance(change, MessagesMoved):
        values = {"moved_to": change.new_channel_id}
    replace = msgspec.structs.replace
    arrivals = (
        replace(one, **values) if one.message_id in concerned else one for one in told.arrivals
    )
    return replace(told, arrivals=tuple(arrivals))


def _nothing(_: Moment) -> Decision[None]:
    """A command that waits for its notes to be on disk."""
    return Decision(None)


def _deactivated() -> Refused:
    return AccountDeactivated("The account has been deactivated.")


def _key_void() -> Refused:
    return WrongApiKey("The API key is not valid any more.")


_announcement = msgspec.json.Decoder(tuple[str, Transient])


def _signed_out() -> Refused:
    return NotAuthenticated("You have been signed out.")


def _id_of(event: bytes) -> int:
    """Every encoded event begins with its ID: `{"id":123,…`."""
    return int(event[6 : event.index(b",", 6)])
