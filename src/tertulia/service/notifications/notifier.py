"""Deciding whom to notify about which messages.

The notifier reads the log, stores a pending notification for each message and the people it
concerns, and passes the messages that are still unread to the notification channels when they are
due.

Every node can run it, one at a time: the node that holds the lease on the cursor in the log
(`tertulia.store.notifications`). Pending notifications are stored together with the cursor, and are
deleted in the transaction that records what is sent. So nothing is lost or sent twice, whichever
node stops.
"""

import asyncio
import logging
import math
import secrets
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from msgspec import Struct
from pyroaring import BitMap

from tertulia.delivery.presence import Presence
from tertulia.domain.notifications import quiet, rules
from tertulia.domain.notifications.rules import (
    ACTIVE_SECONDS,
    MAX_ACTIVE_SECONDS,
    RECHECK_SECONDS,
    NotificationMethod,
)
from tertulia.log.log import Log
from tertulia.model.changes import Entry, MessageEdited, MessageSent
from tertulia.model.errors import Unavailable
from tertulia.model.messages import Flag, Message
from tertulia.service.messages.flags import is_read
from tertulia.service.notifications.conversations import (
    Notification,
    channel_of_key,
    conversation_key,
)
from tertulia.store import log_entries, message_marks, queries
from tertulia.store import notifications as notifications
from tertulia.store.database import Connection, DatabaseError
from tertulia.store.notifications import LeaseLost, PendingNotification

IDLE_SECONDS: Final = 1.0
"""The interval, in seconds, of a channel that has nothing urgent to send."""


class NotificationChannel(Protocol):
    """A notification method, such as email."""

    @property
    def method(self) -> NotificationMethod: ...

    @property
    def interval(self) -> float:
        """The seconds between two rounds. Messages that arrive in between are handled in one
        transaction."""

    @property
    def has_recipients(self) -> bool:
        """Whether this channel can reach anyone. If not, the notifier skips it."""

    def reachable(self, people: BitMap) -> BitMap:
        """Return the people whom this channel can reach."""

    def enqueue(
        self, notifications: Sequence[Notification], now: float
    ) -> Callable[[Connection], None]:
        """Return a function that queues the notifications, for the transaction that deletes the
        pending ones."""

    def enqueued(self) -> None:
        """Called when the queued notifications are on disk."""


logger = logging.getLogger("tertulia.notices")

LEASE_SECONDS: Final = 30.0
"""The duration of the lease in seconds. If a node is lost, another one takes over after this
time."""
RENEW_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 5.0
"""The longest time, in seconds, until a node tries again to acquire the lease."""
RECENT: Final = 1000
"""The number of entries about messages that are kept in memory. Older ones are read from the
log."""
PAGE: Final = 200
"""The number of entries per step."""
BEHIND: Final = 1000
"""The number of entries without pending notifications after which the cursor is stored."""
BATCH_SIZE: Final = 20
"""The number of due rows that are read at a time."""
PEOPLE_BATCH: Final = 500
"""The most people per transaction."""
PAIR_BATCH: Final = 1000
"""The number of pairs of a person and a message that are checked before the event loop does other
work."""
MAX_AGE_SECONDS: Final = 86400.0
"""Messages that are older than this many seconds cause no notifications: the notifier was turned
off when they were sent."""
LONGEST_SLEEP: Final = 60.0
ROUND_SECONDS: Final = 60.0
"""The longest round in seconds. A round ends between two steps, while the supervisor would
interrupt it anywhere and count a failure."""

_Pending = list[PendingNotification]
_Loaded = tuple[list[Message], dict[int, dict[int, Flag]], dict[int, message_marks.MessageMarks]]
"""Messages, the flags on each, and the marks of each person."""


