"""How each change alters the state. One function per change, and the only place that writes."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from tertulia.model import changes
from tertulia.model.changes import Change, Entry
from tertulia.model.channels import Subscription, Topic, topic_key
from tertulia.model.messages import Counters, Flag
from tertulia.state.organization import State

R = TypeVar("R", bound=Struct)


def fold(state: State, entry: Entry) -> None:
    """Bring the state from `entry.seq - 1` to `entry.seq`."""
    if entry.seq != state.seq + 1:
        raise ValueError(f"entry {entry.seq} cannot follow {state.seq}")
    _FOLDS[type(entry.change)](state, entry)
    state.seq = entry.seq


def revised(record: R, values: Mapping[str, Any]) -> R:
    """The record with new values, which may be as they are in memory or as they are in JSON."""
    types = _field_types(type(record))
    return msgspec.structs.replace(
        record,
        **{name: msgspec.convert(value, types[name]) for name, value in values.items()},
    )


_TYPES: dict[type, dict[str, Any]] = {}


def _field_types(kind: type[Struct]) -> dict[str, Any]:
    if kind not in _TYPES:
        _TYPES[kind] = {field.name: field.type for field in msgspec.structs.fields(kind)}
    return _TYPES[kind]


_FOLDS: dict[type[Change], Callable[[State, Entry], None]] = {}

C = TypeVar("C", bound=Change)


def _folds(kind: type[C]) -> Callable[[Callable[[State, C], None]], None]:
    def register(function: Callable[[State, C], None]) -> None:
        _FOLDS[kind] = lambda state, entry: function(state, entry.change)  # type: ignore[arg-type]

    return register


@_folds(changes.RealmCreated)
def _(state: State, change: changes.RealmCreated) -> None:
    state.realms.put(change.realm)
    for group in change.groups:
        state.groups.put(group)
    for bot in change.bots:
        state.users.put(bot)


@_folds(changes.RealmChanged)
def _(state: State, change: changes.RealmChanged) -> None:
    state.realms.put(revised(state.realm, change.values))


@_folds(changes.UserCreated)
def _(state: State, change: changes.UserCreated) -> None:
    state.users.put(change.user)
    state.credentials.put(change.credential)
    state.settings.put(change.settings)


@_folds(changes.UserChanged)
def _(state: State, change: changes.UserChanged) -> None:
    state.users.put(revised(state.users[change.user_id], change.values))


@_folds(changes.UserDeactivated)
def _(state: State, change: changes.UserDeactivated) -> None:
    state.users.put(revised(state.users[change.user_id], {"is_active": False}))


@_folds(changes.UserReactivated)
def _(state: State, change: changes.UserReactivated) -> None:
    state.users.put(revised(state.users[change.user_id], {"is_active": True}))


@_folds(changes.CredentialChanged)
def _(state: State, change: changes.CredentialChanged) -> None:
    state.credentials.put(change.credential)


@_folds(changes.UserGroupCreated)
def _(state: State, change: changes.UserGroupCreated) -> None:
    state.groups.put(change.group)


@_folds(changes.ChannelCreated)
def _(state: State, change: changes.ChannelCreated) -> None:
    state.channels.put(change.channel)


@_folds(changes.ChannelChanged)
def _(state: State, change: changes.ChannelChanged) -> None:
    state.channels.put(revised(state.channels[change.channel_id], change.values))


@_folds(changes.Subscribed)
def _(state: State, change: changes.Subscribed) -> None:
    for user_id, color in change.colors.items():
        past = state.subscription(user_id, change.channel_id) or Subscription(
            channel_id=change.channel_id, user_id=user_id, color=color, spans=()
        )
        spans = (*past.spans, (change.after, None))
        # The entry that is being folded is the next one.
        values = {"color": color, "spans": spans, "began": state.seq + 1}
        state.subscriptions.put(revised(past, values))


@_folds(changes.Unsubscribed)
def _(state: State, change: changes.Unsubscribed) -> None:
    for user_id in change.user_ids:
        present = state.subscriptions[(change.channel_id, user_id)]
        *before, (after, _until) = present.spans
        span = [(after, change.until)] if change.until > after else []
        state.subscriptions.put(revised(present, {"spans": (*before, *span)}))


@_folds(changes.SubscriptionChanged)
def _(state: State, change: changes.SubscriptionChanged) -> None:
    present = state.subscriptions[(change.channel_id, change.user_id)]
    state.subscriptions.put(revised(present, {change.property: change.value}))


@_folds(changes.MessageSent)
def _(state: State, change: changes.MessageSent) -> None:
    message = change.message
    state.counters.put(Counters(last_message_id=message.id))
    if message.channel_id is not None:
        key = topic_key(message.topic)
        topic = state.topics.get((message.channel_id, key))
        state.topics.put(
            Topic(
                channel_id=message.channel_id,
                key=key,
                name=message.topic,
                last_message_id=message.id,
                message_count=topic.message_count + 1 if topic else 1,
            )
        )
        channel = state.channels[message.channel_id]
        # The channel's row is written for the first message of a day, not for each.
        if channel.first_message_id is None or (
            message.sent_at - (channel.last_message_at or 0) >= _RECENTLY
        ):
            state.channels.put(
                msgspec.structs.replace(
                    channel,
                    first_message_id=channel.first_message_id or message.id,
                    last_message_at=message.sent_at,
                )
            )
    else:
        if change.new_conversation is not None:
            state.directs.put(change.new_conversation)
            state.reading.began(change.new_conversation.id)
        conversation = state.directs[message.direct_id]
        state.directs.put(revised(conversation, {"last_message_id": message.id}))
    state.reading.sent(message)
    for user_id, flag in change.flags.items():
        state.reading.flag(user_id, (message.id,), flag, added=True)
    if change.read_by_sender:
        state.reading.mark(message.sender_id, (message.id,), read=True)


_RECENTLY = 86400


@_folds(changes.FlagsChanged)
def _(state: State, change: changes.FlagsChanged) -> None:
    if change.recorded:
        state.reading.flag(change.user_id, change.recorded, Flag.RECORD, added=True)
        state.reading.mark(change.user_id, change.recorded, read=True)
    state.reading.flag(change.user_id, change.message_ids, change.flag, added=change.added)


@_folds(changes.MessagesRead)
def _(state: State, change: changes.MessagesRead) -> None:
    state.reading.mark(change.user_id, change.message_ids, read=True)


@_folds(changes.MessagesUnread)
def _(state: State, change: changes.MessagesUnread) -> None:
    if change.recorded:
        state.reading.flag(change.user_id, change.recorded, Flag.RECORD, added=True)
    state.reading.mark(change.user_id, tuple(m.id for m in change.messages), read=False)
