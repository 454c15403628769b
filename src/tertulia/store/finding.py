"""Reading messages: the narrow as SQL, with the right index for each."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tertulia.model import narrow
from tertulia.model.messages import Flag, Message
from tertulia.model.narrow import Scope, Search, Span, Term
from tertulia.store.codec import MESSAGE_COLUMNS, message_of
from tertulia.store.database import Connection, Dialect

Clause = tuple[str, list[Any]]
_FEW = 5000
"""Messages that are looked up faster than met."""
_FIRST_STRETCH = 1000
"""Unread messages that are looked at first."""
_NONE: Clause = ("1 = 0", [])


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
        comparison = ">=" if want_anchor else ">"
        newer = _half(connection, search, comparison, search.after + int(want_anchor) + 1)
    has_anchor = bool(newer) and newer[0].id == anchor
    keep = search.after + int(has_anchor and want_anchor)
    found_newest = len(newer) <= keep if (search.after or anchor >= narrow.LARGEST) else False
    newer = newer[:keep]
    if search.before:
        older = _half(connection, search, "<", search.before + 1)
    found_oldest = len(older) <= search.before if (search.before or anchor <= 0) else False
    older = older[: search.before]
    older.reverse()
    return Page(older + newer, found_oldest, found_newest)


def _half(connection: Connection, search: Search, comparison: str, limit: int) -> list[Message]:
    found: list[Message] = []
    for part in _stretches(search, comparison):
        found += _walk(connection, part, comparison, limit - len(found))
        if len(found) >= limit:
            break
    return found


def _stretches(search: Search, comparison: str) -> Iterator[Search]:
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
    at = bisect_left(wanted[0].ids, search.anchor)
    ids = wanted[0].ids[:at][::-1] if comparison == "<" else wanted[0].ids[at:]
    rest = tuple(term for term in search.terms if term.condition is not wanted[0])
    start, size = 0, _FIRST_STRETCH
    while start < len(ids):
        some = Term(narrow.IsUnread(ids[start : start + size]))
        yield replace(search, terms=(*rest, some))
        start, size = start + size, size * 8


def _walk(connection: Connection, search: Search, comparison: str, limit: int) -> list[Message]:
    joins, wheres, parameters, id_column = _compile(connection, search)
    order = "DESC" if comparison == "<" else "ASC"
    sql = (
        f"SELECT {MESSAGE_COLUMNS} FROM messages {joins}"
        f" WHERE {' AND '.join([*wheres, f'{id_column} {comparison} ?'])}"
        f" ORDER BY {id_column} {order} LIMIT {int(limit)}"
    )
    return [message_of(row) for row in connection.query(sql, [*parameters, search.anchor])]


def matching(connection: Connection, search: Search, ids: list[int]) -> list[Message]:
    """Those of the messages that the search's scope and terms let through, ascending."""
    joins, wheres, parameters, id_column = _compile(connection, search)
    among = connection.dialect.among("messages.id")
    sql = (
        f"SELECT {MESSAGE_COLUMNS} FROM messages {joins}"
        f" WHERE {' AND '.join([*wheres, among])} ORDER BY {id_column}"
    )
    rows = connection.query(sql, [*parameters, connection.dialect.array(ids)])
    return [message_of(row) for row in rows]


def any_in(connection: Connection, scope: Scope, ids: Sequence[int]) -> bool:
    """Whether the scope has any of the messages."""
    where, values = _scope(connection.dialect, scope)
    among = connection.dialect.among("messages.id")
    sql = f"SELECT 1 FROM messages WHERE {among} AND {where} LIMIT 1"
    return bool(connection.query(sql, [connection.dialect.array(ids), *values]))


def _compile(connection: Connection, search: Search) -> tuple[str, list[str], list[Any], str]:
    dialect = connection.dialect
    joins: list[str] = []
    wheres: list[str] = []
    parameters: list[Any] = []
    id_column = "messages.id"
    if phrases := search.phrases:
        join, where, id_column = dialect.search_join()
        joins.append(join)
        wheres.append(where)
        parameters.append(dialect.search_query(phrases))
    for term in search.terms:
        if isinstance(term.condition, narrow.Matches) and not term.negated:
            continue
        few = None if term.negated else _few(connection, search, term.condition)
        clause = few or _condition(dialect, term.condition, search.scope.user_id)
        if term.negated:
            # A condition on a missing value is neither true nor false in SQL.
            clause = (f"NOT COALESCE({clause[0]}, FALSE)", clause[1])
        wheres.append(clause[0])
        parameters += clause[1]
    where, values = _scope(dialect, search.scope)
    return " ".join(joins), [*wheres, where], [*parameters, *values], id_column


def _few(connection: Connection, search: Search, condition: narrow.Condition) -> Clause | None:
    """The messages of some conversations, taken out by an index: where they are so few that to
    meet enough of them on a walk through all messages takes longer."""
    dialect = connection.dialect
    table, column = "messages", "id"
    match condition:
        case narrow.InDirect(direct_ids=ids) if ids:
            inside, values = dialect.among("messages.direct_id"), [dialect.array(sorted(ids))]
        case narrow.InTopics(topics=topics) if topics:
            inside, values = _topics(dialect, topics)
        case narrow.InTopic(key=key) if not _names_channels(search):
            inside = f"{dialect.among('messages.channel_id')} AND messages.topic_key = ?"
            values = [dialect.array(sorted(search.scope.every_channel)), key]
        case narrow.HasReaction():
            table, column, inside, values = "reactions", "message_id", "1 = 1", []
        case _:
            return None
    rows = f"SELECT {table}.{column} FROM {table} WHERE {inside}"
    ((count,),) = connection.query(
        f"SELECT COUNT(*) FROM ({rows} LIMIT {_FEW + 1}) AS found", values
    )
    return (f"messages.id IN ({rows})", values) if count <= _FEW else None


