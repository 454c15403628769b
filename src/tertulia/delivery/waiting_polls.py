"""Polls that wait, and answering them with committed entries, transient events, heartbeats, or an
error.

A committed entry is offered only to queues with a waiting poll, so only these cost anything. They
are answered over several turns of the event loop, so that nobody waits for all of them.
"""

import asyncio
import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from tertulia.delivery import queue as event_ids
from tertulia.delivery.encoder import CachedEntry, GuardedEncoder, NotEncoded
from tertulia.delivery.queue import Queue, Waiter
from tertulia.delivery.recent_entries import PAGE
from tertulia.delivery.registry import QueueRegistry
from tertulia.log.log import Log
from tertulia.model.changes import (
    AccessKeysEnded,
    AnyChange,
    CredentialChanged,
    RealmChanged,
    SessionsEnded,
    UserDeactivated,
)
from tertulia.model.errors import AccountDeactivated, NotAuthenticated, Refused, WrongApiKey
from tertulia.model.transients import Transient
from tertulia.model.users import Credential
from tertulia.state.state import State

HEARTBEAT_ROUND_SECONDS: Final = 0.25
"""The interval, in seconds, between heartbeats to groups of polls."""
TURN_SECONDS: Final = 0.01
"""The number of seconds for which polls are answered before other tasks of the event loop run."""
BATCH_SIZE: Final = 16
"""The number of queues between checks of the time."""
LARGE: Final = 64 * 1024
"""The size of an entry's events, in bytes, from which the time is checked after each queue."""
IN_A_TURN: Final = 4096
"""The number of queues taken for one turn, more than there is time for."""
_LOOKED_UP: Final = 4
"""The cost of looking up a user's queues, as a multiple of checking whether a queue is the
user's."""
SPARED: Final = 32
"""If an entry has at most this many IDs left for transient events of a queue, another entry is
needed."""
UNDELIVERED_TRANSIENTS: Final = 1000
"""The most transient events that wait to be delivered. Beyond it, the oldest are dropped."""


