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

from tertulia.domain.organization.realms import WELCOME_BOT
from tertulia.model.channels import topic_key
from tertulia.model.messages import Flag, Message
from tertulia.model.user_topics import Visibility
from tertulia.state.organization import State


class Way(Enum):
    """A way of telling somebody."""

    DESKTOP = "desktop"
    """A note on the screen, by a client that is open. It decides by itself, by the same rule."""
    SOUND = "sound"
    """A sound, likewise."""
    PUSH = "push"
    """To a phone or a browser that is closed."""
    MAIL = "mail"


class Reason(Enum):
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


_CHOICES: Final[Mapping[Way, _Choices]] = {
    Way.DESKTOP: _Choices(
        "enable_desktop_notifications",
        "enable_followed_topic_desktop_notifications",
        "desktop_notifications",
        alerts=True,
    ),
    Way.SOUND: _Choices(
        "enable_sounds",
        "enable_followed_topic_audible_notifications",
        "audible_notifications",
        alerts=True,
    ),
    Way.PUSH: _Choices(
        "enable_offline_push_notifications",
        "enable_followed_topic_push_notifications",
        "push_notifications",
    ),
    Way.MAIL: _Choices(
        "enable_offline_email_notifications",
        "enable_followed_topic_email_notifications",
        "email_notifications",
    ),
}

_WHILE_AWAY: Final = frozenset({Way.PUSH, Way.MAIL})

Concerned = Mapping[Reason, BitMap]
"""Who is told and why; nobody is there twice."""


def concerned(
    state: State, message: Message, flags: Mapping[int, Flag], way: Way
) -> dict[Reason, BitMap]:
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
        found = {Reason.DIRECT: state.personal_choices.among(people, choices.personal)}
    else:
        found = _in_channel(state, message, flags, choices)
    left_out = BitMap([message.sender_id]) | state.users.bots.ids
    left_out |= BitMap(one.user_id for one in state.muted_users.of_muted[message.sender_id])
    told: dict[Reason, BitMap] = {}
    for reason, people in found.items():
        if people := people - left_out:
            told[reason] = people
            left_out |= people
    return told


def everybody(found: Concerned) -> BitMap:
    """All whom a message concerns."""
    return BitMap.union(BitMap(), *found.values())


def newly_concerned(
    state: State,
    message: Message,
    flags: Mapping[int, Flag],
    gained: Mapping[int, Flag],
    way: Way,
) -> BitMap:
    """Whom an edited message concerns because of the mentions that they `gained`, and did not
    before. `flags` are the sparse flags afterwards."""
    before = {user_id: flag & ~gained.get(user_id, Flag(0)) for user_id, flag in flags.items()}
    return everybody(concerned(state, message, flags, way)) - everybody(
        concerned(state, message, before, way)
    )


def _in_channel(
    state: State, message: Message, flags: Mapping[int, Flag], choices: _Choices
) -> dict[Reason, BitMap]:
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
        Reason.MENTIONED: personal.among(flagged(Flag.MENTIONED), choices.personal),
        Reason.WILDCARD: personal.among(counted, choices.personal),
    }
    if choices.alerts:
        alerted = flagged(Flag.HAS_ALERT_WORD) - muted
        found[Reason.ALERTED] = personal.among(alerted, choices.personal)
    found[Reason.FOLLOWED] = personal.among(followed, choices.followed)
    found[Reason.CHANNEL] = of_channel.among(subscribers, channel_id, choices.channel) - muted
    return found
