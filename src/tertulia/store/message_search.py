"""Reading messages: a page of those that a search finds.

Everything but text is a condition in SQL (`narrow_sql`). For text there are two strategies: to scan
the messages from the anchor on, which soon fills a page where the phrase is common; and to look
them up in the database's search index, which is fast where it is rare. The walk estimates after
each step which of the two is cheaper for the rest. Where both take long, because the phrase is
common and not in the narrow, and that has few messages, what the index names is held against those
by their IDs alone.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace
from pyroaring import BitMap

from tertulia.model import narrow
from tertulia.model.errors import Refused
from tertulia.model.messages import Message
from tertulia.model.narrow import MessageSearch, Scope, Term
from tertulia.store import queries as queries
from tertulia.store.codec import MESSAGE_COLUMNS, message_of
from tertulia.store.database import Connection
from tertulia.store.narrow_sql import (
    narrow_condition,
    scope_condition,
)
from tertulia.store.search_walk import (
    STEP_GROWTH,
    ScannedSample,
    SearchWalk,
    matching_text,
    split_terms,
)

PAGE_BYTES = 4 * 1024 * 1024
"""Content and HTML of the messages on either side of a page's anchor, those of a search counted
twice, since it returns them with the matches marked as well. A page ends early where there is more,
and says so."""
_FIRST_PAGE_STEP = 128
_MOST_PAGE_STEP = 1024
"""Messages that are read before their size is looked at: first, and later at most."""
_FIRST_SLICE, _LONGEST_SLICE = 1000, 64_000
"""Unread messages that are searched first, and that are searched together at most."""
_LARGEST = 2**32 - 1
"""The largest number of a bitmap."""


class Page(Struct):
    """Messages in ascending order, and whether there are none before and none after them."""

    messages: list[Message]
    found_oldest: bool
    found_newest: bool


def is_bounded(search: MessageSearch) -> bool:
    """Whether an index leads to what the search is for, so that a page costs what it contains. This
    is where it is decided which reads have the share of searches."""
    if search.scope.is_empty:
        return True
    wanted = [term.condition for term in search.terms if not term.negated]
    kinds = {type(one) for one in wanted}
    for condition in wanted:
        match condition:
            case narrow.InChannels() | narrow.HasId() | narrow.IsUnread() | narrow.Nothing():
                pass
            case narrow.InTopic() if narrow.InChannels in kinds:
                pass
            case narrow.InDirect(direct_ids=ids) if len(ids) <= 1:
                pass
            case _:
                return False
    # The first unread message is looked for outside of what is muted.
    return all(
        isinstance(term.condition, narrow.IsMuted) and narrow.IsUnread in kinds
        for term in search.terms
        if term.negated
    )


def find(connection: Connection, search: MessageSearch, seen: ScannedSample | None = None) -> Page:
    """The page that the search asks for."""
    older: list[Message] = []
    newer: list[Message] = []
    is_cut = False
    anchor = search.anchor
    # The anchor itself comes with the later half; one more row on each side tells whether the
    # history goes on.
    want_anchor = search.include_anchor
    if (search.after or want_anchor) and anchor <= narrow.LARGEST:
        start = anchor - int(want_anchor)
        newer, is_cut = _side(connection, search, ">", start, search.after + int(want_anchor) + 1)
    has_anchor = bool(newer) and newer[0].id == anchor
    keep = search.after + int(has_anchor and want_anchor)
    is_asked = bool(search.after) or anchor >= narrow.LARGEST
    found_newest = is_asked and not is_cut and len(newer) <= keep
    newer = newer[:keep]
    is_cut = False
    if search.before:
        older, is_cut = _side(connection, search, "<", anchor, search.before + 1, seen)
    is_asked = bool(search.before) or anchor <= 0
    found_oldest = is_asked and not is_cut and len(older) <= search.before
    older = older[: search.before]
    older.reverse()
    return Page(older + newer, found_oldest, found_newest)


def _side(
    connection: Connection,
    search: MessageSearch,
    comparison: str,
    anchor: int,
    limit: int,
    seen: ScannedSample | None = None,
) -> tuple[list[Message], bool]:
    """Return at most `limit` messages on one side of the anchor, the nearest first, and whether
    there would have been more had they not been as large."""
    found: list[Message] = []
    size, step = 0, _FIRST_PAGE_STEP
    each = 1 + bool(narrow.phrases_in(search.terms))
    while len(found) < limit and not search.scope.is_empty:
        step = min(limit - len(found), step)
        some = _one_side(connection, search, comparison, anchor, step, seen)
        for message in some:
            size += each * message.text_size
            if found and size > PAGE_BYTES:
                return found, True
            found.append(message)
        if len(some) < step:
            break
        anchor, seen = some[-1].id, None
        step = min(max((PAGE_BYTES - size) * len(found) // size, 1), _MOST_PAGE_STEP)
    return found, False


def _one_side(
    connection: Connection,
    search: MessageSearch,
    comparison: str,
    anchor: int,
    limit: int,
    seen: ScannedSample | None = None,
) -> list[Message]:
    found: list[Message] = []
    for part in _unread_slices(search, comparison, anchor):
        found += SearchWalk(connection, part, comparison, anchor, seen).found(limit - len(found))
        if len(found) >= limit:
            break
    return found


def _unread_slices(search: MessageSearch, comparison: str, anchor: int) -> Iterator[MessageSearch]:
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
    size = _FIRST_SLICE
    if comparison == "<":
        left = _up_to(ids, anchor - 1)
        while left:
            yield _with_unread(search, rest, ids[max(left - size, 0) : left])
            left, size = max(left - size, 0), min(size * STEP_GROWTH, _LONGEST_SLICE)
    else:
        start = _up_to(ids, anchor)
        while start < len(ids):
            yield _with_unread(search, rest, ids[start : start + size])
            start, size = start + size, min(size * STEP_GROWTH, _LONGEST_SLICE)


def _with_unread(search: MessageSearch, rest: tuple[Term, ...], unread: BitMap) -> MessageSearch:
    return replace(search, terms=(*rest, Term(narrow.IsUnread(unread))))


def _up_to(ids: BitMap, last: int) -> int:
    """How many are not beyond the last one."""
    return ids.rank(min(last, _LARGEST)) if last >= 0 else 0


def matching(connection: Connection, search: MessageSearch, ids: list[int]) -> list[Message]:
    """Those of the messages that the search's scope and terms let through, ascending. Refused if
    they are too large for one page, because nothing could say which of them are missing."""
    texts, rest = split_terms(search.terms)
    where, values = narrow_condition(connection, search.scope, rest)
    found: list[Message] = []
    size, ids = 0, sorted(set(ids))
    for begin in range(0, len(ids), _FIRST_PAGE_STEP):
        some = ids[begin : begin + _FIRST_PAGE_STEP]
        rows = connection.query(
            f"SELECT {MESSAGE_COLUMNS} FROM messages"
            f" WHERE {where} AND {connection.dialect.among('messages.id')} ORDER BY messages.id",
            [*values, connection.dialect.array(some)],
        )
        matches = matching_text(connection, map(message_of, rows), texts)
        size += sum((1 + bool(texts)) * message.text_size for message in matches)
        if size > 2 * PAGE_BYTES and len(found) + len(matches) > 1:
            raise Refused("These messages are too large for one response. Request fewer of them.")
        found += matches
    return found


def any_in(connection: Connection, scope: Scope, ids: Sequence[int]) -> bool:
    """Whether the scope has any of the messages."""
    where, values = scope_condition(connection.dialect, scope)
    among = connection.dialect.among("messages.id")
    sql = f"SELECT 1 FROM messages WHERE {among} AND {where} LIMIT 1"
    return bool(connection.query(sql, [connection.dialect.array(ids), *values]))