class WaitingPolls:
    """The queues with waiting polls, and the events that are still to be delivered to them."""

    def __init__(
        self,
        log: Log,
        queues: QueueRegistry,
        encoder: GuardedEncoder,
        delete: Callable[[Queue], None],
    ) -> None:
        """Create the collection. `delete` ends a queue for which an entry can't be encoded; its
        poll must then `fail`."""
        self._log = log
        self._queues = queues
        self._encoder = encoder
        self._delete = delete
        self._waiting: dict[Queue, float] = {}
        """The queues, each with the time (`time.monotonic`) when the wait began, the oldest
        first."""
        self._waiting_for_all_public: set[Queue] = set()
        """The waiting queues that follow all public channels."""
        self._undelivered: dict[Queue, tuple[CachedEntry] | list[CachedEntry]] = {}
        """The queues that committed entries may be for. For a single entry, all share the same
        tuple."""
        self._undelivered_transients: deque[tuple[Transient, Iterator[Queue]]] = deque(
            maxlen=UNDELIVERED_TRANSIENTS
        )
        """The transient events, each with the queues that it hasn't been offered to."""
        self._next_turn: asyncio.Handle | None = None
        self.used_up: int | None = None
        """The newest entry whose IDs for transient events are nearly used up for some queue."""

    def __len__(self) -> int:
        return len(self._waiting)

    # One poll

    def wait(self, queue: Queue, waiter: Waiter, session_id: int | None) -> None:
        """Let the waiter wait for the queue's next events."""
        queue.waiter, queue.session_id = waiter, session_id
        # (Asking the event loop for its time would take ten times as long.)
        self._waiting[queue] = time.monotonic()
        if queue.record.registration.all_public_channels:
            self._waiting_for_all_public.add(queue)
        self._log.store.listen()

    def cancel(self, queue: Queue, waiter: Waiter) -> None:
        """End the queue's poll without a response, if its waiter is still this one."""
        if queue.waiter is waiter:
            self._end(queue)

    def answer(self, queue: Queue, events: Sequence[bytes]) -> None:
        """Answer the queue's poll, if one is waiting."""
        waiter = self._end(queue)
        if waiter is not None:
            waiter.answer(events)

    def fail(self, queue: Queue, error: Exception) -> None:
        """Answer the queue's poll, if one is waiting, with undelivered events or else the error."""
        self._deliver_entries(queue)
        waiter = self._end(queue)
        if waiter is not None:
            waiter.fail(error)

    def _end(self, queue: Queue) -> Waiter | None:
        waiter, queue.waiter = queue.waiter, None
        if waiter is None:
            return None
        self._undelivered.pop(queue, None)
        del self._waiting[queue]
        if self._waiting_for_all_public:
            self._waiting_for_all_public.discard(queue)
        self._queues.touch(queue)
        return waiter

    # All polls

    def close(self) -> None:
        """Answer all polls, and deliver nothing further."""
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None
        for queue in list(self._waiting):
            self.answer(queue, [])

    def fail_all(self, error: Callable[[], Exception]) -> None:
        """Fail all polls, each with a separate error."""
        for queue in list(self._waiting):
            self.fail(queue, error())

    def end_access(self, change: AnyChange) -> None:
        """End the polls of users whose access the change ends."""
        if isinstance(change, RealmChanged) and change.values.get("account_api_keys") is False:
            self._end_of_api_keys()
            return
        user_ids = affected_users(change)
        if not user_ids:
            return
        for queue in self._queues.of(user_ids):
            if queue.waiter is not None:
                error = access_error(change, queue.session_id, queue.record.registration.key_id)
                if error is not None:
                    self.fail(queue, error)

    def _end_of_api_keys(self) -> None:
        """End the polls that use people's own API keys, because these are no longer accepted."""
        users = self._log.state.users
        for queue in list(self._waiting):
            by_key = queue.session_id is None and queue.record.registration.key_id is None
            user = users.get(queue.user_id)
            if by_key and user is not None and not user.is_bot:
                self.fail(queue, _key_void())

    def send_heartbeats(self, least: float, most: float) -> None:
        """Answer polls that have waited `least` seconds, spread over time but before `most`
        seconds. Call this every `HEARTBEAT_ROUND_SECONDS`."""
        rounds = max((most - least) / HEARTBEAT_ROUND_SECONDS, 1.0)
        now = time.monotonic()
        latest, count = now - least, math.ceil(len(self._waiting) / rounds)
        due = (queue for queue, since in self._waiting.items() if since <= latest)
        for queue in list(itertools.islice(due, count)):
            self.send_heartbeat(queue)

    def send_heartbeat(self, queue: Queue) -> None:
        """Answer the queue's poll with undelivered events or else a heartbeat."""
        self._deliver_entries(queue)
        if queue.waiter is None:
            return
        if self._log.durable > queue.last_seq:
            self._delete(queue)
            return
        event_id = self._next_transient_id(queue)
        self.answer(queue, [] if event_id is None else [self._encoder.heartbeat(event_id)])

    # Delivery

    def offer(self, cached_entries: Iterable[CachedEntry]) -> None:
        """Deliver committed entries."""
        undelivered = self._undelivered
        for cached in cached_entries if self._waiting else ():
            offered = self._waiting_of(self._encoder.audience(cached.entry))
            if not undelivered:
                # Usually nothing else is undelivered, and all queues get the same entry.
                undelivered.update(dict.fromkeys(offered, (cached,)))
                continue
            for queue in offered:
                of_queue = undelivered.get(queue)
                if of_queue is None:
                    undelivered[queue] = (cached,)
                elif isinstance(of_queue, tuple):
                    undelivered[queue] = [*of_queue, cached]
                else:
                    of_queue.append(cached)
                    if len(of_queue) >= PAGE:
                        self._deliver_entries(queue)
        if self._next_turn is None:
            self._take_turn()

    def offer_transient(self, transient: Transient) -> None:
        """Deliver a transient event. Queues without a poll keep it for the next one."""
        audience = self._encoder.transient_audience(transient)
        queues = self._queues.all() if audience is None else self._queues.of(audience)
        self._undelivered_transients.append((transient, iter(queues)))
        if self._next_turn is None:
            self._take_turn()

    def _waiting_of(self, audience: Collection[int] | None) -> list[Queue]:
        """Return the queues that an entry with this audience is offered to."""
        waiting = self._waiting
        if audience is None:
            return list(waiting)
        if len(audience) * _LOOKED_UP > len(waiting):
            queues = [queue for queue in waiting if queue.user_id in audience]
        else:
            queues = [queue for queue in self._queues.of(audience) if queue.waiter is not None]
        others = (q for q in self._waiting_for_all_public if q.user_id not in audience)
        return [*queues, *others]

    def _take_turn(self) -> None:
        """Deliver for one turn of the event loop, and schedule the rest."""
        self._next_turn = None
        until = time.perf_counter() + TURN_SECONDS
        undelivered, transients = self._undelivered, self._undelivered_transients
        while undelivered or transients:
            if undelivered:
                self._deliver_until(until)
            else:
                transient, queues = transients[0]
                some = list(itertools.islice(queues, BATCH_SIZE))
                for queue in some:
                    self._deliver_transient(queue, transient)
                if not some and transients:
                    transients.popleft()
            if time.perf_counter() > until:
                break
        if undelivered or transients:
            self._next_turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _deliver_until(self, until: float) -> None:
        """Deliver entries to as many of the queues as there is time for."""
        undelivered, waiting = self._undelivered, self._waiting
        all_public = self._waiting_for_all_public
        now, together = self._queues.now(), _SharedEvents(self._encoder, len(undelivered))
        entry: CachedEntry | None = None
        shared: Sequence[bytes] = ()
        step = BATCH_SIZE
        # Copied once, because iterating a dictionary from the start takes time for each entry that
        # was removed from it.
        for number, queue in enumerate(list(itertools.islice(undelivered, IN_A_TURN))):
            if number and number % step == 0 and time.perf_counter() > until:
                return
            entries = undelivered.get(queue)
            if isinstance(entries, tuple):
                # Usually there is one entry for all, and queues with the same view share its
                # events. This loop runs for thousands of queues, so every line counts.
                del undelivered[queue]
                if entry is not entries[0]:
                    (entry,) = entries
                    events_of = together.events_of(entry)
                try:
                    events = events_of(queue)
                except NotEncoded:
                    self._delete(queue)
                    continue
                if events:
                    if events is not shared:
                        shared, seen = events, self._seen_through(events)
                        step = _step(entries)
                    waiter, queue.waiter = queue.waiter, None
                    del waiting[queue]
                    if all_public:
                        all_public.discard(queue)
                    queue.seen_through, queue.seen_at = seen, now
                    if waiter is not None:
                        waiter.answer(events)
            elif entries is not None:
                self._deliver_entries(queue, together)
                step = _step(entries)

    def _deliver_entries(self, queue: Queue, together: "_SharedEvents | None" = None) -> None:
        """Answer the queue's poll with its undelivered entries, if any of them is for the queue."""
        entries = self._undelivered.pop(queue, None)
        if entries is None:
            return
        try:
            events = (together or _SharedEvents(self._encoder)).events(entries, queue)
        except NotEncoded:
            self._delete(queue)
            return
        if len(events) > PAGE:
            self.answer(queue, events[:PAGE])
        elif events:
            queue.seen_through = self._seen_through(events)
            self.answer(queue, events)

    def _seen_through(self, events: Sequence[bytes]) -> tuple[int, int]:
        """Return the `seen_through` of a queue with these events."""
        return event_ids.id_of_event(events[-1]), self._log.durable

    def _deliver_transient(self, queue: Queue, transient: Transient) -> None:
        """Answer the queue's poll with the event, or keep it for the next poll."""
        if queue.ended:
            return
        self._deliver_entries(queue)
        if self._log.durable > queue.last_seq:
            return  # The queue is about to end.
        event_id = self._next_transient_id(queue)
        if event_id is None:
            return
        event = self._encoder.transient(transient, queue, event_id)
        if event is None:
            return
        queue.transients.append((event_id, event))
        if queue.waiter is not None:
            self.answer(queue, [event])

    def _next_transient_id(self, queue: Queue) -> int | None:
        """Return the ID of the queue's next transient event; None if none is left until the next
        entry, which is written soon."""
        seq = self._log.durable
        if queue.transient_ids_left(seq) <= SPARED:
            self.used_up = seq
        return queue.next_transient_id(seq)


