"""Telling others that one types. Nothing of it is written down."""

from tertulia.domain import permissions
from tertulia.domain.messages import editing, sending
from tertulia.model.errors import NoSuchMessage
from tertulia.model.messages import Message
from tertulia.model.transients import EditTyping, Typing
from tertulia.state.moment import Decision, Moment


def to_people(moment: Moment, to: tuple[int, ...], started: bool) -> Decision[Typing]:
    _require_direct(moment)
    members = sending.direct_members(moment, to)
    return Decision(
        Typing(sender_id=moment.actor.id, started=started, at=moment.now, recipients=members)
    )


def in_topic(moment: Moment, channel_id: int, topic: str, started: bool) -> Decision[Typing]:
    _require_channel(moment)
    channel = sending.postable_channel(
        moment, sending.ToChannel(topic=topic, channel_id=channel_id)
    )
    return Decision(
        Typing(
            sender_id=moment.actor.id,
            started=started,
            at=moment.now,
            channel_id=channel.id,
            topic=topic,
        )
    )


def edit(moment: Moment, message: Message | None, started: bool) -> Decision[EditTyping]:
    """Announce to the readers of a message of the actor's that it is being edited.

    Refused where there is no message that the actor may read, where it is somebody else's, and
    where its text cannot be edited any more.
    """
    state, actor, now = moment.state, moment.actor, moment.now
    if message is None or not permissions.reads_message(state, actor, message):
        raise NoSuchMessage
    (_require_direct if message.channel_id is None else _require_channel)(moment)
    editing.require_editable(moment, message)
    return Decision(
        EditTyping(
            sender_id=actor.id,
            started=started,
            at=now,
            message_id=message.id,
            direct_id=message.direct_id,
            channel_id=message.channel_id,
            topic=message.topic,
        )
    )


def _require_direct(moment: Moment) -> None:
    settings = moment.state.settings.get(moment.actor.id)
    permissions.require(
        settings is None or settings.send_direct_typing_notifications,
        "Typing notifications for direct messages are turned off in your settings.",
    )


def _require_channel(moment: Moment) -> None:
    settings = moment.state.settings.get(moment.actor.id)
    permissions.require(
        settings is None or settings.send_channel_typing_notifications,
        "Typing notifications for channels are turned off in your settings.",
    )
