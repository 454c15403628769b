"""Telling others that one types. Nothing of it is written down."""

from tertulia.domain import messages, permissions
from tertulia.model.transients import Typing
from tertulia.state.moment import Decision, Moment


def to_people(moment: Moment, to: tuple[int, ...], started: bool) -> Decision[Typing]:
    settings = moment.state.settings.get(moment.actor.id)
    permissions.require(
        settings is None or settings.send_direct_typing_notifications,
        "You have turned off telling others that you type to them.",
    )
    members = messages.direct_members(moment, to)
    return Decision(Typing(sender_id=moment.actor.id, started=started, recipients=members))


def in_topic(moment: Moment, channel_id: int, topic: str, started: bool) -> Decision[Typing]:
    settings = moment.state.settings.get(moment.actor.id)
    permissions.require(
        settings is None or settings.send_channel_typing_notifications,
        "You have turned off telling others that you type in channels.",
    )
    channel = messages.postable_channel(
        moment, messages.ToChannel(topic=topic, channel_id=channel_id)
    )
    return Decision(
        Typing(sender_id=moment.actor.id, started=started, channel_id=channel.id, topic=topic)
    )
