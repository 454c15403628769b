"""Telling others that one types, or edits a message."""

from typing import Annotated, Literal

from msgspec import Meta

from tertulia.model.errors import Refused
from tertulia.service.messages import typing
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
            raise Refused("The recipients are missing: set 'to'.")
        typing.type_to_people(call, params.to, started=started)
    else:
        if params.stream_id is None:
            raise Refused("The channel is missing: set 'stream_id'.")
        if params.topic is None:
            raise Refused("The topic is missing.")
        typing.type_in_topic(call, params.stream_id, params.topic, started=started)
    return Answer()


class SetTypingEdit(Params, kw_only=True, frozen=True):
    """Which message somebody began or ceased to edit."""

    message_id: Annotated[Int, Path()]
    op: Literal["start", "stop"]


async def set_typing_edit(call: Call, params: SetTypingEdit) -> Answer:
    """Tell those who read a message of the caller's that it is being edited, or no longer is."""
    await typing.type_edit(call, params.message_id, started=params.op == "start")
    return Answer()
