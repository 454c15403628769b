"""Topics: counts and newest messages after changes, and users' visibility policies."""

from collections.abc import Collection, Mapping, Sequence

import msgspec
from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain import channel_access, names
from tertulia.model.changes import MessageSent, MessagesMoved, UserTopicChanged
from tertulia.model.channels import RESOLVED_PREFIX, Channel, Subscription, Topic, topic_key
from tertulia.model.edits import Arrival
from tertulia.model.errors import Refused
from tertulia.model.messages import Flag
from tertulia.model.user_topics import Visibility
from tertulia.model.users import PersonalSettings
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

Flags = Mapping[int, Mapping[int, Flag]]
"""Sparse flags on messages, by user and message."""


class TopicMessage(Struct, frozen=True):
    """The fields of a message that its topic depends on."""

    id: int
    sent_at: int
    """UNIX seconds."""
    topic: str
    """The topic's name as this message spells it."""
    mentions_all: bool = False
    """Whether the message mentions everyone who received it."""


class TopicMessages(Struct, frozen=True, kw_only=True):
    """All messages of a topic, as of an entry of the log or later."""

    seq: int
    ids: BitMap
    young: BitMap | None = None
    """The messages that are recent enough to be moved, if moving has a time limit."""
    renames: int = 0
    """The number of times that the topic was renamed. A message that moves out is stored with that
    history."""


class TopicExcerpt(Struct, frozen=True, kw_only=True):
    """Messages of a topic that were read for a command: those that the command is about, and the
    newest others."""

    lines: Sequence[TopicMessage]
    """Ascending."""
    topic: TopicMessages | None = None
    """All messages of the topic, if the command may move more than one."""
    first_elsewhere: int | None
    """The channel's oldest message that isn't in `lines`."""
    holders: frozenset[int] = frozenset()
    """Users with sparse flags on the messages, if they are moved."""
    records: Sequence[tuple[BitMap, tuple[int, ...]]] = ()
    """Sets of messages, each with the users who have a record of them. Each user appears once."""
    newest: Sequence[Arrival] = ()
    """If the messages move to another channel, the newest of them, with content and everyone's
    flags."""


def topic_without(topic: Topic, excerpt: TopicExcerpt, gone: Collection[int]) -> Topic | None:
    """Return the topic without the messages in `gone`, or None if it becomes empty."""
    left = [line for line in excerpt.lines if line.id not in gone]
    count = topic.message_count - len(gone)
    if not count:
        return None
    if topic.last_message_id not in gone:  # It may have come after the excerpt was read.
        return msgspec.structs.replace(topic, message_count=count)
    newest = left[-1]
    return msgspec.structs.replace(
        topic, name=newest.topic, last_message_id=newest.id, message_count=count
    )


def topic_with(topic: Topic | None, channel_id: int, name: str, come: Sequence[int]) -> Topic:
    """Return the topic with the messages in `come` (ascending), spelled like `name`."""
    newest = come[-1]
    if topic is None:
        return Topic(
            channel_id=channel_id,
            key=topic_key(name),
            name=name,
            last_message_id=newest,
            message_count=len(come),
        )
    is_newer = newest > topic.last_message_id
    return msgspec.structs.replace(
        topic,
        name=name if is_newer else topic.name,
        last_message_id=max(newest, topic.last_message_id),
        message_count=topic.message_count + len(come),
    )


def first_without(channel: Channel, excerpt: TopicExcerpt, gone: Collection[int]) -> int | None:
    """Return the channel's oldest message once the messages in `gone` are gone."""
    if channel.first_message_id not in gone:
        return channel.first_message_id
    left = [line.id for line in excerpt.lines if line.id not in gone]
    return min(
        (message_id for message_id in (excerpt.first_elsewhere, *left) if message_id is not None),
        default=None,
    )


def toggles_resolution(old: str, new: str) -> bool:
    """Whether exactly one of the names is resolved, and they are otherwise equal."""
    return old != new and old.removeprefix(RESOLVED_PREFIX) == new.removeprefix(RESOLVED_PREFIX)


MAX_USER_TOPICS = 20_000
"""The most topics that one user can have a visibility policy for."""

PARTICIPATING, SENDING, BEGINNING = 1, 2, 3
"""Values of the settings for following and unmuting topics automatically: when to do so. Any other
number means never."""


def set_visibility(
    context: CommandContext, channel_id: int, topic: str, visibility: Visibility
) -> Decision[None]:
    """Follow, mute, or unmute a topic, or reset it to its channel's setting. The topic can be
    empty.

    Raise Refused for invalid topic names, too many settings, and channels that the actor can't
    read: there, a setting can only be removed.
    """
    state, actor, now = context.state, context.actor, context.now
    if len(topic.strip()) > names.MAX_TOPIC:
        raise Refused(f"Topic names can have at most {names.MAX_TOPIC} characters.")
    name = names.topic_name(topic)
    key = topic_key(name)
    known = state.visibility(actor.id, channel_id, key)
    channel = state.channels.get(channel_id)
    is_set = known is not Visibility.INHERIT and actor.reaches(channel_id)
    taken_back = visibility is Visibility.INHERIT and is_set
    if channel is None or not (taken_back or channel_access.reads_channel(state, actor, channel)):
        raise Refused("This channel doesn't exist.")
    if known is Visibility.INHERIT and state.user_topics.of_user.count(actor.id) >= MAX_USER_TOPICS:
        raise Refused(f"You can have settings for at most {MAX_USER_TOPICS} topics.")
    if known is visibility:
        return Decision(None)
    return Decision(None, [_visibility_change(state, actor.id, channel_id, name, visibility, now)])