def _step(entries: Iterable[CachedEntry]) -> int:
    """Return the number of queues between checks of the time."""
    return 1 if any(cached.size > LARGE for cached in entries) else BATCH_SIZE


class _SharedEvents:
    """The events of several queues in one turn of the event loop. Equal lists are shared."""

    __slots__ = ("_count", "_encoder", "_events_of", "_lists")

    def __init__(self, encoder: GuardedEncoder, count: int = 1) -> None:
        self._encoder, self._count = encoder, count
        self._events_of: dict[CachedEntry, Callable[[Queue], Sequence[bytes]]] = {}
        self._lists: dict[tuple[int, ...], tuple[list[Sequence[bytes]], list[bytes]]] = {}
        """Events of several entries, by the identities of each entry's events, which are stored too
        so that the identities stay valid."""

    def events_of(self, cached: CachedEntry) -> Callable[[Queue], Sequence[bytes]]:
        result = self._events_of.get(cached)
        if result is None:
            result = self._events_of[cached] = self._encoder.events_of(cached, self._count)
        return result

    def events(self, entries: Iterable[CachedEntry], queue: Queue) -> Sequence[bytes]:
        """Return the queue's events of the entries. Raise NotEncoded."""
        parts = [events for cached in entries if (events := self.events_of(cached)(queue))]
        if len(parts) <= 1:
            return parts[0] if parts else ()
        key = tuple(map(id, parts))
        result = self._lists.get(key)
        if result is None:
            result = self._lists[key] = parts, [event for events in parts for event in events]
        return result[1]


