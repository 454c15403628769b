"""How agents name channels."""

from typing import Annotated

from msgspec import Meta

from tertulia.model.channels import Channel
from tertulia.model.errors import NoSuchChannel
from tertulia.wire.mcp.tool import Number, ToolCall

ChannelRef = Annotated[
    Number | Annotated[str, Meta(max_length=200)], Meta(description="A channel's ID or name.")
]


def channel_called(call: ToolCall, ref: int | str) -> Channel:
    """The channel of that ID or name. NoSuchChannel where the agent may not know of it."""
    if isinstance(ref, int):
        return call.agent.channel(ref)
    named = call.agent.state.channel_named(ref)
    if named is None:
        raise NoSuchChannel(name=ref)
    try:
        return call.agent.channel(named.id)
    except NoSuchChannel:
        raise NoSuchChannel(name=ref) from None
