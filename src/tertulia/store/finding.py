"""Reading messages: a page of those that a search finds.

What the database can tell by an index is asked of it (`conditions`). Text is looked for in two
ways: by looking at the messages themselves, newest first, which soon finds a page of what is
common; and by the database's search, which soon finds all that is rare. Which way is the shorter
one is seen on the way.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace
from pyroaring import BitMap

from tertulia.model import narrow
from tertulia.model.messages import Message
from tertulia.model.narrow import Scope, Search, Term
from tertulia.model.tokenizer import Phrase, folded, folded_say
from tertulia.store.codec import MESSAGE_COLUMNS, message_of
from tertulia.store.conditions import Clause, compiled, seen
from tertulia.store.database import Connection

_FIRST_STRETCH = 1000
"""Unread messages that are looked at first."""
_LARGEST = 2**32 - 1
"""The largest number of a bitmap."""
_FIRST_LOOK, _LONGEST_LOOK = 250, 10_000
"""Messages that are looked at in the first step, which is enough to tell how common it is what they
should say; and in any."""
_GROWTH = 8
"""How much further each step goes than the one before it, at most."""
_SAMPLE = 50
"""Messages that tell which of several phrases are common."""
_MUCH = 8
"""How many times as common as another phrase one is that is not asked for."""
_READ, _ASKED, _PREPARED = 5.0, 1.5, 0.04
"""What it costs to read a message, to look up one that the database's search names, and for that
search to name it. Microseconds, of which only the proportions matter."""

Said = tuple[tuple[Phrase, ...], bool]
"""Phrases that a message must have all of, or, negated, must not."""


class Page(Struct):
    """Messages in ascending order, and whether there are none before and none after them."""

    messages: list[Message]
    found_oldest: bool
    found_newest: bool


def find(connection: Connection, search: Search) -> Page:
    """The page that the search asks for."""
    older: list[Message] = []
    newer: list[Message] = []
    anchor = search.anchor
    # The anchor itself comes with the later half; one more row on each side tells whether the
    # history goes on.
    want_anchor = search.include_anchor
    if search.after or want_anchor:
        start = anchor - int(want_anchor)
        newer = _half(connection, search, ">", start, search.after + int(want_anchor) + 1)
    has_anchor = bool(newer) and newer[0].id == anchor
    keep = search.after + int(has_anchor and want_anchor)
    found_newest = len(newer) <= keep if (search.after or anchor >= narrow.LARGEST) else False
    newer = newer[:keep]
    if search.before:
        older = _half(connection, search, "<", anchor, search.before + 1)
    found_oldest = len(older) <= search.before if (search.before or anchor <= 0) else False
    older = older[: search.before]
    older.reverse()
    return Page(older + newer, found_oldest, found_newest)


def _half(
    connection: Connection, search: Search, comparison: str, anchor: int, limit: int
) -> list[Message]:
    found: list[Message] = []
    for part in _stretches(search, comparison, anchor):
        found += _Walk(connection, part, comparison, anchor).found(limit - len(found))
        if len(found) >= limit:
            break
    return found


def _stretches(search: Search, comparison: str, anchor: int) -> Iterator[Search]:
    """The search, or where it is for one of many unread messages, searches for more and more of
    those, beginning at the anchor."""
    wanted = [
        term.condition
        for term in search.terms
        if isinstance(term.condition, narrow.IsUnread) and not term.negated
    ]
    if not wanted:
        yield search
        return
    ids = wanted[0].ids
    rest = tuple(term for term in search.terms if term.condition is not wanted[0])
    size = _FIRST_STRETCH
    if comparison == "<":
        left = _up_to(ids, anchor - 1)
        while left:
            yield _with(search, rest, ids[max(left - size, 0) : left])
            left, size = max(left - size, 0), size * _GROWTH
    else:
        start = _up_to(ids, anchor)
        while start < len(ids):
            yield _with(search, rest, ids[start : start + size])
            start, size = start + size, size * _GROWTH


def _with(search: Search, rest: tuple[Term, ...], unread: BitMap) -> Search:
    return replace(search, terms=(*rest, Term(narrow.IsUnread(unread))))


def _up_to(ids: BitMap, last: int) -> int:
    """How many are not beyond the last one."""
    return ids.rank(min(last, _LARGEST)) if last >= 0 else 0


class _Way(Struct):
    """How a way of looking did so far."""

    cost: float
    """Of each message that is looked at, in microseconds."""
    size: int
    """How many the last step looked at."""
    passed: int = 0
    """Messages that were looked at."""
    gained: int = 0
    """Those of them that are wanted."""
    span: int = 0
    """The IDs that they lie among."""

    @property
    def density(self) -> float:
        """Messages for each ID."""
        return (self.passed + 1) / (self.span + 1)

    def left(self, need: int, ids: int) -> int:
        """About how many more it must look at until it has what is needed, or is through the IDs
        that are left."""
        return int(min(need * (self.passed + 1) / (self.gained + 1), ids * self.density)) + 1


class _Walk:
    """A walk through what a search finds, away from its anchor."""

    def __init__(
        self, connection: Connection, search: Search, comparison: str, anchor: int
    ) -> None:
        self._connection = connection
        self._comparison = comparison
        self._order = "DESC" if comparison == "<" else "ASC"
        self._at = anchor
        """All up to here was looked at."""
        self._said, rest = _parted(search.terms)
        self._asked = self._phrases = search.phrases
        """Those that the database's search is asked for."""
        self._where = compiled(connection, search.scope, rest)

    def found(self, limit: int) -> list[Message]:
        """The first so many."""
        return self._saying(limit) if self._said else self._next(limit, self._where)

    def _next(self, limit: int, *where: Clause, among: str = "messages") -> list[Message]:
        """The next so many of those that the conditions hold for. The parameters of `among` come
        first."""
        sql = " AND ".join(condition for condition, _ in where if condition)
        rows = self._connection.query(
            f"SELECT {MESSAGE_COLUMNS} FROM {among} WHERE {sql}"
            f" AND messages.id {self._comparison} ?"
            f" ORDER BY messages.id {self._order} LIMIT {int(limit)}",
            [*(value for _, values in where for value in values), self._at],
        )
        return [message_of(row) for row in rows]

    def _saying(self, limit: int) -> list[Message]:
        """The first so many that say what is looked for: the ways take turns, each from where the
        other came to."""
        ((newest,),) = self._connection.query("SELECT MAX(id) FROM messages")
        self._newest: int = newest or 0
        if self._comparison == "<":
            self._at = min(self._at, self._newest + 1)
        reading = _Way(_READ, _FIRST_LOOK)
        asking = None
        way = reading
        found: list[Message] = []
        while True:
            start, need = self._at, limit - len(found)
            if way is reading:
                passed, some, is_end = self._read(way.size)
            else:
                passed, some, is_end = self._ask(way.size, need)
            new = _holding(self._connection, some, self._said)
            found += new
            if is_end or len(found) >= limit:
                return found[:limit]
            way.passed += passed
            way.gained += len(new)
            way.span += abs(start - self._at)
            if asking is None:
                asking = self._foreseen(reading)
                self._asked = _rarest(self._phrases, some[:_SAMPLE])
            way = self._shorter(reading, asking, limit - len(found))

    def _foreseen(self, reading: _Way) -> _Way:
        """What is to be expected of asking the database's search."""
        common = (reading.gained + 1) / (reading.passed + 1)
        hits = int(reading.span * common)
        return _Way(_ASKED, _FIRST_LOOK, hits, reading.gained, reading.span)

    def _shorter(self, reading: _Way, asking: _Way, need: int) -> _Way:
        """The way on, with the size of its next step."""
        ids = self._at if self._comparison == "<" else self._newest - self._at
        to_read, to_ask = reading.left(need, ids), asking.left(need, ids)
        prepared = self._newest * asking.density * _PREPARED
        way, left = reading, to_read
        if to_ask * asking.cost + prepared < to_read * reading.cost:
            way, left = asking, to_ask
        way.size = min(max(left * 5 // 4, _FIRST_LOOK), way.size * _GROWTH, _LONGEST_LOOK)
        return way

    def _read(self, size: int) -> tuple[int, list[Message], bool]:
        """Pass so many messages, whatever they say; and whether there are no more."""
        some = self._next(size, self._where)
        if some:
            self._at = some[-1].id
        return len(some), some, len(some) < size

    def _ask(self, size: int, need: int) -> tuple[int, list[Message], bool]:
        """Pass so many messages that the database's search names; and whether it names no more.
        The needed ones are enough."""
        dialect = self._connection.dialect
        if not self._phrases:
            # It names those that are not wanted: what remains is for the database.
            nots: list[Clause] = [
                (f"NOT {dialect.search_match()}", [dialect.search_query(phrases)])
                for phrases, _ in self._said
            ]
            return 0, self._next(need, self._where, *nots), True
        rows = self._connection.query(
            dialect.search_hits(self._comparison, self._order, size),
            (dialect.search_query(self._asked), self._at),
        )
        ids = [mid for (mid,) in rows]
        is_all = self._asked == self._phrases and not any(negated for _, negated in self._said)
        enough = need if is_all else size
        named: Clause = ("", [dialect.array(ids)])
        some = self._next(enough, named, self._where, among=dialect.named_messages())
        passed = ids.index(some[-1].id) + 1 if len(some) == enough else len(ids)
        if ids:
            self._at = ids[passed - 1]
        return passed, some, len(ids) < size and passed == len(ids)


def matching(connection: Connection, search: Search, ids: list[int]) -> list[Message]:
    """Those of the messages that the search's scope and terms let through, ascending."""
    texts, rest = _parted(search.terms)
    where, values = compiled(connection, search.scope, rest)
    rows = connection.query(
        f"SELECT {MESSAGE_COLUMNS} FROM messages"
        f" WHERE {where} AND {connection.dialect.among('messages.id')} ORDER BY messages.id",
        [*values, connection.dialect.array(ids)],
    )
    return _holding(connection, map(message_of, rows), texts)


def any_in(connection: Connection, scope: Scope, ids: Sequence[int]) -> bool:
    """Whether the scope has any of the messages."""
    where, values = seen(connection.dialect, scope)
    among = connection.dialect.among("messages.id")
    sql = f"SELECT 1 FROM messages WHERE {among} AND {where} LIMIT 1"
    return bool(connection.query(sql, [connection.dialect.array(ids), *values]))


def _rarest(phrases: tuple[Phrase, ...], some: Sequence[Message]) -> tuple[Phrase, ...]:
    """The phrases without those that are much more common than others, by some messages: they
    would cost the database's search much, and tell little."""
    if len(phrases) < 2:
        return phrases
    texts = [folded((message.content, message.topic)) for message in some]
    counts = [sum(folded_say(one, (phrase,)) for one in texts) for phrase in phrases]
    limit = _MUCH * (min(counts) + 1)
    return tuple(phrase for phrase, count in zip(phrases, counts, strict=True) if count <= limit)


def _parted(terms: Iterable[Term]) -> tuple[list[Said], list[Term]]:
    """Those about what a message says, and the rest."""
    said: list[Said] = []
    rest: list[Term] = []
    for term in terms:
        if isinstance(term.condition, narrow.Matches):
            said.append((term.condition.phrases, term.negated))
        else:
            rest.append(term)
    return said, rest


def _holding(
    connection: Connection, some: Iterable[Message], said: Sequence[Said]
) -> list[Message]:
    """Those that say what they must, and nothing that they must not. TimeLimitReached where that
    takes longer than the transaction may."""
    found: list[Message] = []
    for message in some:
        connection.require_time()
        texts = folded((message.content, message.topic))
        if all(folded_say(texts, phrases) is not negated for phrases, negated in said):
            found.append(message)
    return found