def affected_users(change: AnyChange) -> Collection[int]:
    """Return the users whose polls the change may end."""
    match change:
        case UserDeactivated(user_id=user_id):
            return (user_id,)
        case CredentialChanged(credential=credential, same_key=False):
            return (credential.user_id,)
        case SessionsEnded(user_ids=user_ids):
            return user_ids
        case AccessKeysEnded(user_id=user_id):
            return (user_id,)
        case _:
            return ()


def access_error(change: AnyChange, session_id: int | None, key_id: int | None) -> Refused | None:
    """Return the error with which the change ends an affected user's poll, if it does. `session_id`
    and `key_id`, of an access key, are None for a poll with the API key."""
    match change:
        case UserDeactivated():
            return _deactivated()
        case CredentialChanged(same_key=False) if session_id is None and key_id is None:
            return _key_void()
        case AccessKeysEnded(key_ids=ended) if key_id in ended:
            return _key_void()
        case SessionsEnded(session_ids=ended) if session_id in ended:
            return _signed_out()
        case _:
            return None


def require_queue(
    state: State,
    user_id: int,
    credential: Credential | None,
    session_id: int | None,
    key_id: int | None,
) -> None:
    """Raise the error that would have ended the poll had it been waiting. `credential` is the
    user's credential when it began."""
    user = state.users.get(user_id)
    if user is None or not user.is_active:
        raise _deactivated()
    if session_id is not None:
        if session_id not in state.sessions:
            raise _signed_out()
        return
    if key_id is not None:
        if key_id not in state.access_keys:
            raise _key_void()
        return
    present = state.credentials.get(user_id)
    if present is None or credential is None or present.key_digest != credential.key_digest:
        raise _key_void()


def _deactivated() -> Refused:
    return AccountDeactivated("This account is deactivated.")


def _key_void() -> Refused:
    return WrongApiKey("This API key is no longer valid.")


def _signed_out() -> Refused:
    return NotAuthenticated("You have been signed out.")
