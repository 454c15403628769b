"""Caches for reading messages: the organization's newest messages, and the scope that each reader
received."""

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from tertulia.domain.messages import scopes
from tertulia.log.log import Log
from tertulia.model.errors import Conflict
from tertulia.model.messages import Message
from tertulia.model.narrow import Scope
from tertulia.model.tokenizer import fold_texts
from tertulia.model.users import User
from tertulia.state.messages import entries_of, message_in
from tertulia.state.state import State
from tertulia.store import message_details, queries
from tertulia.store.database import Connection, TimeLimitReached
from tertulia.store.message_details import NO_DETAILS, MessageDetails
from tertulia.store.readers import Requester, reading_for
from tertulia.store.store import READ_SECONDS

MAX_MESSAGES: Final = 1000
MAX_CHARACTERS: Final = 1_000_000
"""The most characters of all contents and HTML, including those of edits."""
_DETAIL_CHARACTERS: Final = 100
"""Characters that are counted for each reaction, submessage, and edit."""
_SPARE: Final = 100
"""Messages that are kept beyond the limit, so that many are dropped at a time."""

_ASKER: Final = Requester("newest messages")
"""Reads count for the server, not for the reader, since others wait for the result of one request's
read."""

_Messages = Sequence[Message]
_Details = Mapping[int, MessageDetails]


class RecentMessage(Struct):
    """A message with its details."""

    message: Message
    details: MessageDetails
    words: tuple[str, ...] | None = None
    """The folded content and topic, once they were searched."""

    def folded(self) -> tuple[str, ...]:
        if self.words is None:
            self.words = fold_texts((self.message.content, self.message.topic))
        return self.words

    @property
    def size(self) -> int:
        """Size in characters."""
        details = self.details
        texts = [self.message.content, self.message.rendered]
        texts += [part.content for part in details.submessages]
        for edit in details.edits:
            texts += (edit.was_content or "", edit.was_rendered or "")
        parts = len(details.reactions) + len(details.submessages) + len(details.edits)
        return sum(map(len, texts)) + parts * _DETAIL_CHARACTERS


class _Texts(Struct):
    """All messages joined in one text, in which words are found quickly."""

    text: str
    starts: list[int]
    """Offset of each message."""
    messages: list[RecentMessage]
    """Newest first, because `rfind` takes quadratic time."""