def mute_topic(
    context: CommandContext, channel: int | str, topic: str, muted: bool
) -> Decision[None]:
    """Mute or unmute a topic of the channel with that ID or name. Raise as `set_visibility`."""
    state = context.state
    named = state.channel_named(channel) if isinstance(channel, str) else None
    channel_id = channel if isinstance(channel, int) else named.id if named else 0
    if not muted and context.actor.reaches(channel_id):
        known = state.visibility(context.actor.id, channel_id, topic_key(names.topic_name(topic)))
        if known in {Visibility.UNMUTED, Visibility.FOLLOWED}:
            return Decision(None)
    wanted = Visibility.MUTED if muted else Visibility.INHERIT
    return set_visibility(context, channel_id, topic, wanted)


def sending_visibility_changes(
    context: CommandContext, sent: MessageSent
) -> list[UserTopicChanged]:
    """Return the changes that follow or unmute the topic automatically for the sender and mentioned
    users."""
    state, message = context.state, sent.message
    channel = state.channels.get(message.channel_id)
    if channel is None:
        return []
    key = topic_key(message.topic)
    is_first = key not in state.topics.of_channel[channel.id]
    wanted: dict[int, Visibility] = {
        user_id: Visibility.FOLLOWED
        for user_id, flags in sent.flags.items()
        if (flags is Flag.MENTIONED or flags & Flag.MENTIONED)
        and user_id != message.sender_id
        and _settings(state, user_id).automatically_follow_topics_where_mentioned
    }
    occasions = {PARTICIPATING, SENDING, BEGINNING} if is_first else {PARTICIPATING, SENDING}
    visibility = _wanted(state, message.sender_id, channel, occasions)
    if sent.flags.get(message.sender_id, Flag(0)) & Flag.MENTIONED and (
        _settings(state, message.sender_id).automatically_follow_topics_where_mentioned
    ):
        visibility = Visibility.FOLLOWED
    wanted[message.sender_id] = visibility
    return _raising_changes(state, channel, message.topic, wanted, context.now)


_MERGED = (Visibility.MUTED, Visibility.INHERIT, Visibility.UNMUTED, Visibility.FOLLOWED)
"""In ascending order of precedence: when topics are merged, the later policy wins."""


def moving_visibility_changes(
    context: CommandContext, moved: MessagesMoved, *, joins: bool
) -> list[UserTopicChanged]:
    """Return the changes that move visibility policies from topics that the move leaves empty, for
    users who can read the new topic's channel. `joins` is whether the new topic had messages
    before."""
    state, now = context.state, context.now
    target = state.channels[moved.new_channel_id]
    key = topic_key(moved.new_topic)
    changes = []
    for old in (
        user_topic for place in moved.emptied for user_topic in state.user_topics.of_topic[place]
    ):
        changes.append(
            _visibility_change(
                state, old.user_id, old.channel_id, old.name, Visibility.INHERIT, now
            )
        )
        there = state.visibility(old.user_id, target.id, key)
        wanted = max(old.visibility, there, key=_MERGED.index) if joins else old.visibility
        user = state.users[old.user_id]
        if wanted is not there and channel_access.reads_channel(state, user, target):
            changes.append(
                _visibility_change(state, user.id, target.id, moved.new_topic, wanted, now)
            )
    return changes


def is_muted(visibility: Visibility, subscription: Subscription | None) -> bool:
    """Whether a topic is muted by the user's visibility policy for it, or by muting its channel."""
    if visibility is not Visibility.INHERIT:
        return visibility is Visibility.MUTED
    return subscription is not None and subscription.is_muted


def _wanted(state: State, user_id: int, channel: Channel, occasions: set[int]) -> Visibility:
    settings = _settings(state, user_id)
    if settings.automatically_follow_topics_policy in occasions:
        return Visibility.FOLLOWED
    subscription = state.subscription(user_id, channel.id)
    if (
        subscription is not None
        and subscription.is_active
        and subscription.is_muted
        and settings.automatically_unmute_topics_in_muted_channels_policy in occasions
    ):
        return Visibility.UNMUTED
    return Visibility.INHERIT


def _raising_changes(
    state: State, channel: Channel, topic: str, wanted: dict[int, Visibility], now: float
) -> list[UserTopicChanged]:
    """Return the changes for people whose policy has lower precedence than the wanted one. Bots
    have no policies."""
    channel_id, key, at = channel.id, topic_key(topic), int(now)
    users, count = state.users.rows, state.user_topics.of_user.count
    return [
        UserTopicChanged(
            user_id=user_id,
            channel_id=channel_id,
            topic=topic,
            visibility=visibility,
            was=was,
            at=at,
        )
        for user_id, visibility in sorted(wanted.items())
        if visibility > (was := state.visibility(user_id, channel_id, key))
        and not users[user_id].is_bot
        and count(user_id) < MAX_USER_TOPICS
    ]


_USUAL = PersonalSettings(user_id=0)


def _settings(state: State, user_id: int) -> PersonalSettings:
    return state.settings.get(user_id) or _USUAL


def _visibility_change(
    state: State, user_id: int, channel_id: int, topic: str, visibility: Visibility, now: float
) -> UserTopicChanged:
    return UserTopicChanged(
        user_id=user_id,
        channel_id=channel_id,
        topic=topic,
        visibility=visibility,
        was=state.visibility(user_id, channel_id, topic_key(topic)),
        at=int(now),
    )
