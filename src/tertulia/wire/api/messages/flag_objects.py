"""The names of flags."""

from functools import lru_cache

import msgspec

from tertulia.model.changes import MessageSent
from tertulia.model.messages import Flag, Message
from tertulia.service.messages.flags import ReaderFlags
from tertulia.state.state import State
from tertulia.store.message_marks import Relation

_NAMES = (
    (Flag.STARRED, "starred"),
    (Flag.COLLAPSED, "collapsed"),
    (Flag.MENTIONED, "mentioned"),
    (Flag.CHANNEL_WILDCARD_MENTIONED, "stream_wildcard_mentioned"),
    (Flag.TOPIC_WILDCARD_MENTIONED, "topic_wildcard_mentioned"),
    (Flag.HAS_ALERT_WORD, "has_alert_word"),
)
_WILDCARDS = Flag.CHANNEL_WILDCARD_MENTIONED | Flag.TOPIC_WILDCARD_MENTIONED


def flag_names(flags: Flag, *, read: bool, historical: bool = False) -> list[str]:
    return [*_flag_names(int(flags), read, historical)]


def flags_of(state: State, user_id: int, message: Message, relation: Relation) -> list[str]:
    """Return all flags of a fetched message."""
    flags, is_read, is_received = ReaderFlags(state, user_id).of(message, relation)
    return flag_names(flags, read=is_read, historical=not is_received)


def encoded_flags(flags: Flag, is_read: bool, is_received: bool) -> bytes:
    """Return the flags that `ReaderFlags` returns, as JSON."""
    return _encoded_flags(int(flags), is_read, not is_received)


def flags_on_arrival(state: State, user_id: int, sent: MessageSent) -> list[str]:
    """Return the flags that a new message has, for its event."""
    message = sent.message
    relation = Relation(sent.flags.get(user_id, Flag(0)), user_id in sent.readers)
    flags, _, is_received = ReaderFlags(state, user_id).of(message, relation)
    return flag_names(flags, read=relation.read) if is_received else []


@lru_cache
def _flag_names(flags: int, read: bool, historical: bool) -> tuple[str, ...]:
    names = ["read"] if read else []
    names += [name for flag, name in _NAMES if flags & flag]
    if flags & _WILDCARDS:
        names.append("wildcard_mentioned")
    if historical:
        names.append("historical")
    return tuple(names)


@lru_cache
def _encoded_flags(flags: int, read: bool, historical: bool) -> bytes:
    return msgspec.json.encode(_flag_names(flags, read, historical))
