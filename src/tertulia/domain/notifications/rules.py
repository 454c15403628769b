"""Who is notified about a message, and why: one rule for all notification methods.

The rule follows people's settings. Whether they have read the message, are active, or can no longer
read it is checked when the notification is sent.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain import channel_access
from tertulia.domain.organization.realms import WELCOME_BOT
from tertulia.model.changes import AnyChange, MessageEdited, MessageSent
from tertulia.model.channels import topic_key
from tertulia.model.messages import Flag, Message
from tertulia.model.user_topics import Visibility
from tertulia.state.notification_choices import DEFAULT_EMAIL_DELAY
from tertulia.state.state import State


class NotificationMethod(Enum):
    DESKTOP = "desktop"
    """A desktop notification. The client decides by itself, by the same rule."""
    SOUND = "sound"
    """A sound, likewise."""
    PUSH = "push"
    """A push notification to a phone or a closed browser."""
    MAIL = "mail"


class NotificationReason(Enum):
    """Why someone is notified about a message."""

    DIRECT = "direct"
    MENTIONED = "mentioned"
    """It mentions them, or a group that they are in."""
    WILDCARD = "wildcard"
    """It mentions everyone in the channel, or the topic's participants."""
    ALERTED = "alerted"
    FOLLOWED = "followed"
    CHANNEL = "channel"
    """They turned on notifications for the whole channel."""


class _Choices(Struct, frozen=True):
    """The settings for one notification method."""

    personal: str
    """For messages addressed to the person."""
    followed: str
    channel: str
    alerts: bool = False
    """Whether alert words count."""


_CHOICES: Final[Mapping[NotificationMethod, _Choices]] = {
    NotificationMethod.DESKTOP: _Choices(
        "enable_desktop_notifications",
        "enable_followed_topic_desktop_notifications",
        "desktop_notifications",
        alerts=True,
    ),
    NotificationMethod.SOUND: _Choices(
        "enable_sounds",
        "enable_followed_topic_audible_notifications",
        "audible_notifications",
        alerts=True,
    ),
    NotificationMethod.PUSH: _Choices(
        "enable_offline_push_notifications",
        "enable_followed_topic_push_notifications",
        "push_notifications",
    ),
    NotificationMethod.MAIL: _Choices(
        "enable_offline_email_notifications",
        "enable_followed_topic_email_notifications",
        "email_notifications",
    ),
}

_WHILE_AWAY: Final = frozenset({NotificationMethod.PUSH, NotificationMethod.MAIL})

Recipients = Mapping[NotificationReason, BitMap]
"""Notified people by reason, each person once."""


def recipients(
    state: State, message: Message, flags: Mapping[int, Flag], way: NotificationMethod
) -> dict[NotificationReason, BitMap]:
    """Return who is notified about the message by this method, and why. `flags` are the sparse
    flags on it.

    Leaves out the sender, bots, and people who muted the sender. Takes a few set operations,
    however many people are concerned.
    """
    choices = _CHOICES[way]
    if message.sender_id == WELCOME_BOT and way in _WHILE_AWAY:
        return {}  # New members get a welcome email.
    if message.direct_id is not None:
        people = BitMap(state.directs[message.direct_id].members)
        recipients = {
            NotificationReason.DIRECT: state.personal_choices.among(people, choices.personal)
        }
    else:
        recipients = _in_channel(state, message, flags, choices)
    left_out = BitMap([message.sender_id]) | state.users.bots.ids
    left_out |= BitMap(
        muted_user.user_id for muted_user in state.muted_users.of_muted[message.sender_id]
    )
    notified: dict[NotificationReason, BitMap] = {}
    for reason, people in recipients.items():
        if people := people - left_out:
            notified[reason] = people
            left_out |= people
    return notified


def all_recipients(found: Recipients) -> BitMap:
    return BitMap.union(BitMap(), *found.values())


def new_recipients(
    state: State,
    message: Message,
    flags: Mapping[int, Flag],
    gained: Mapping[int, Flag],
    way: NotificationMethod,
) -> BitMap:
    """Return who is notified about an edited message because of the mentions that they `gained`,
    and wasn't before. `flags` are the sparse flags afterwards."""
    before = {user_id: flag & ~gained.get(user_id, Flag(0)) for user_id, flag in flags.items()}
    return all_recipients(recipients(state, message, flags, way)) - all_recipients(
        recipients(state, message, before, way)
    )


