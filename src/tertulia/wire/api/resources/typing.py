"""Telling others that one types, or edits a message."""

from typing import Annotated, Literal

from msgspec import Meta

from tertulia.domain.messages import typing
from tertulia.domain.names import topic_name
from tertulia.model.errors import Refused
from tertulia.store import queries
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Alias, Int, Params, Path
from tertulia.wire.http.routing import Answer


class SetTyping(Params, kw_only=True, frozen=True):
    """Where somebody began or ceased to type."""

    op: Annotated[Literal["start", "stop"], Alias("operator")]
    type: Literal["direct", "private", "channel", "stream"] = "direct"
    to: Annotated[list[Int] | None, Meta(description="User IDs, for direct messages.")] = None
    stream_id: Int | None = None
    topic: str | None = None


async def set_typing(call: Call, params: SetTyping) -> Answer:
    """Tell those who would get the message that the caller types, or no longer does."""
    started = params.op == "start"
    if params.type in {"direct", "private"}:
        if not params.to:
            raise Refused("The recipients are missing: 'to'.")
        notice = call.consider(typing.to_people, tuple(params.to), started)
    else:
        if params.stream_id is None:
            raise Refused("The channel is missing: 'stream_id'.")
        if params.topic is None:
            raise Refused("The topic is missing.")
        notice = call.consider(typing.in_topic, params.stream_id, topic_name(params.topic), started)
    call.node.delivery.publish(notice)
    return Answer()


class SetTypingEdit(Params, kw_only=True, frozen=True):
    """Which message somebody began or ceased to edit."""

    message_id: Annotated[Int, Path()]
    op: Literal["start", "stop"]


async def set_typing_edit(call: Call, params: SetTypingEdit) -> Answer:
    """Tell those who read a message of the caller's that it is being edited, or no longer is."""
    found = await call.node.store.read(queries.messages, [params.message_id])
    message = found[0] if found else None
    notice = call.consider(typing.edit, message, params.op == "start")
    call.node.delivery.publish(notice)
    return Answer()
