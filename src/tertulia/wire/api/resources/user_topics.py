"""How one wants to hear of topics."""

from typing import Annotated, Literal

from msgspec import Meta

from tertulia.domain.channels import user_topics
from tertulia.model.errors import Refused
from tertulia.model.user_topics import Visibility
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params
from tertulia.wire.http.routing import Answer


class SetUserTopic(Params, kw_only=True, frozen=True):
    """How to hear of a topic, which need not have messages."""

    stream_id: Int
    topic: str
    visibility_policy: Annotated[
        Literal[0, 1, 2, 3],
        Meta(description="0 as of its channel, 1 muted, 2 unmuted, 3 followed."),
    ]


async def set_user_topic(call: Call, params: SetUserTopic) -> Answer:
    """Follow, mute or unmute a topic for oneself."""
    await call.submit(
        user_topics.set_visibility,
        params.stream_id,
        params.topic,
        Visibility(params.visibility_policy),
    )
    return Answer()


class UpdateMutedTopics(Params, kw_only=True, frozen=True):
    """A topic of a channel, which is named by its ID or its name."""

    topic: str
    op: Literal["add", "remove"]
    stream_id: Int | None = None
    stream: str | None = None


async def update_muted_topics(call: Call, params: UpdateMutedTopics) -> Answer:
    """Mute a topic for oneself, or not any more: the older form of POST /user_topics."""
    channel: int | str | None = params.stream if params.stream_id is None else params.stream_id
    if channel is None or (params.stream_id is not None and params.stream is not None):
        raise Refused("Give either the channel's ID or its name, but not both.")
    await call.submit(user_topics.mute, channel, params.topic, params.op == "add")
    return Answer()
