"""Whom to notify about a message, and why. One rule, based on people's settings, covers all
notification methods. When a notification is sent, the sender checks whether the person has read the
message, is active, or can no longer read it."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain import channel_access
from tertulia.domain.organization.lifecycle import WELCOME_BOT
from tertulia.model.changes import AnyChange, MessageEdited, MessageSent
from tertulia.model.channels import topic_key
from tertulia.model.messages import Flag, Message
from tertulia.model.user_topics import Visibility
from tertulia.state.notification_choices import DEFAULT_EMAIL_DELAY
from tertulia.state.state import State


class NotificationMethod(Enum):
    DESKTOP = "desktop"
    """A desktop notification. Clients apply the same rule themselves."""
    SOUND = "sound"
    """A notification sound. Clients apply the same rule themselves."""
    PUSH = "push"
    """A push notification to a phone or a closed browser."""
    MAIL = "mail"


class NotificationReason(Enum):
    """The reason for notifying someone about a message."""

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
    """The setting for messages addressed to the person."""
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
    state: State, message: Message, flags: Mapping[int, Flag], method: NotificationMethod
) -> dict[NotificationReason, BitMap]:
    """Return the people to notify about the message by this method, by reason. `flags` are the
    sparse flags on it.

    The sender, bots, and people who muted the sender are left out. Takes a few set operations,
    regardless of the number of people.
    """
    choices = _CHOICES[method]
    if message.sender_id == WELCOME_BOT and method in _WHILE_AWAY:
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


def all_recipients(recipients: Recipients) -> BitMap:
    return BitMap.union(BitMap(), *recipients.values())


def new_recipients(
    state: State,
    message: Message,
    flags: Mapping[int, Flag],
    gained: Mapping[int, Flag],
    method: NotificationMethod,
) -> BitMap:
    """Return the people to notify about an edited message because of mentions that they `gained`,
    and who weren't notified before. `flags` are the sparse flags after the edit."""
    before = {user_id: flag & ~gained.get(user_id, Flag(0)) for user_id, flag in flags.items()}
    return all_recipients(recipients(state, message, flags, method)) - all_recipients(
        recipients(state, message, before, method)
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
"""The number of seconds for which people count as active after their last action in a client, which
is as long as clients show it."""
RECHECK_SECONDS: Final = 100
"""The number of seconds after which an active person is checked again before notifying them."""
MAX_ACTIVE_SECONDS: Final = 3600
"""A person who was active for this many seconds without reading the message isn't notified: a
client has shown them unread messages."""
QUIET_RECHECK_SECONDS: Final = 1800
"""The number of seconds after which a person in a quiet time is checked again, unless the quiet
time ends sooner. It can be shortened."""
QUIET_RECHECKS: Final = 48
"""Long quiet times are checked again after the remaining time divided by this..."""
MAX_QUIET_RECHECK_SECONDS: Final = 6 * 3600
"""... but after at most this many seconds."""


class MessageRecipients(Struct, frozen=True):
    """A message, and the people to notify because of an entry of the log."""

    message: Message
    people: BitMap


def recipients_of_change(
    state: State, change: AnyChange, method: NotificationMethod
) -> MessageRecipients | None:
    """Return the message and the people whom the change notifies: it was sent, or an edit mentions
    them. Return None for most changes."""
    match change:
        case MessageSent(message=message, gone=False, imported=False):
            bitmap = all_recipients(recipients(state, message, change.flags, method))
            people = bitmap - BitMap(change.readers)
        case MessageEdited(message=message, gone=False, rendering_only=False) if change.mentioned:
            bitmap = new_recipients(state, message, change.flags, change.mentioned, method)
            people = bitmap - BitMap(change.read_by)
        case _:
            return None
    return MessageRecipients(message, people) if people else None


def by_delay(state: State, people: BitMap, method: NotificationMethod) -> Mapping[int, BitMap]:
    """Return the people by the delay, in seconds, after which they are notified."""
    if method is not NotificationMethod.MAIL:
        return {0: people} if people else {}
    result: dict[int, BitMap] = {}
    usual = people
    for period, bitmap in state.personal_choices.periods.items():
        if some := people & bitmap:
            result[period] = some
            usual = usual - some
    return {DEFAULT_EMAIL_DELAY: usual, **result} if usual else result


def only_while_away(state: State, user_id: int, method: NotificationMethod) -> bool:
    """Whether this method notifies the user only while they aren't active."""
    return not (
        method is NotificationMethod.PUSH
        and state.settings[user_id].enable_online_push_notifications
    )


def next_quiet_check(method: NotificationMethod, now: float, until: int) -> float | None:
    """Return when to check a person again whose quiet time lasts until `until`, in UNIX seconds;
    None to drop the notification, as all methods except email do. Ends are rounded up to minutes,
    so that many people are checked together."""
    if method is not NotificationMethod.MAIL:
        return None
    wait = min((until - now) / QUIET_RECHECKS, MAX_QUIET_RECHECK_SECONDS)
    return min(-(-until // 60) * 60, now + max(wait, QUIET_RECHECK_SECONDS))


def may_notify(state: State, user_id: int, message: Message) -> bool:
    """Whether the user's account is active and can read the message now."""
    user = state.users[user_id]
    return user.is_active and channel_access.reads_message(state, user, message)