def _in_channel(
    state: State, message: Message, flags: Mapping[int, Flag], choices: _Choices
) -> dict[NotificationReason, BitMap]:
    channel_id = message.channel_id or 0
    topic = channel_id, topic_key(message.topic)
    subscribers = state.active_subscribers.as_set(channel_id)
    personal, of_channel = state.personal_choices, state.channel_choices
    followed = state.topic_choices(*topic, Visibility.FOLLOWED) & subscribers
    unmuted = state.topic_choices(*topic, Visibility.UNMUTED)
    muted = (of_channel.muted(channel_id) - unmuted - followed) | state.topic_choices(
        *topic, Visibility.MUTED
    )

    def flagged(wanted: Flag) -> BitMap:
        return BitMap(user_id for user_id, flag in flags.items() if flag & wanted)

    wild = flagged(Flag.CHANNEL_WILDCARD_MENTIONED | Flag.TOPIC_WILDCARD_MENTIONED)
    if message.mentions_all:
        wild |= subscribers
    counted = personal.among(wild & followed, "enable_followed_topic_wildcard_mentions_notify") | (
        of_channel.among(wild, channel_id, "wildcard_mentions_notify") - muted
    )
    result = {
        NotificationReason.MENTIONED: personal.among(flagged(Flag.MENTIONED), choices.personal),
        NotificationReason.WILDCARD: personal.among(counted, choices.personal),
    }
    if choices.alerts:
        alerted = flagged(Flag.HAS_ALERT_WORD) - muted
        result[NotificationReason.ALERTED] = personal.among(alerted, choices.personal)
    result[NotificationReason.FOLLOWED] = personal.among(followed, choices.followed)
    result[NotificationReason.CHANNEL] = (
        of_channel.among(subscribers, channel_id, choices.channel) - muted
    )
    return result


ACTIVE_SECONDS: Final = 200
"""How long a person counts as active after their last action in a client: as long as clients show
it."""
RECHECK_SECONDS: Final = 100
"""When to check an active person again before notifying them."""
MAX_ACTIVE_SECONDS: Final = 3600
"""A person who was active for this long without reading the message isn't notified: they have seen
in a client that something is unread."""
QUIET_RECHECK_SECONDS: Final = 1800
"""When to check a person in a quiet time again, unless it ends sooner: the quiet time may be
shortened."""
QUIET_RECHECKS: Final = 48
"""For long quiet times, check again after this fraction of the rest..."""
MAX_QUIET_RECHECK_SECONDS: Final = 6 * 3600
"""... but at least this often."""


class MessageRecipients(Struct, frozen=True):
    """A message, and the people whom an entry of the log makes it notify."""

    message: Message
    people: BitMap


def recipients_of_change(
    state: State, change: AnyChange, way: NotificationMethod
) -> MessageRecipients | None:
    """Return whom the change notifies about a message: one that was sent, or that mentions them
    after an edit. None for most changes."""
    match change:
        case MessageSent(message=message, gone=False, imported=False):
            bitmap = all_recipients(recipients(state, message, change.flags, way))
            people = bitmap - BitMap(change.readers)
        case MessageEdited(message=message, gone=False, rendering_only=False) if change.mentioned:
            bitmap = new_recipients(state, message, change.flags, change.mentioned, way)
            people = bitmap - BitMap(change.read_by)
        case _:
            return None
    return MessageRecipients(message, people) if people else None


def by_delay(state: State, people: BitMap, way: NotificationMethod) -> Mapping[int, BitMap]:
    """Return the people by the delay, in seconds, with which they are notified."""
    if way is not NotificationMethod.MAIL:
        return {0: people} if people else {}
    result: dict[int, BitMap] = {}
    usual = people
    for period, bitmap in state.personal_choices.periods.items():
        if some := people & bitmap:
            result[period] = some
            usual = usual - some
    return {DEFAULT_EMAIL_DELAY: usual, **result} if usual else result


def only_while_away(state: State, user_id: int, way: NotificationMethod) -> bool:
    """Whether the user is notified by this method only while they aren't active."""
    return not (
        way is NotificationMethod.PUSH and state.settings[user_id].enable_online_push_notifications
    )


def next_quiet_check(way: NotificationMethod, now: float, until: int) -> float | None:
    """Return when to check a person again whose quiet time lasts `until`; None if the notification
    is dropped: all but emails. Ends are rounded up to minutes, so that many people are checked
    together."""
    if way is not NotificationMethod.MAIL:
        return None
    wait = min((until - now) / QUIET_RECHECKS, MAX_QUIET_RECHECK_SECONDS)
    return min(-(-until // 60) * 60, now + max(wait, QUIET_RECHECK_SECONDS))


def may_notify(state: State, user_id: int, message: Message) -> bool:
    """Whether the user is active and can read the message now."""
    user = state.users[user_id]
    return user.is_active and channel_access.reads_message(state, user, message)
