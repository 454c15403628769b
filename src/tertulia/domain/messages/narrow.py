"""Compiling a client's narrow terms to conditions. Operators have their current names here; `wire`
translates older names."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.accounts import users
from tertulia.domain.messages.scopes import (
    NarrowReader,
    open_channels,
    own_directs,
    received_spans,
)
from tertulia.model import narrow
from tertulia.model.channels import RESOLVED_PREFIX, Channel, topic_key
from tertulia.model.errors import BadNarrow
from tertulia.model.messages import ANY_MENTION, Flag
from tertulia.model.narrow import Condition, Term
from tertulia.model.tokenizer import phrases_of
from tertulia.model.user_topics import Visibility
from tertulia.model.users import User
from tertulia.state.state import State

_ID = re.compile(r"[0-9]{1,16}")
MAX_PHRASES = 100
"""The most words and phrases in all search terms of a narrow."""


class NarrowTerm(Struct, frozen=True):
    operator: str
    operand: str | int | list[int] | list[str]
    negated: bool = False


_OF_ONESELF = frozenset({"in", "dm", "dm-including", "group-dm-with"})


def needs_account(term: NarrowTerm) -> bool:
    """Whether the term depends on its reader, as terms about stars or unread messages do."""
    return term.operator in _OF_ONESELF or (term.operator == "is" and term.operand != "resolved")


def terms_of(reader: NarrowReader, asked: Sequence[NarrowTerm]) -> tuple[Term, ...]:
    """Compile the terms.

    Raise BadNarrow for unknown operators and operands, and for channels and people that the reader
    can't see.
    """
    if sum(term.operator == "with" for term in asked) > 1:
        raise BadNarrow("only one 'with' term is allowed")
    if any(term.operator == "with" and term.negated for term in asked):
        raise BadNarrow("'with' can't be negated")
    terms: list[Term] = []
    for term in _with_conversation(reader, asked):
        read = _OPERATORS.get(term.operator)
        if read is None:
            raise BadNarrow(f"unknown operator '{term.operator}'")
        terms += read(reader, term)
    _require_few_phrases(terms)
    return tuple(terms)


def _with_conversation(reader: NarrowReader, asked: Sequence[NarrowTerm]) -> list[NarrowTerm]:
    """Replace a `with` term by terms for the conversation that its message is in now."""
    if not any(term.operator == "with" for term in asked):
        return list(asked)
    message = reader.conversation
    rest = [term for term in asked if term.operator != "with"]
    if message is None:
        if not any(term.operator in {"channel", "dm"} for term in rest):
            raise BadNarrow("the message in 'with' doesn't exist")
        return rest
    rest = [term for term in rest if term.operator not in {"channel", "topic", "dm"}]
    if message.channel_id is not None:
        return [
            *rest,
            NarrowTerm("channel", message.channel_id),
            NarrowTerm("topic", message.topic),
        ]
    return [*rest, NarrowTerm("dm", list(reader.state.directs[message.direct_id].members))]


# Operators

Operator = Callable[[NarrowReader, NarrowTerm], list[Term]]


def _one(term: NarrowTerm, condition: Condition) -> list[Term]:
    return [Term(condition, term.negated)]


def _text(term: NarrowTerm) -> str:
    if not isinstance(term.operand, str):
        raise BadNarrow(f"the operand of '{term.operator}' must be a string")
    return term.operand


def message_id_of(term: NarrowTerm) -> int | None:
    """Return the message ID in the term's operand, given as a number or digits; None for other
    operands."""
    operand = term.operand
    if isinstance(operand, str) and _ID.fullmatch(operand):
        operand = int(operand)
    return operand if isinstance(operand, int) and abs(operand) <= narrow.LARGEST else None


def _number(term: NarrowTerm) -> int:
    number = message_id_of(term)
    if number is None:
        raise BadNarrow(f"the operand of '{term.operator}' must be a message ID")
    return number


def _channel_of(reader: NarrowReader, operand: Any) -> Channel:
    state, user = reader.state, reader.user
    channel = None
    if isinstance(operand, int):
        channel = state.channels.get(operand)
    elif isinstance(operand, str):
        channel = state.channel_named(operand)
        if channel is None and _ID.fullmatch(operand):
            channel = state.channels.get(int(operand))
    if channel is None or not (
        channel_access.open_to_spectators(channel)
        if user is None
        else channel_access.sees_channel(state, user, channel)
    ):
        raise BadNarrow(f"unknown channel {operand}")
    return channel


def _user_of(reader: NarrowReader, term: NarrowTerm, operand: Any) -> User:
    state = reader.state
    user = None
    if isinstance(operand, int):
        user = state.users.get(operand)
        if (
            user is not None
            and reader.user is not None
            and not permissions.sees_user(state, reader.user, user)
        ):
            user = None
    elif isinstance(operand, str):
        user = users.find_by_address(state, reader.user, operand, reader.host)
    if user is None:
        raise BadNarrow(f"unknown user in '{term.operator}': {operand}")
    return user


def _channel(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    channel = _channel_of(reader, term.operand)
    return _one(term, narrow.InChannels(frozenset({channel.id})))


def _channels(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    kind = _text(term)
    if kind == "public":
        ids = frozenset(c.id for c in open_channels(reader) if not c.is_private)
    elif kind == "web-public":
        ids = frozenset(c.id for c in reader.state.channels if c.is_web_public)
    elif kind == "archived":
        ids = frozenset(c.id for c in open_channels(reader) if c.is_archived)
    else:
        raise BadNarrow(f"unknown channel type '{kind}'")
    return _one(term, narrow.InChannels(ids))


def _topic(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    return _one(term, narrow.InTopic(topic_key(names.topic_name(_text(term)))))


def _sender(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    return _one(term, narrow.FromSender(_user_of(reader, term, term.operand).id))


def _people(reader: NarrowReader, term: NarrowTerm) -> set[int]:
    operand = term.operand
    if isinstance(operand, str):
        wanted: list[Any] = [part for part in operand.split(",") if part.strip()]
    else:
        wanted = operand if isinstance(operand, list) else [operand]
    if not wanted:
        raise BadNarrow(f"the operand of '{term.operator}' must list people")
    return {_user_of(reader, term, value).id for value in wanted}


def _dm(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    members = _people(reader, term)
    if reader.user is not None:
        members.add(reader.user.id)
    direct_id = reader.state.directs.by_members.get(tuple(sorted(members)))
    return _one(term, _among_directs(frozenset() if direct_id is None else frozenset({direct_id})))


def _among_directs(direct_ids: frozenset[int]) -> Condition:
    return narrow.InDirect(direct_ids) if direct_ids else narrow.Nothing()


def _dm_including(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    user = _user_of(reader, term, term.operand)
    theirs = reader.state.directs.of_user[user.id]
    return _one(term, _among_directs(own_directs(reader) & theirs))


def _group_dm_with(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    user = _user_of(reader, term, term.operand)
    theirs = reader.state.directs.of_user[user.id]
    groups = {d for d in theirs if len(reader.state.directs[d].members) > 2}
    return _one(term, _among_directs(own_directs(reader) & groups))


def _is(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    match _text(term):
        case "dm" if term.negated:
            return _one(term, narrow.AnyDirect())
        case "dm":
            return _one(term, _among_directs(own_directs(reader)))
        case "starred":
            return _one(term, narrow.HasFlag(Flag.STARRED))
        case "unread":
            return _one(term, narrow.IsUnread(reader.unread))
        case "mentioned":
            return _one(term, narrow.HasFlag(ANY_MENTION, received_spans(reader)))
        case "alerted":
            return _one(term, narrow.HasFlag(Flag.HAS_ALERT_WORD))
        case "resolved":
            return _one(term, _resolved(reader.state))
        case "muted":
            muted = _muted(reader)
            is_any = muted.channel_ids or muted.topics
            return _one(term, muted if is_any else narrow.Nothing())
        case "followed":
            return _one(term, narrow.InTopics(_topics_with(reader, Visibility.FOLLOWED)))
        case other:
            raise BadNarrow(f"unknown 'is' operand '{other}'")


def _resolved(state: State) -> Condition:
    """Return the condition for resolved topics: a list if there are few."""
    topics = state.topics.resolved.listed
    return narrow.TopicBegins(RESOLVED_PREFIX) if topics is None else narrow.InTopics(topics)


def _muted_channels(reader: NarrowReader) -> frozenset[int]:
    if reader.user is None:
        return frozenset()
    subscriptions = reader.state.subscriptions.of_user[reader.user.id]
    return frozenset(c for c, s in subscriptions.items() if s.is_active and s.is_muted)


def _topics_with(reader: NarrowReader, *settings: Visibility) -> frozenset[tuple[int, str]]:
    """Return the topics for which the reader chose one of these visibility policies."""
    user_topics = () if reader.user is None else reader.state.user_topics.of_user[reader.user.id]
    return frozenset(
        (topic.channel_id, topic.key) for topic in user_topics if topic.visibility in settings
    )


def _muted(reader: NarrowReader) -> narrow.IsMuted:
    return narrow.IsMuted(
        _muted_channels(reader),
        _topics_with(reader, Visibility.MUTED),
        _topics_with(reader, Visibility.UNMUTED, Visibility.FOLLOWED),
    )


def _unless_muted(reader: NarrowReader) -> list[Term]:
    muted = _muted(reader)
    return [Term(muted, negated=True)] if muted.channel_ids or muted.topics else []


def without_muted(reader: NarrowReader, terms: Sequence[Term]) -> list[Term]:
    """Return terms that exclude muted channels and topics, except those that the narrow names."""
    named = any(
        isinstance(term.condition, narrow.InChannels) and not term.negated for term in terms
    )
    if not named:
        return _unless_muted(reader)
    if any(isinstance(term.condition, narrow.InTopic) for term in terms):
        return []
    muted = _topics_with(reader, Visibility.MUTED)
    return [Term(narrow.InTopics(muted), negated=True)] if muted else []


def _has(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    match _text(term).removesuffix("s"):
        case "link" | "image" | "attachment" as part:
            return _one(term, narrow.HasPart(part))
        case "reaction":
            return _one(term, narrow.HasReaction())
        case other:
            raise BadNarrow(f"unknown 'has' operand '{other}'")


def _in(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    match _text(term):
        case "all":
            return []
        case "home":
            return _unless_muted(reader)
        case other:
            raise BadNarrow(f"unknown 'in' operand '{other}'")


def _near(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    _number(term)
    return []


def _id(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    return _one(term, narrow.HasId(_number(term)))


def _search(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    text = _text(term)
    if not text.strip():
        raise BadNarrow("no text to search for")
    phrases = phrases_of(text)
    return _one(term, narrow.Matches(phrases) if phrases else narrow.Nothing())


def _require_few_phrases(terms: Iterable[Term]) -> None:
    conditions = (term.condition for term in terms)
    asked = sum(
        len(condition.phrases) for condition in conditions if isinstance(condition, narrow.Matches)
    )
    if asked > MAX_PHRASES:
        raise BadNarrow(f"more than {MAX_PHRASES} search terms")


def _mentions(reader: NarrowReader, term: NarrowTerm) -> list[Term]:
    user = _user_of(reader, term, term.operand)
    return _one(term, narrow.Mentions(user.id))


_OPERATORS: dict[str, Operator] = {
    "channel": _channel,
    "channels": _channels,
    "topic": _topic,
    "sender": _sender,
    "dm": _dm,
    "dm-including": _dm_including,
    "group-dm-with": _group_dm_with,
    "is": _is,
    "has": _has,
    "in": _in,
    "near": _near,
    "id": _id,
    "search": _search,
    "mentions": _mentions,
}


# Scope
