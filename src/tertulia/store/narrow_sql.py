"""Narrows and scopes as SQL conditions that use the fitting indexes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tertulia.model import narrow
from tertulia.model.messages import Flag
from tertulia.model.narrow import ChannelSpan, Scope, Term
from tertulia.store.codec import OF_TOPIC
from tertulia.store.database import Connection
from tertulia.store.dialect import Dialect

Clause = tuple[str, list[Any]]
_FEW = 5000
"""Up to this many messages are looked up by ID instead of scanning all messages."""
_QUICK = 30_000
"""Up to this many index entries are read quickly."""
_SIDE_BY_SIDE = 100
"""The most terms of one OR, because SQLite limits the depth of expressions."""
_NONE: Clause = ("1 = 0", [])
_TOPICS = "SELECT id FROM message_topics"


class IdSubset(NamedTuple):
    """Messages whose IDs come from an index."""

    ids: str
    """A query for the IDs."""
    parameters: list[Any]
    number: int


def all_of(clauses: Iterable[Clause]) -> Clause:
    conditions = list(clauses)
    return (
        " AND ".join(f"({sql})" for sql, _ in conditions),
        [value for _, values in conditions for value in values],
    )


def places(scope: Scope) -> int:
    """Return the number of channels and conversations that are queried."""
    whole, parts = scope.parts
    lists = (scope.channel_ids, scope.direct_ids, whole, parts)
    return sum(map(len, lists)) + bool(scope.only_recorded)


def fits_scope(term: Term) -> bool:
    """Return whether the term fits most messages in scope, or has an index by channel."""
    indexed = narrow.InChannels | narrow.FromSender | narrow.HasPart
    return term.negated or isinstance(term.condition, indexed)


def names_one_channel(term: Term) -> bool:
    return not term.negated and _is_one_channel(term.condition)


def narrow_condition(connection: Connection, scope: Scope, terms: Sequence[Term]) -> Clause:
    """Return the condition that a row of `messages` is in the scope and fits all terms."""
    dialect = connection.dialect
    clauses: list[Clause] = []
    topic = _one_topic(terms)
    whole = scope.channel_ids.union(scope.parts[0])
    is_whole = False
    for term in terms:
        if not term.negated and isinstance(term.condition, narrow.InChannels):
            is_whole = is_whole or term.condition.channel_ids <= whole
            if topic is not None:
                continue  # The topic has the channel.
        if not term.negated and isinstance(term.condition, narrow.InTopic) and topic is not None:
            clauses.append(topic)
            continue
        few = None if term.negated else _few(connection, scope, terms, term.condition)
        sql, values = few or _condition(dialect, term.condition, scope.user_id)
        # A condition on a missing value is neither true nor false in SQL.
        clauses.append((f"NOT COALESCE({sql}, FALSE)" if term.negated else sql, values))
    if not dialect.intersects_indexes and (both := _intersection(connection, terms)):
        clauses.append(both)
    # If a whole channel is in scope, this would only keep the database from using an index.
    if not is_whole:
        clauses.append(scope_condition(dialect, scope))
    return " AND ".join(sql for sql, _ in clauses), [value for _, some in clauses for value in some]


def _few(
    connection: Connection, scope: Scope, terms: Sequence[Term], condition: narrow.Condition
) -> Clause | None:
    """Return a condition by ID for a few messages in some conversations. A walk along all
    messages would take longer to find them."""
    dialect = connection.dialect
    table, column = "messages", "id"
    match condition:
        case narrow.InDirect(direct_ids=ids) if ids:
            inside, values = dialect.among("messages.direct_id"), [dialect.array(sorted(ids))]
        case narrow.InTopics(topics=topics) if topics:
            inside, values = _topics(dialect, topics, "messages.topic_id")
        case narrow.InTopic(key=key) if not _names_channels(terms):
            inside = (
                "messages.topic_id IN (SELECT id FROM message_topics"
                f" WHERE key = ? AND {dialect.among('+channel_id')})"
            )
            values = [key, dialect.array(sorted(scope.every_channel))]
        case narrow.HasReaction():
            table, column, inside, values = "reactions", "message_id", "1 = 1", []
        case _:
            return None
    rows = f"SELECT {table}.{column} FROM {table} WHERE {inside}"
    ((count,),) = connection.query(
        f"SELECT COUNT(*) FROM ({rows} LIMIT {_FEW + 1}) AS found", values
    )
    return (f"messages.id IN ({rows})", values) if count <= _FEW else None


def _intersection(connection: Connection, terms: Sequence[Term]) -> Clause | None:
    """Return a condition by ID for messages that fit several terms, if each fits few.
    Intersecting indexes takes less time than reading the messages of one."""
    clauses = _all_indexed(terms)
    few = _quick(connection, clauses) if len(clauses) > 1 else []
    if len(few) < 2:
        return None
    ids = " INTERSECT ".join(item.ids for item in few)
    return f"messages.id IN ({ids})", [value for item in few for value in item.parameters]


def smallest_subset(connection: Connection, terms: Sequence[Term]) -> IdSubset | None:
    """Return the messages of the term that fits fewest, if they are few enough to intersect with
    another index."""
    return min(_quick(connection, _all_indexed(terms)), key=lambda item: item.number, default=None)


def ids_in_scope(dialect: Dialect, scope: Scope, terms: Sequence[Term]) -> Clause:
    """Return a query for the IDs of the scope's messages, from indexes only. It has all messages
    of channels that the reader received in part, and applies only the term that has an index by
    channel."""
    also = in_each_channel(terms)
    fits = f"{also} AND " if also else ""
    whole, parts = scope.parts
    channels = scope.channel_ids.union(whole, (part[0] for part in parts))
    queries: list[str] = []
    parameters: list[Any] = []
    if channels:
        queries.append(f"SELECT id FROM messages WHERE {fits}{dialect.among('channel_id')}")
        parameters.append(dialect.array(sorted(channels)))
    if scope.direct_ids:
        queries.append(f"SELECT id FROM messages WHERE {dialect.among('direct_id')}")
        parameters.append(dialect.array(sorted(scope.direct_ids)))
    if scope.only_recorded:
        queries.append(
            "SELECT message_id AS id FROM message_flags"
            f" WHERE user_id = ? AND (flags & {int(Flag.RECORD)}) != 0"
        )
        parameters.append(scope.user_id)
    return " UNION ALL ".join(queries) or "SELECT id FROM messages WHERE 1 = 0", parameters


def _quick(connection: Connection, clauses: Iterable[Clause]) -> list[IdSubset]:
    """Return those conditions that hold for few messages."""
    result: list[IdSubset] = []
    for sql, values in clauses:
        ids = f"SELECT id FROM messages WHERE {sql}"
        counted = f"SELECT COUNT(*) FROM ({ids} LIMIT {_QUICK + 1})"
        ((count,),) = connection.query(counted, values)
        if count <= _QUICK:
            result.append(IdSubset(ids, values, count))
    return result


def _all_indexed(terms: Sequence[Term]) -> list[Clause]:
    wanted = [term.condition for term in terms if not term.negated]
    results = [clause for condition in wanted if (clause := _indexed(condition)) is not None]
    if len(results) == 2 and in_each_channel(terms) and any(map(_is_one_channel, wanted)):
        return []  # One index has both.
    topic = _one_topic(terms)
    return results if topic is None else [*results, topic]


def _one_topic(terms: Iterable[Term]) -> Clause | None:
    """Return the condition for the only topic that the terms name, with its channel."""
    wanted = [term.condition for term in terms if not term.negated]
    channels = [item for item in wanted if isinstance(item, narrow.InChannels)]
    topics = [item for item in wanted if isinstance(item, narrow.InTopic)]
    if len(channels) != 1 or len(topics) != 1 or not _is_one(channels[0]):
        return None
    return OF_TOPIC, [*channels[0].channel_ids, topics[0].key]


def _is_one(condition: narrow.InChannels) -> bool:
    return len(condition.channel_ids) == 1


def _is_one_channel(condition: narrow.Condition) -> bool:
    return isinstance(condition, narrow.InChannels) and _is_one(condition)


def _indexed(condition: narrow.Condition) -> Clause | None:
    """Return the condition if an index has the IDs of its messages in order."""
    match condition:
        case narrow.InChannels(channel_ids=ids) if len(ids) == 1:
            return "channel_id = ?", list(ids)
        case narrow.FromSender(user_id=sender):
            return "sender_id = ?", [sender]
        case narrow.InDirect(direct_ids=ids) if len(ids) == 1:
            return "direct_id = ?", list(ids)
        case narrow.HasPart(part=part):
            return f"has_{part} = 1", []
        case _:
            return None


def _names_channels(terms: Sequence[Term]) -> bool:
    return any(isinstance(t.condition, narrow.InChannels) and not t.negated for t in terms)


def _condition(dialect: Dialect, condition: narrow.Condition, user_id: int | None) -> Clause:
    match condition:
        case narrow.InChannels(channel_ids=ids):
            if len(ids) == 1:
                return "messages.channel_id = ?", list(ids)
            return dialect.among("messages.channel_id"), [dialect.array(sorted(ids))]
        case narrow.InTopic(key=key):
            return f"+messages.topic_id IN ({_TOPICS} WHERE key = ?)", [key]
        case narrow.InTopics(topics=topics):
            return _topics(dialect, topics)
        case narrow.IsMuted(channel_ids=ids, topics=muted, unmuted=unmuted):
            channels = dialect.among("messages.channel_id")
            spared, spared_values = _topics(dialect, unmuted)
            by_topic, values = _topics(dialect, muted)
            return (
                f"(({channels} AND NOT COALESCE({spared}, FALSE)) OR {by_topic})",
                [dialect.array(sorted(ids)), *spared_values, *values],
            )
        case narrow.TopicBegins(prefix=prefix):
            begun = f"{_TOPICS} WHERE SUBSTR(key, 1, ?) = ?"
            return f"+messages.topic_id IN ({begun})", [len(prefix), prefix]
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
        case narrow.Matches():
            raise AssertionError("texts are not looked for by a condition alone")
        case narrow.Nothing():
            return _NONE


def _topics(
    dialect: Dialect, topics: Iterable[tuple[int, str]], column: str = "+messages.topic_id"
) -> Clause:
    by_channel: dict[int, list[str]] = defaultdict(list)
    for channel_id, key in sorted(topics):
        by_channel[channel_id].append(key)
    either = f"(channel_id = ? AND {dialect.among('key')})"
    parameters: list[Any] = []
    for channel_id, keys in by_channel.items():
        parameters += [channel_id, dialect.array(keys)]
    if not parameters:
        return _NONE
    where = _any([either] * len(by_channel))
    return f"{column} IN ({_TOPICS} WHERE {where})", parameters


def _any(conditions: Sequence[str]) -> str:
    """Join conditions with OR."""
    while len(conditions) > _SIDE_BY_SIDE:
        conditions = [
            f"({' OR '.join(conditions[begin : begin + _SIDE_BY_SIDE])})"
            for begin in range(0, len(conditions), _SIDE_BY_SIDE)
        ]
    return f"({' OR '.join(conditions)})"


def scope_condition(dialect: Dialect, scope: Scope) -> Clause:
    """Return the condition that a message is in the scope. The `+` keeps the planner from
    collecting messages channel by channel when walking along all of them finds a page sooner."""
    either: list[str] = []
    parameters: list[Any] = []
    if scope.channel_ids:
        either.append(dialect.among("+messages.channel_id"))
        parameters.append(dialect.array(sorted(scope.channel_ids)))
    whole, parts = scope.parts
    if scope.spans:
        sql, values = _within(dialect, whole, parts)
        either.append(sql)
        parameters += values
    if scope.direct_ids:
        either.append(dialect.among("+messages.direct_id"))
        parameters.append(dialect.array(sorted(scope.direct_ids)))
    if recorded := scope.only_recorded:
        either.append(
            f"({dialect.among('+messages.channel_id')} AND EXISTS (SELECT 1 FROM message_flags"
            " WHERE message_flags.user_id = ? AND message_flags.message_id = messages.id"
            f" AND (flags & {int(Flag.RECORD)}) != 0))"
        )
        parameters += [dialect.array(sorted(recorded)), scope.user_id]
    return (f"({' OR '.join(either)})", parameters) if either else _NONE


def in_each_channel(terms: Sequence[Term]) -> str:
    """Return a condition without parameters, for a sender or a part, that an index has for each
    channel in order, or ""."""
    wanted = [term.condition for term in terms if not term.negated]
    for condition in wanted:
        if isinstance(condition, narrow.FromSender):
            return f"sender_id = {int(condition.user_id)}"
    for condition in wanted:
        if isinstance(condition, narrow.HasPart):
            return f"has_{condition.part} = 1"
    return ""


def nearest(
    dialect: Dialect, scope: Scope, comparison: str, anchor: int, limit: int, also: str = ""
) -> Clause | None:
    """Return a query for the IDs (`id`) of the first `limit` messages of the scope beyond an ID, or
    None if the scope is empty. It queries each channel and conversation, so it doesn't read what
    lies between.

    `also` is a condition of `in_each_channel`. Not all messages without it are left out.
    """
    whole, parts = scope.parts
    channels = [(channel_id, 0, narrow.LARGEST) for channel_id in scope.channel_ids.union(whole)]
    # Each message must appear once, or fewer would be found.
    channels += [part for part in parts if part[0] not in scope.channel_ids]
    directs = [(direct_id, 0, narrow.LARGEST) for direct_id in scope.direct_ids]
    order = "DESC" if comparison == "<" else "ASC"
    queries: list[str] = []
    parameters: list[Any] = []
    for column, spans in (("channel_id", channels), ("direct_id", directs)):
        if spans:
            # Conversations have no such index: the `+` keeps the planner from any other.
            fits = also if column == "channel_id" or not also else f"+{also}"
            queries.append(dialect.merged(column, comparison, limit, fits))
            parameters += [dialect.spans(spans), anchor]
    if recorded := scope.only_recorded:
        queries.append(
            "SELECT message_id AS id FROM message_flags CROSS JOIN messages"
            f" WHERE messages.id = message_id AND user_id = ? AND message_id {comparison} ?"
            f" AND (flags & {int(Flag.RECORD)}) != 0 AND {dialect.among('+messages.channel_id')}"
            f" ORDER BY message_id {order} LIMIT {int(limit)}"
        )
        parameters += [scope.user_id, anchor, dialect.array(sorted(recorded))]
    if not queries:
        return None
    result = " UNION ".join(f"SELECT id FROM ({query}) AS found" for query in queries)
    return f"SELECT id FROM ({result}) AS found ORDER BY id {order} LIMIT {int(limit)}", parameters


def _spans(dialect: Dialect, spans: Iterable[ChannelSpan]) -> Clause:
    return _within(dialect, *narrow.split_spans(spans))


def _within(dialect: Dialect, whole: list[int], parts: list[tuple[int, int, int]]) -> Clause:
    """Return the condition. The spans are a parameter because a reader may have been in thousands
    of channels."""
    either: list[str] = []
    parameters: list[Any] = []
    if whole:
        either.append(dialect.among("+messages.channel_id"))
        parameters.append(dialect.array(whole))
    if parts:
        either.append(dialect.within)
        parameters.append(dialect.spans(parts))
    return (f"({' OR '.join(either)})", parameters) if either else _NONE