class _Postponed(Struct, frozen=True):
    """People to check again later."""

    people: BitMap
    due_at: float | None
    """When to check again; None drops the notification."""
    gives_up_at: float | None = None
    """None keeps the previous time."""

    def pending(self, before: PendingNotification, people: BitMap, now: float) -> _Pending:
        """Return the row that replaces `before` for these people, if any."""
        gives_up_at = before.gives_up_at if self.gives_up_at is None else self.gives_up_at
        if self.due_at is None or gives_up_at <= now:
            return []
        return [
            PendingNotification(
                message_id=before.message_id,
                due_at=self.due_at,
                gives_up_at=gives_up_at,
                conversation=before.conversation,
                people=people,
            )
        ]


class Notifier:
    """The notifier of one node."""

    def __init__(
        self, log: Log, presence: Presence, channels: Sequence[NotificationChannel]
    ) -> None:
        self._log = log
        self._presence = presence
        self._channels = channels
        self._name = secrets.token_hex(8)
        self._holds_until = 0.0
        """The time when the lease ends, by `Log.elapsed`; 0 without a lease."""
        self._began_at = -math.inf
        """The time when the last round began, by `Log.elapsed`."""
        self._turn = 0
        """The number of times that this node has acquired the lease."""
        self._asks_at = 0.0
        """The time of the next attempt to acquire the lease, by `Log.elapsed`."""
        self._seen = 0
        """The last entry that was processed, while this node has the lease."""
        self._moved_to = 0
        """The stored position of the cursor."""
        self._recent: deque[Entry] = deque()
        self._complete_after = log.durable
        """All entries about messages from here up to `_heard` are in `_recent`."""
        self._heard = log.durable
        log.subscribers.followers.append(self._remember)
        log.subscribers.on_reload.append(self._forget)
        log.subscribers.on_history.append(self._release)

    # Committed entries

    def _remember(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if isinstance(entry.change, MessageSent | MessageEdited):
                self._recent.append(entry)
        while len(self._recent) > RECENT:
            self._complete_after = self._recent.popleft().seq
        self._heard = entries[-1].seq

    def _forget(self) -> None:
        self._recent.clear()
        self._complete_after = self._heard = self._log.durable

    def _release(self) -> None:
        self._holds_until = (
            0.0  # The database has the position up to which that history was processed.
        )

    # Rounds

    async def once_per_interval(self) -> float:
        """Run a round, unless the last one began less than the channels' shortest interval ago.
        Return the seconds until the next one."""
        wait = (
            self._began_at
            + min(channel.interval for channel in self._channels)
            - self._log.elapsed()
        )
        if wait > 0:
            return wait
        self._began_at = self._log.elapsed()
        return await self.once()

    async def once(self) -> float:
        """Process new entries and send what is due. Return the seconds until the next round."""
        if self._log.state.is_closed:
            return LONGEST_SLEEP
        wait = await self._acquire()
        if wait:
            return wait
        until = self._log.elapsed() + ROUND_SECONDS
        try:
            await self._look(until)
            await self._notify(until)
        except LeaseLost:  # This node was stopped for too long.
            self._holds_until = 0.0
            return 0.0
        if self._seen < self._heard:
            return 0.0
        methods = [channel.method.value for channel in self._channels]
        due = await self._log.store.read(notifications.next_due, methods)
        pause = LONGEST_SLEEP if due is None else max(due - self._log.clock(), 0.0)
        return min(pause, RENEW_SECONDS if self._log.store.is_shared else LONGEST_SLEEP)

    async def close(self) -> None:
        """Release the lease."""
        if self._holds_until:
            self._holds_until = 0.0
            seen = self._seen
            await self._log.store.tend_list(lambda c: notifications.release(c, self._name, seen))

    async def _acquire(self) -> float:
        """Acquire or renew the lease. Return 0 on success, or the seconds to wait if another node
        has it."""
        log, elapsed = self._log, self._log.elapsed()
        if self._holds_until > elapsed + LEASE_SECONDS - RENEW_SECONDS:
            return 0.0
        if elapsed < self._asks_at:
            return self._asks_at - elapsed
        now = log.clock()
        # A database that isn't shared has no other node: any previous holder is gone.
        since = now if log.store.is_shared else float("inf")
        lease = await log.store.tend_list(
            lambda c: notifications.acquire(c, self._name, since, now + LEASE_SECONDS)
        )
        if lease.other_until:
            self._holds_until = 0.0
            wait = min(max(lease.other_until - now, 0.5), RETRY_SECONDS)
            self._asks_at = elapsed + wait
            return wait
        if not (lease.goes_on and self._holds_until):
            self._turn += 1
            self._seen = self._moved_to = lease.seq
        self._holds_until = elapsed + LEASE_SECONDS
        return 0.0

    # Processing the log

    async def _look(self, end: float) -> None:
        """Process new entries until `end` (by `Log.elapsed`)."""
        while self._seen < self._heard:
            if await self._acquire():
                raise LeaseLost
            if self._seen >= self._complete_after:
                until = self._heard
                entries = [entry for entry in self._recent if entry.seq > self._seen][:PAGE]
                if len(entries) == PAGE:
                    until = entries[-1].seq
            else:
                until = min(self._complete_after, self._heard)
                entries = await self._log.store.read(log_entries.entries, self._seen, PAGE, until)
                until = entries[-1].seq if len(entries) == PAGE else until
            pending = {
                channel.method.value: await self._pending(channel, entries)
                for channel in self._channels
            }
            if any(pending.values()) or until - self._moved_to >= BEHIND:
                await self._log.store.write(partial(self._write, pending=pending, until=until))
                self._moved_to = until
            self._seen = until
            if self._log.elapsed() >= end:
                return

    def _write(self, connection: Connection, pending: Mapping[str, _Pending], until: int) -> None:
        notifications.advance(connection, self._name, self._moved_to, until)
        for method, rows in pending.items():
            notifications.add(connection, method, rows)

    async def _pending(self, channel: NotificationChannel, entries: Iterable[Entry]) -> _Pending:
        pending: _Pending = []
        if not channel.has_recipients:
            return pending
        state, method = self._log.state, channel.method
        oldest = self._log.clock() - MAX_AGE_SECONDS
        for entry in entries:
            if entry.at < oldest:
                continue
            try:
                concerning = rules.recipients_of_change(state, entry.change, method)
            except Exception:  # Other entries are not affected.
                logger.exception("could not determine whom entry %d concerns", entry.seq)
                continue
            if concerning is None:
                continue
            message = concerning.message
            reached = channel.reachable(concerning.people)
            for delay, people in rules.by_delay(state, reached, method).items():
                pending.append(
                    PendingNotification(
                        message_id=message.id,
                        due_at=entry.at + delay,
                        gives_up_at=entry.at + delay + MAX_ACTIVE_SECONDS,
                        conversation=conversation_key(message),
                        people=people,
                    )
                )
            await asyncio.sleep(0)
            state = self._log.state
        return pending

    # Notifying

    async def _notify(self, end: float) -> None:
        """Send what is due until `end` (by `Log.elapsed`)."""
        turn = self._turn
        for channel in self._channels:
            while True:
                now = self._log.clock()
                rows = await self._log.store.read(
                    notifications.due, channel.method.value, now, BATCH_SIZE
                )
                if not rows:
                    break
                by_conversation: dict[str, _Pending] = defaultdict(list)
                for row in rows:
                    by_conversation[row.conversation].append(row)
                for some in by_conversation.values():
                    # If another node had the lease in between, the rows are outdated.
                    if await self._acquire() or self._turn != turn:
                        raise LeaseLost
                    await self._notify_of_conversation(channel, some, now)
                if self._log.elapsed() >= end:
                    return

    async def _notify_of_conversation(
        self, channel: NotificationChannel, rows: _Pending, now: float
    ) -> None:
        due = BitMap.union(BitMap(), *(row.people for row in rows if row.due_at <= now))
        waiting = list(due)
        for begin in range(0, len(waiting), PEOPLE_BATCH):
            people = BitMap(waiting[begin : begin + PEOPLE_BATCH])
            later = self._postponed(channel, rows[0].conversation, people, now)
            away = people - BitMap.union(BitMap(), *(postponed.people for postponed in later))
            try:
                ready = await self._notifications(channel, rows, away)
                write = channel.enqueue(ready, now)
            except (Unavailable, DatabaseError):
                raise
            except Exception:  # Other conversations are not affected.
                logger.exception("could not notify people of a conversation")
                again = [_Postponed(people, now + RECHECK_SECONDS)]
                await self._write_outcome(channel, rows, BitMap(), again, lambda _: None, now)
                continue
            await self._write_outcome(channel, rows, away, later, write, now)
            if ready:
                channel.enqueued()

    def _postponed(
        self, channel: NotificationChannel, conversation: str, people: BitMap, now: float
    ) -> list[_Postponed]:
        """Return people who are in quiet hours or active in a client, by when to check them
        again."""
        channel_id = channel_of_key(conversation)
        by_time: dict[float | None, BitMap] = defaultdict(BitMap)
        present = BitMap()
        for user_id in people:
            until = quiet.quiet_until(self._log.state, user_id, now, channel_id)
            if until is not None:
                by_time[rules.next_quiet_check(channel.method, now, until)].add(user_id)
            elif (
                (latest := self._presence.of(user_id)) is not None
                and now - latest.active_at < ACTIVE_SECONDS
                and rules.only_while_away(self._log.state, user_id, channel.method)
            ):
                present.add(user_id)
        return [
            _Postponed(present, now + RECHECK_SECONDS),
            *(
                _Postponed(some, at, None if at is None else at + MAX_ACTIVE_SECONDS)
                for at, some in by_time.items()
            ),
        ]

    async def _write_outcome(
        self,
        channel: NotificationChannel,
        rows: _Pending,
        away: BitMap,
        later: Sequence[_Postponed],
        enqueue: Callable[[Connection], None],
        now: float,
    ) -> None:
        """Delete the pending notifications of `away`, queue their notifications, and postpone the
        others."""

        def write(connection: Connection) -> None:
            notifications.require_lease(connection, self._name)
            again: list[PendingNotification] = []
            for row in rows:
                if gone := row.people & away:
                    notifications.remove_people(connection, channel.method.value, row, gone)
                if row.due_at > now:
                    continue
                for postponed in later:
                    if waiting := row.people & postponed.people:
                        notifications.remove_people(connection, channel.method.value, row, waiting)
                        again += postponed.pending(row, waiting, now)
            notifications.add(connection, channel.method.value, again)
            enqueue(connection)

        await self._log.store.write(write)

    async def _notifications(
        self, channel: NotificationChannel, rows: _Pending, away: BitMap
    ) -> list[Notification]:
        """Return the notifications for these people: messages that they can read now, haven't read,
        and want to be notified about."""
        named: dict[int, BitMap] = defaultdict(BitMap)
        for row in rows:
            named[row.message_id] |= row.people & away
        ids = sorted(message_id for message_id, people in named.items() if people)
        if not ids:
            return []

        def load(connection: Connection) -> _Loaded:
            flags, marks = message_marks.relations_of_people(connection, away, ids)
            return queries.messages(connection, ids), flags, marks

        messages, flags, marks = await self._log.store.read(load)
        unread: dict[tuple[int, tuple[int | None, str, int | None]], list[int]] = defaultdict(list)
        names = {message.conversation: conversation_key(message) for message in messages}
        looked_at = 0
        for message in messages:
            await asyncio.sleep(0)  # There may be hundreds of messages, each with as many flags.
            state = self._log.state
            recipients = rules.recipients(state, message, flags[message.id], channel.method)
            concerned = rules.all_recipients(recipients)
            for user_id in named[message.id] & concerned:
                relation = marks[user_id].relation(message.id)
                if rules.may_notify(state, user_id, message) and not is_read(
                    state, user_id, message, relation
                ):
                    unread[user_id, message.conversation].append(message.id)
                looked_at += 1
                if looked_at % PAIR_BATCH == 0:
                    await asyncio.sleep(0)
        return [
            Notification(user_id=user_id, conversation=names[key], message_ids=tuple(message_ids))
            for (user_id, key), message_ids in unread.items()
        ]
