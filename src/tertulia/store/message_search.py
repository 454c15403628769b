"""Reading a page of messages.

Conditions other than text are SQL (`narrow_sql`). Text is found by scanning messages from the
anchor, which is fast if the phrase is common, or with the search index, which is fast if it is
rare. `search_walk` estimates after each step which is cheaper for the rest. If both are slow, hits
are intersected by ID with the messages of a small narrow.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace
from pyroaring import BitMap

from tertulia.model import narrow
from tertulia.model.errors import Refused
from tertulia.model.messages import Message
from tertulia.model.narrow import MessageSearch, Scope, Term
from tertulia.store.codec import MESSAGE_COLUMNS, message_of
from tertulia.store.database import Connection
from tertulia.store.narrow_sql import (
    narrow_condition,
    scope_condition,
)
from tertulia.store.search_text import ScannedSample, matching_text, split_terms
from tertulia.store.search_walk import STEP_GROWTH, SearchWalk

PAGE_BYTES = 4 * 1024 * 1024
"""The most bytes of content and HTML on either side of the anchor. They count twice in a search,
which also returns highlighted matches. A larger page ends early."""
_FIRST_PAGE_STEP = 128
_MOST_PAGE_STEP = 1024
"""The number of messages that are read before their size is checked, at first and later at most."""
_FIRST_SLICE, _LONGEST_SLICE = 1000, 64_000
"""The first and the largest number of unread messages searched together."""
_LARGEST = 2**32 - 1
"""The largest number in a bitmap."""


class Page(Struct):
    """Ascending messages, and whether they include the oldest and newest matches."""

    messages: list[Message]
    found_oldest: bool
    found_newest: bool


def is_bounded(search: MessageSearch) -> bool:
    """Return whether an index leads to the matches, so that a page costs no more than its
    contents. Other reads count as searches (`Readers.search`)."""
    if search.scope.is_empty:
        return True
    wanted = [term.condition for term in search.terms if not term.negated]
    kinds = {type(item) for item in wanted}
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
    # The first unread message is the first one that isn't muted.
    return all(
        isinstance(term.condition, narrow.IsMuted) and narrow.IsUnread in kinds
        for term in search.terms
        if term.negated
    )


def find(connection: Connection, search: MessageSearch, seen: ScannedSample | None = None) -> Page:
    older: list[Message] = []
    newer: list[Message] = []
    is_cut = False
    search = replace(search, scope=search.scope.narrowed(search.terms))
    anchor = search.anchor
    # The later side includes the anchor. One more row on each side tells whether there are more.
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
    """Return up to `limit` messages on one side of the anchor, nearest first, and whether the
    page ended early because of its size."""
    messages: list[Message] = []
    size, step = 0, _FIRST_PAGE_STEP
    each = 1 + bool(narrow.phrases_in(search.terms))
    while len(messages) < limit and not search.scope.is_empty:
        step = min(limit - len(messages), step)
        some = _one_side(connection, search, comparison, anchor, step, seen)
        for message in some:
            size += each * message.text_size
            if messages and size > PAGE_BYTES:
                return messages, True
            messages.append(message)
        if len(some) < step:
            break
        anchor, seen = some[-1].id, None
        step = min(max((PAGE_BYTES - size) * len(messages) // size, 1), _MOST_PAGE_STEP)
    return messages, False


def _one_side(
    connection: Connection,
    search: MessageSearch,
    comparison: str,
    anchor: int,
    limit: int,
    seen: ScannedSample | None = None,
) -> list[Message]:
    messages: list[Message] = []
    for part in _unread_slices(search, comparison, anchor):
        messages += SearchWalk(connection, part, comparison, anchor, seen).found(
            limit - len(messages)
        )
        if len(messages) >= limit:
            break
    return messages


def _unread_slices(search: MessageSearch, comparison: str, anchor: int) -> Iterator[MessageSearch]:
    """Yield the search, or if it asks for unread messages, searches for growing slices of these
    from the anchor on."""
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
    return ids.rank(min(last, _LARGEST)) if last >= 0 else 0


def matching(connection: Connection, search: MessageSearch, ids: list[int]) -> list[Message]:
    """Return the messages that fit the search, ascending. Raise Refused if they are too large for
    one page."""
    texts, rest = split_terms(search.terms)
    where, values = narrow_condition(connection, search.scope, rest)
    messages: list[Message] = []
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
        if size > 2 * PAGE_BYTES and len(messages) + len(matches) > 1:
            raise Refused("These messages are too large for one response. Request fewer of them.")
        messages += matches
    return messages


def any_in(connection: Connection, scope: Scope, ids: Sequence[int]) -> bool:
    """Return whether any of the messages is in scope."""
    where, values = scope_condition(connection.dialect, scope)
    among = connection.dialect.among("messages.id")
    sql = f"SELECT 1 FROM messages WHERE {among} AND {where} LIMIT 1"
    return bool(connection.query(sql, [connection.dialect.array(ids), *values]))
