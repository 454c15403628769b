"""Notices of one node: it looks through the log for what concerns people, keeps that in the
database until its time has come, and hands it to the means of telling.

In the meantime people read most of it, and are not notified. Every node can do this, one at a time:
the one that holds the cursor in the log (`tertulia.store.notifications`). What was found is stored
with the position of the cursor, and what is sent is recorded in the transaction that deletes the
pending notifications. So nothing is lost or sent twice, whichever node stops when.
"""

import asyncio
import logging
import secrets
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from pyroaring import BitMap

from tertulia.delivery.presence import Presence
from tertulia.domain.notifications import quiet, rules
from tertulia.domain.notifications.rules import HERE_LONGEST, HERE_SECONDS, LOOK_AGAIN_SECONDS
from tertulia.log.log import Log
from tertulia.model.changes import Entry, MessageEdited, MessageSent
from tertulia.model.errors import Unavailable
from tertulia.model.messages import Flag, Message
from tertulia.service.messages.flags import is_read
from tertulia.service.notifications.channels import Means, Told
from tertulia.store import log_entries, notifications, queries
from tertulia.store.database import Connection, DatabaseError
from tertulia.store.notifications import NotHeld, Notice

logger = logging.getLogger("tertulia.notices")

HELD_SECONDS: Final = 30.0
"""How long the cursor is held without saying so again: when a node is lost, another one goes on
after that."""
RENEWED_SECONDS: Final = 10.0
ASKED_SECONDS: Final = 5.0
"""After so long a node asks again whether another one still holds the cursor."""
RECENT: Final = 1000
"""Entries about messages that are remembered; older ones are read from the log."""
PAGE: Final = 200
"""Entries that are looked through in one step."""
BEHIND: Final = 1000
"""Entries without any notice after which it is written down how far the look has come."""
AT_ONCE: Final = 20
"""Notices that are due, of which the conversations are looked at in one step."""
PEOPLE_AT_ONCE: Final = 500
"""People who are looked at in one step, and told in one transaction."""
PAIRS_AT_ONCE: Final = 1000
"""People times messages that are looked at before other work of the event loop has its turn."""
OLDEST_SECONDS: Final = 86400.0
"""Of what was written longer ago when it is looked at, nobody is told: telling was turned off then.
"""
LONGEST_SLEEP: Final = 60.0
ROUND_SECONDS: Final = 60.0
"""After so long a round ends between two steps. The supervisor would end it anywhere, and call that
a failure."""

_Rows = list[Notice]


class _Found(Struct, frozen=True):
    """What the database says of messages and people."""

    messages: list[Message]
    flags: Mapping[int, Mapping[int, Flag]]
    marks: Mapping[int, queries.Marks]


class _Later(Struct, frozen=True):
    """People who are not told now."""

    people: BitMap
    due_at: float | None
    """When they are looked at again; None where they are not told any more."""
    gives_up_at: float | None = None
    """None for as before."""

    def notices(self, before: Notice, people: BitMap, now: float) -> _Rows:
        """What takes the place of a notice, for these of its people."""
        gives_up_at = before.gives_up_at if self.gives_up_at is None else self.gives_up_at
        if self.due_at is None or gives_up_at <= now:
            return []
        return [
            Notice(
                message_id=before.message_id,
                due_at=self.due_at,
                gives_up_at=gives_up_at,
                conversation=before.conversation,
                people=people,
            )
        ]


