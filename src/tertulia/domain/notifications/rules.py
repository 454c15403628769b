"""Whom a message concerns so that they are told of it, and why: the one rule for every way of
telling.

It is about what people have chosen. Whether they have read it meanwhile, are just here, or may not
see it any more is looked at when they are told (`telling`).
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
    """A way of telling somebody."""

    DESKTOP = "desktop"
    """A note on the screen, by a client that is open. It decides by itself, by the same rule."""
    SOUND = "sound"
    """A sound, likewise."""
    PUSH = "push"
    """To a phone or a browser that is closed."""
    MAIL = "mail"


class NotificationReason(Enum):
    """Why somebody is told of a message."""

    DIRECT = "direct"
    """It was written to them."""
    MENTIONED = "mentioned"
    """It mentions them, or a group that they are in."""
    WILDCARD = "wildcard"
    """It mentions everybody in the channel, or who takes part in the topic."""
    ALERTED = "alerted"
    """It contains one of their alert words."""
    FOLLOWED = "followed"
    """It is in a topic that they follow."""
    CHANNEL = "channel"
    """They want to be told of everything in the channel."""


class _Choices(Struct, frozen=True):
    """The settings by which a way is chosen."""

    personal: str
    """For what is addressed to somebody."""
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
"""Who is told and why; nobody is there twice."""


def recipients(
    state: State, message: Message, flags: Mapping[int, Flag], way: NotificationMethod
) -> dict[NotificationReason, BitMap]:
    """Whom the message concerns so that they want to be told of it in this way, and why. `flags`
    are the sparse flags that people have on it.

    Never its sender, bots, and who has muted the sender. It costs a few operations on sets,
    however many people there are.
    """
    choices = _CHOICES[way]
    if message.sender_id == WELCOME_BOT and way in _WHILE_AWAY:
        return {}  # Whoever has just joined is welcomed by a mail of its own.
    if message.direct_id is not None:
        people = BitMap(state.directs[message.direct_id].members)
        found = {NotificationReason.DIRECT: state.personal_choices.among(people, choices.personal)}
    else:
        found = _in_channel(state, message, flags, choices)
    left_out = BitMap([message.sender_id]) | state.users.bots.ids
    left_out |= BitMap(one.user_id for one in state.muted_users.of_muted[message.sender_id])
    told: dict[NotificationReason, BitMap] = {}
    for reason, people in found.items():
        if people := people - left_out:
            told[reason] = people
            left_out |= people
    return told


def all_recipients(found: Recipients) -> BitMap:
    """All whom a message concerns."""
    return BitMap.union(BitMap(), *found.values())


def new_recipients(
    state: State,
    message: Message,
    flags: Mapping[int, Flag],
    gained: Mapping[int, Flag],
    way: NotificationMethod,
) -> BitMap:
    """Whom an edited message concerns because of the mentions that they `gained`, and did not
    before. `flags` are the sparse flags afterwards."""
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
    found = {
        NotificationReason.MENTIONED: personal.among(flagged(Flag.MENTIONED), choices.personal),
        NotificationReason.WILDCARD: personal.among(counted, choices.personal),
    }
    if choices.alerts:
        alerted = flagged(Flag.HAS_ALERT_WORD) - muted
        found[NotificationReason.ALERTED] = personal.among(alerted, choices.personal)
    found[NotificationReason.FOLLOWED] = personal.among(followed, choices.followed)
    found[NotificationReason.CHANNEL] = (
        of_channel.among(subscribers, channel_id, choices.channel) - muted
    )
    return found


ACTIVE_SECONDS: Final = 200
"""For so long after somebody last did something in a client they count as being here: as long as
clients show them as active."""
RECHECK_SECONDS: Final = 100
"""Whoever is here when they were to be told is looked at again after so long."""
MAX_ACTIVE_SECONDS: Final = 3600
"""Who was here all the time for so long after they were to be told, without reading it, has seen in
a client that there is something, and is not told any more."""
QUIET_RECHECK_SECONDS: Final = 1800
"""Whoever is left in peace is looked at again after so long, or at the end: it may come earlier
than was said."""
QUIET_RECHECKS: Final = 48
"""Where the end is further away, after this part of the time until then..."""
MAX_QUIET_RECHECK_SECONDS: Final = 6 * 3600
"""... and after so long at the latest. What waits for weeks is not looked at every half hour."""


class MessageRecipients(Struct, frozen=True):
    """A message, and whom an entry of the log makes it concern."""

    message: Message
    people: BitMap


def recipients_of_change(
    state: State, change: AnyChange, way: NotificationMethod
) -> MessageRecipients | None:
    """Whom the change makes a message concern: one that was sent, or by mentioning them in what it
    says now. None for most changes."""
    match change:
        case MessageSent(message=message, gone=False):
            found = all_recipients(recipients(state, message, change.flags, way))
            people = found - BitMap(change.readers)
        case MessageEdited(message=message, gone=False, rendering_only=False) if change.mentioned:
            found = new_recipients(state, message, change.flags, change.mentioned, way)
            people = found - BitMap(change.read_by)
        case _:
            return None
    return MessageRecipients(message, people) if people else None


def by_delay(state: State, people: BitMap, way: NotificationMethod) -> Mapping[int, BitMap]:
    """The people by how many seconds after a message they want to be told of it."""
    if way is not NotificationMethod.MAIL:
        return {0: people} if people else {}
    found: dict[int, BitMap] = {}
    usual = people
    for period, own in state.personal_choices.periods.items():
        if some := people & own:
            found[period] = some
            usual = usual - some
    return {DEFAULT_EMAIL_DELAY: usual, **found} if usual else found


def only_while_away(state: State, user_id: int, way: NotificationMethod) -> bool:
    """Whether the user is told in this way only while they are not here."""
    return not (
        way is NotificationMethod.PUSH and state.settings[user_id].enable_online_push_notifications
    )


def next_quiet_check(way: NotificationMethod, now: float, until: int) -> float | None:
    """When somebody is looked at again who is left in peace until then, to be told in this way;
    None where they are not told any more: of what rings. (The end by full minutes, so that many are
    looked at together.)"""
    if way is not NotificationMethod.MAIL:
        return None
    wait = min((until - now) / QUIET_RECHECKS, MAX_QUIET_RECHECK_SECONDS)
    return min(-(-until // 60) * 60, now + max(wait, QUIET_RECHECK_SECONDS))


def may_notify(state: State, user_id: int, message: Message) -> bool:
    """Whether the user has an account, and may read the message, at this moment."""
    user = state.users[user_id]
    return user.is_active and channel_access.reads_message(state, user, message)