class RecentMessages:
    """The newest messages of the organization.

    They are read from the database, and read again after an entry of any node has changed them
    (`state.messages`). Permissions are checked for each reader when they are used.
    """

    def __init__(self, messages: int = MAX_MESSAGES, characters: int = MAX_CHARACTERS) -> None:
        self._most, self._most_characters = messages, characters
        self._lock = asyncio.Lock()
        self._forget_all(None)

    def _forget_all(self, state: State | None) -> None:
        self._state = state
        self._seq = 0 if state is None else state.seq
        """The entry up to which changes are in `_stale`."""
        self._kept: dict[int, RecentMessage] = {}
        """Messages by ascending ID."""
        self._texts: _Texts | None = None
        """Created by the first search; None after changes."""
        self._stale: set[int] = set()
        """Messages that must be read again."""
        self._characters = 0
        self._newest: int | None = None
        """The last ID that was read; None before the first read."""
        self.first = 0
        """All messages from this ID on are cached; 0 if these are all."""

    def __len__(self) -> int:
        return len(self._kept)

    async def bring_up_to_date(self, log: Log) -> None:
        """Read new and changed messages. Raise DatabaseUnavailable."""
        last = log.state.last_message_id
        if self._has_all(log.state, last):
            return
        try:
            async with asyncio.timeout(READ_SECONDS):
                await self._lock.acquire()
        except TimeoutError:
            raise TimeLimitReached("The database is too busy. Try again.") from None
        try:
            if not self._has_all(log.state, last):
                await self._read(log)
        finally:
            self._lock.release()

    def newest_first(self, state: State, word: str = "") -> Iterator[tuple[int, RecentMessage]]:
        """Yield the messages, newest first, with the number of newer ones. With a `word`, yield
        only messages that contain it.

        Don't await while iterating. Messages sent since `bring_up_to_date` may be missing. Raise
        Conflict if one has changed since.
        """
        self._look(state)
        if self._newest is None:
            raise Conflict
        if word:
            yield from self._with_word(word)
            return
        for newer, (message_id, recent) in enumerate(reversed(self._kept.items())):
            if message_id in self._stale:
                raise Conflict
            yield newer, recent

    def _with_word(self, word: str) -> Iterator[tuple[int, RecentMessage]]:
        if self._texts is None:
            kept = list(reversed(self._kept.values()))
            texts = ["\n".join((*recent.folded(), "")) for recent in kept]
            self._texts = _Texts("".join(texts), [0, *accumulate(map(len, texts))], kept)
        text, starts, messages = self._texts.text, self._texts.starts, self._texts.messages
        newest_stale = max(self._stale, default=0)
        position = 0
        while (position := text.find(word, position)) >= 0:
            index = bisect_right(starts, position) - 1
            if messages[index].message.id <= newest_stale:
                break
            yield index, messages[index]
            position = starts[index + 1]
        if newest_stale:
            raise Conflict

    def _has_all(self, state: State, last: int) -> bool:
        """Whether the cache is current up to that message."""
        self._look(state)
        return self._newest is not None and self._newest >= last and not self._stale

    def _look(self, state: State) -> None:
        """Mark messages that have changed since the last call as stale."""
        if state is not self._state:
            self._forget_all(state)
        if state.seq == self._seq:
            return
        things = state.recent_writes.after(self._seq)
        if things is None:
            self._forget_all(state)
            return
        self._mark(things)
        self._seq = state.seq

    async def _read(self, log: Log) -> None:
        """Read stale and new messages."""
        state, kept = log.state, self._kept
        seq, last = state.seq, state.last_message_id
        newest, stale = self._newest, sorted(self._stale)
        await log.durability.settled()

        def look(connection: Connection) -> tuple[_Messages, _Messages, bool, _Details]:
            again = queries.messages(connection, stale) if stale else []
            new: list[Message] = []
            is_all = True
            if newest is None or newest < last:
                new, is_all = queries.newest_messages(
                    connection, newest or 0, last, self._most, self._most_characters
                )
            ids = [message.id for message in (*again, *new)]
            return again, new, is_all, message_details.details_of(connection, ids)

        with reading_for(_ASKER):
            again, new, is_all, details = await log.store.read(look)
        written = state.recent_writes.after(seq)
        if self._kept is not kept:
            return  # Everything was dropped in the meantime.
        if written is None or (newest is not None and not is_all):
            self._forget_all(state)  # There may be a gap.
            return
        self._texts = None
        for message_id in set(stale) - {message.id for message in again}:
            self._characters -= self._kept.pop(message_id).size
        self._put(again, details)
        self._put(new, details)
        self._stale.difference_update(stale)
        self._mark(written)
        if newest is None:
            self.first = 0 if is_all else new[0].id if new else last + 1
        self._newest = last
        self._make_room()

    def _mark(self, things: Iterable[Hashable]) -> None:
        """Mark the messages that these writes changed as stale."""
        written = set(things)
        self._stale.update(
            message_id for message_id in map(message_in, written) if message_id in self._kept
        )
        if any(isinstance(thing, tuple) and thing[0] == "renamed" for thing in written):
            self._stale.update(
                message_id
                for message_id, recent in self._kept.items()
                if not written.isdisjoint(entries_of(recent.message))
            )

    def _put(self, messages: _Messages, details: _Details) -> None:
        for message in messages:
            if before := self._kept.get(message.id):
                self._characters -= before.size
            recent = RecentMessage(message, details.get(message.id, NO_DETAILS))
            self._kept[message.id] = recent
            self._characters += recent.size

    def _make_room(self) -> None:
        """Drop the oldest messages beyond the limits."""
        if len(self._kept) <= self._most + _SPARE and self._characters <= self._most_characters:
            return
        for message_id in list(self._kept):
            if len(self._kept) <= self._most and self._characters <= self._most_characters:
                break
            self._characters -= self._kept.pop(message_id).size
            self._stale.discard(message_id)
            self.first = message_id + 1


MAX_CHANNELS: Final = 50_000
"""The most channels in all cached scopes. Each takes a few hundred bytes."""

_Versions = tuple[int, int, int]


class ReceivedScopes:
    """The scopes that recent readers received. Each is assembled from all channels that the reader
    was ever in."""

    def __init__(self, most: int = MAX_CHANNELS) -> None:
        self._most = most
        self._kept: OrderedDict[int, tuple[_Versions, Scope]] = OrderedDict()
        self._channels = 0

    def of(self, state: State, user: User) -> Scope:
        """Return the user's scope, as `scopes.received_scope`."""
        if state.users[user.id] is not user:
            return scopes.received_scope(
                state, user
            )  # The cached record of the account is outdated.
        versions = (
            state.subscriptions.version,
            state.channels.version,
            state.memberships.version,
        )
        kept = self._kept.get(user.id)
        if (
            kept is not None
            and kept[0] == versions
            and kept[1].direct_ids == state.directs.of_user[user.id]
        ):
            self._kept.move_to_end(user.id)
            return kept[1]
        scope = scopes.received_scope(state, user)
        self._drop(user.id)
        self._kept[user.id] = versions, scope
        self._channels += _size_of(scope)
        while self._channels > self._most:
            self._drop(next(iter(self._kept)))
        return scope

    def __len__(self) -> int:
        return len(self._kept)

    def _drop(self, user_id: int) -> None:
        if user_id in self._kept:
            self._channels -= _size_of(self._kept.pop(user_id)[1])


def _size_of(scope: Scope) -> int:
    return len(scope.spans) + len(scope.recorded) + len(scope.direct_ids) + 1