class Notices:
    """One node's."""

    def __init__(self, log: Log, presence: Presence, means: Sequence[Means]) -> None:
        self._log = log
        self._presence = presence
        self._means = means
        self._name = secrets.token_hex(8)
        self._holds_until = 0.0
        """By `Log.elapsed`; another one does where that is over."""
        self._turn = 0
        """How often it began to hold it."""
        self._asks_at = 0.0
        """When it asks again whether another one still does, by `Log.elapsed`."""
        self._seen = 0
        """The entry up to which this node has looked, while it holds the cursor."""
        self._moved_to = 0
        """How far that is written down."""
        self._recent: deque[Entry] = deque()
        self._complete_after = log.durable
        """All entries about messages after that one, up to `_heard`, are in memory."""
        self._heard = log.durable
        log.follow(self._follow)
        log.on_reload(self._forget)
        log.on_history(self._begin_anew)

    # What is committed

    def _follow(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if isinstance(entry.change, MessageSent | MessageEdited):
                self._recent.append(entry)
        while len(self._recent) > RECENT:
            self._complete_after = self._recent.popleft().seq
        self._heard = entries[-1].seq

    def _forget(self) -> None:
        self._recent.clear()
        self._complete_after = self._heard = self._log.durable

    def _begin_anew(self) -> None:
        self._holds_until = 0.0  # How far that history was looked through is in the database.

    # Rounds

    async def once(self) -> float:
        """Look through what is new, and tell what is due. Returns the seconds until something may
        be to be done again."""
        if self._log.state.is_closed:
            return LONGEST_SLEEP
        wait = await self._held_by_another()
        if wait:
            return wait
        until = self._log.elapsed() + ROUND_SECONDS
        try:
            await self._look(until)
            await self._tell(until)
        except NotHeld:  # This node stood still for too long.
            self._holds_until = 0.0
            return 0.0
        if self._seen < self._heard:
            return 0.0
        ways = [one.way.value for one in self._means]
        due = await self._log.store.read(notifications.next_due, ways)
        pause = LONGEST_SLEEP if due is None else max(due - self._log.clock(), 0.0)
        return min(pause, RENEWED_SECONDS if self._log.store.is_shared else LONGEST_SLEEP)

    async def close(self) -> None:
        """Let another node go on at once."""
        if self._holds_until:
            self._holds_until = 0.0
            seen = self._seen
            await self._log.store.tend_list(lambda c: notifications.let_go(c, self._name, seen))

    async def _held_by_another(self) -> float:
        """Hold the cursor, or go on holding it. Seconds until it may be tried again, where another
        node does; 0 where this one does."""
        log, elapsed = self._log, self._log.elapsed()
        if self._holds_until > elapsed + HELD_SECONDS - RENEWED_SECONDS:
            return 0.0
        if elapsed < self._asks_at:
            return self._asks_at - elapsed
        now = log.clock()
        # Nobody else serves from a database that is not shared: who held it before is gone.
        since = now if log.store.is_shared else float("inf")
        found = await log.store.tend_list(
            lambda c: notifications.hold(c, self._name, since, now + HELD_SECONDS)
        )
        if found.other_until:
            self._holds_until = 0.0
            wait = min(max(found.other_until - now, 0.5), ASKED_SECONDS)
            self._asks_at = elapsed + wait
            return wait
        if not (found.goes_on and self._holds_until):
            self._turn += 1
            self._seen = self._moved_to = found.seq
        self._holds_until = elapsed + HELD_SECONDS
        return 0.0

    # Looking through the log

    async def _look(self, end: float) -> None:
        """Look through what was committed since, up to some time by `Log.elapsed`."""
        while self._seen < self._heard:
            if await self._held_by_another():
                raise NotHeld
            if self._seen >= self._complete_after:
                until = self._heard
                entries = [entry for entry in self._recent if entry.seq > self._seen][:PAGE]
                if len(entries) == PAGE:
                    until = entries[-1].seq
            else:
                until = min(self._complete_after, self._heard)
                entries = await self._log.store.read(log_entries.entries, self._seen, PAGE, until)
                until = entries[-1].seq if len(entries) == PAGE else until
            found = {one.way.value: await self._notices(one, entries) for one in self._means}
            if any(found.values()) or until - self._moved_to >= BEHIND:
                await self._log.store.write(partial(self._write, found=found, until=until))
                self._moved_to = until
            self._seen = until
            if self._log.elapsed() >= end:
                return

    def _write(self, connection: Connection, found: Mapping[str, _Rows], until: int) -> None:
        notifications.move(connection, self._name, self._moved_to, until)
        for way, rows in found.items():
            notifications.put(connection, way, rows)

    async def _notices(self, means: Means, entries: Iterable[Entry]) -> _Rows:
        found: _Rows = []
        if not means.reaches_somebody:
            return found
        state, way = self._log.state, means.way
        oldest = self._log.clock() - OLDEST_SECONDS
        for entry in entries:
            if entry.at < oldest:
                continue
            try:
                concerning = rules.concerning(state, entry.change, way)
            except Exception:  # The others are told all the same.
                logger.exception("entry %d: it is not known whom it concerns", entry.seq)
                continue
            if concerning is None:
                continue
            message = concerning.message
            reached = means.reached(concerning.people)
            for delay, people in rules.by_delay(state, reached, way).items():
                found.append(
                    Notice(
                        message_id=message.id,
                        due_at=entry.at + delay,
                        gives_up_at=entry.at + delay + HERE_LONGEST,
                        conversation=conversation_name(message),
                        people=people,
                    )
                )
            await asyncio.sleep(0)
            state = self._log.state
        return found

    # Telling

    async def _tell(self, end: float) -> None:
        """Tell everybody whose time has come, or look again at them later; up to some time by
        `Log.elapsed`."""
        turn = self._turn
        for means in self._means:
            while True:
                now = self._log.clock()
                rows = await self._log.store.read(notifications.due, means.way.value, now, AT_ONCE)
                if not rows:
                    break
                by_conversation: dict[str, _Rows] = defaultdict(list)
                for row in rows:
                    by_conversation[row.conversation].append(row)
                for some in by_conversation.values():
                    # (What was read is over where another one has held it meanwhile.)
                    if await self._held_by_another() or self._turn != turn:
                        raise NotHeld
                    await self._tell_of_conversation(means, some, now)
                if self._log.elapsed() >= end:
                    return

    async def _tell_of_conversation(self, means: Means, rows: _Rows, now: float) -> None:
        due = BitMap.union(BitMap(), *(row.people for row in rows if row.due_at <= now))
        waiting = list(due)
        for begin in range(0, len(waiting), PEOPLE_AT_ONCE):
            people = BitMap(waiting[begin : begin + PEOPLE_AT_ONCE])
            later = self._not_now(means, people, now)
            away = people - BitMap.union(BitMap(), *(one.people for one in later))
            try:
                told = await self._to_be_told(means, rows, away)
                records = means.records(told, now)
            except (Unavailable, DatabaseError):
                raise
            except Exception:  # The other conversations do not wait for this one.
                logger.exception("people could not be told of a conversation")
                again = [_Later(people, now + LOOK_AGAIN_SECONDS)]
                await self._write_told(means, rows, BitMap(), again, lambda _: None, now)
                continue
            await self._write_told(means, rows, away, later, records, now)
            if told:
                means.recorded()

    def _not_now(self, means: Means, people: BitMap, now: float) -> list[_Later]:
        """Those of the people who are left in peace, or here, and when they are looked at again."""
        by_time: dict[float | None, BitMap] = defaultdict(BitMap)
        here = BitMap()
        for user_id in people:
            until = quiet.quiet_until(self._log.state, user_id, now)
            if until is not None:
                by_time[rules.quiet_look(means.way, now, until)].add(user_id)
            elif self._is_here(means, user_id, now):
                here.add(user_id)
        return [
            _Later(here, now + LOOK_AGAIN_SECONDS),
            *(
                _Later(some, at, None if at is None else at + HERE_LONGEST)
                for at, some in by_time.items()
            ),
        ]

    async def _write_told(
        self,
        means: Means,
        rows: _Rows,
        away: BitMap,
        later: Sequence[_Later],
        records: Callable[[Connection], None],
        now: float,
    ) -> None:
        """Take the notices away of those who are told, with what tells them in their place; and
        look again later at the others."""

        def write(connection: Connection) -> None:
            notifications.require_held(connection, self._name)
            again: list[Notice] = []
            for row in rows:
                if gone := row.people & away:
                    notifications.take_out(connection, means.way.value, row, gone)
                if row.due_at > now:
                    continue
                for one in later:
                    if waits := row.people & one.people:
                        notifications.take_out(connection, means.way.value, row, waits)
                        again += one.notices(row, waits, now)
            notifications.put(connection, means.way.value, again)
            records(connection)

        await self._log.store.write(write)

    def _is_here(self, means: Means, user_id: int, now: float) -> bool:
        latest = self._presence.of(user_id)
        return (
            latest is not None
            and now - latest.active_at < HERE_SECONDS
            and rules.waits_for_absence(self._log.state, user_id, means.way)
        )

    async def _to_be_told(self, means: Means, rows: _Rows, away: BitMap) -> list[Told]:
        """Of what the people are to be told: what they have not read, may read, and want to be
        told of, as of now."""
        named: dict[int, BitMap] = defaultdict(BitMap)
        for row in rows:
            named[row.message_id] |= row.people & away
        ids = sorted(message_id for message_id, people in named.items() if people)
        if not ids:
            return []
        found = await self._log.store.read(_found, ids, away)
        told: dict[tuple[int, tuple[int | None, str, int | None]], list[int]] = defaultdict(list)
        names = {one.conversation: conversation_name(one) for one in found.messages}
        looked_at = 0
        for message in found.messages:
            await asyncio.sleep(0)  # There may be hundreds of them, each with as many flags.
            state = self._log.state
            flags = found.flags[message.id]
            concerned = rules.everybody(rules.concerned(state, message, flags, means.way))
            for user_id in named[message.id] & concerned:
                relation = found.marks[user_id].relation(message.id)
                if rules.may_be_told(state, user_id, message) and not is_read(
                    state, user_id, message, relation
                ):
                    told[user_id, message.conversation].append(message.id)
                looked_at += 1
                if looked_at % PAIRS_AT_ONCE == 0:
                    await asyncio.sleep(0)
        return [
            Told(user_id=user_id, conversation=names[key], message_ids=tuple(message_ids))
            for (user_id, key), message_ids in told.items()
        ]


def conversation_name(message: Message) -> str:
    """What the messages of one conversation have in common, as a text."""
    channel_id, key, direct_id = message.conversation
    return f"d{direct_id}" if direct_id is not None else f"c{channel_id}/{key}"


def _found(connection: Connection, ids: Sequence[int], people: BitMap) -> _Found:
    flags, marks = queries.relations_of_people(connection, people, ids)
    return _Found(queries.messages(connection, ids), flags, marks)
