"""Telling others that somebody types, or edits a message. Nothing of it is stored."""

from collections.abc import Sequence

from tertulia.domain.messages import typing
from tertulia.domain.names import topic_name
from tertulia.service.caller import Caller
from tertulia.service.messages.reading import stored_message


def type_to_people(caller: Caller, user_ids: Sequence[int], *, started: bool) -> None:
    """The caller began or ceased to type a direct message. Refused as that would be."""
    notice = caller.consider(typing.to_people, tuple(user_ids), started)
    caller.node.delivery.publish(notice)


def type_in_topic(caller: Caller, channel_id: int, topic: str, *, started: bool) -> None:
    """The caller began or ceased to type in a topic. Refused as a message there would be."""
    notice = caller.consider(typing.in_topic, channel_id, topic_name(topic), started)
    caller.node.delivery.publish(notice)


async def type_edit(caller: Caller, message_id: int, *, started: bool) -> None:
    """The caller began or ceased to edit a message. Refused as that would be."""
    message = await stored_message(caller.node, message_id)
    notice = caller.consider(typing.edit, message, started)
    caller.node.delivery.publish(notice)