def _names_channels(search: Search) -> bool:
    return any(isinstance(t.condition, narrow.InChannels) and not t.negated for t in search.terms)


def _condition(dialect: Dialect, condition: narrow.Condition, user_id: int | None) -> Clause:
    match condition:
        case narrow.InChannels(channel_ids=ids):
            if len(ids) == 1:
                return "messages.channel_id = ?", list(ids)
            return dialect.among("messages.channel_id"), [dialect.array(sorted(ids))]
        case narrow.InTopic(key=key):
            return "messages.topic_key = ?", [key]
        case narrow.InTopics(topics=topics):
            return _topics(dialect, topics)
        case narrow.IsMuted(channel_ids=ids, topics=muted, heard=heard):
            channels = dialect.among("messages.channel_id")
            spared, spared_values = _topics(dialect, heard)
            by_topic, values = _topics(dialect, muted)
            return (
                f"(({channels} AND NOT {spared}) OR {by_topic})",
                [dialect.array(sorted(ids)), *spared_values, *values],
            )
        case narrow.TopicBegins(prefix=prefix):
            return "SUBSTR(messages.topic_key, 1, ?) = ?", [len(prefix), prefix]
        case narrow.FromSender(user_id=sender):
            return "messages.sender_id = ?", [sender]
        case narrow.InDirect(direct_ids=ids):
            if len(ids) == 1:
                return "messages.direct_id = ?", list(ids)
            return (
                f"(messages.direct_id IS NOT NULL AND {dialect.among('+messages.direct_id')})",
                [dialect.array(sorted(ids))],
            )
        case narrow.AnyDirect():
            return "messages.direct_id IS NOT NULL", []
        case narrow.HasFlag(flags=flags, wildcards=spans):
            flagged = (
                "SELECT message_id FROM message_flags"
                " WHERE user_id = ? AND (flags & CAST(? AS BIGINT)) != 0"
            )
            if not spans:
                return f"messages.id IN ({flagged})", [user_id, flags]
            within, values = _spans(dialect, spans)
            wildcards = f"SELECT messages.id FROM messages WHERE mentions_all = 1 AND {within}"
            return f"messages.id IN ({flagged} UNION {wildcards})", [user_id, flags, *values]
        case narrow.Mentions(user_id=mentioned):
            return (
                "messages.id IN (SELECT message_id FROM message_flags WHERE user_id = ?"
                f" AND (flags & {int(Flag.MENTIONED)}) != 0)",
                [mentioned],
            )
        case narrow.IsUnread(ids=unread):
            return dialect.among("messages.id"), [dialect.array(unread)]
        case narrow.HasPart(part=part):
            return f"messages.has_{part} = 1", []
        case narrow.HasReaction():
            reacted = "SELECT 1 FROM reactions WHERE reactions.message_id = messages.id"
            return f"EXISTS ({reacted})", []
        case narrow.HasId(message_id=message_id):
            return "messages.id = ?", [message_id]
        case narrow.Matches(phrases=phrases):
            return dialect.search_match(), [dialect.search_query(phrases)]
        case narrow.Nothing():
            return "1 = 0", []


def _topics(dialect: Dialect, topics: Iterable[tuple[int, str]]) -> Clause:
    by_channel: dict[int, list[str]] = defaultdict(list)
    for channel_id, key in sorted(topics):
        by_channel[channel_id].append(key)
    either = f"(messages.channel_id = ? AND {dialect.among('messages.topic_key')})"
    parameters: list[Any] = []
    for channel_id, keys in by_channel.items():
        parameters += [channel_id, dialect.array(keys)]
    return (f"({' OR '.join([either] * len(by_channel))})", parameters) if parameters else _NONE


def _scope(dialect: Dialect, scope: Scope) -> Clause:
    """Which messages may be seen. The `+` keeps the planner from gathering them channel by channel
    where walking the messages in order is what finds a page."""
    either: list[str] = []
    parameters: list[Any] = []
    if scope.channel_ids:
        either.append(dialect.among("+messages.channel_id"))
        parameters.append(dialect.array(sorted(scope.channel_ids)))
    if scope.spans:
        sql, values = _spans(dialect, scope.spans)
        either.append(sql)
        parameters += values
    if scope.direct_ids:
        either.append(dialect.among("+messages.direct_id"))
        parameters.append(dialect.array(sorted(scope.direct_ids)))
    if scope.recorded:
        either.append(
            f"({dialect.among('+messages.channel_id')} AND EXISTS (SELECT 1 FROM message_flags"
            " WHERE message_flags.user_id = ? AND message_flags.message_id = messages.id"
            f" AND (flags & {int(Flag.RECORD)}) != 0))"
        )
        parameters += [dialect.array(sorted(scope.recorded)), scope.user_id]
    return (f"({' OR '.join(either)})", parameters) if either else ("1 = 0", [])


def _spans(dialect: Dialect, spans: tuple[Span, ...]) -> Clause:
    whole = [span.channel_id for span in spans if span.after == 0 and span.until is None]
    either: list[str] = []
    parameters: list[Any] = []
    if whole:
        either.append(dialect.among("+messages.channel_id"))
        parameters.append(dialect.array(whole))
    for span in spans:
        if span.after == 0 and span.until is None:
            continue
        either.append(
            "(+messages.channel_id = ? AND messages.id > ?"
            + (" AND messages.id <= ?)" if span.until is not None else ")")
        )
        parameters += [span.channel_id, span.after]
        if span.until is not None:
            parameters.append(span.until)
    return (f"({' OR '.join(either)})", parameters) if either else ("1 = 0", [])
