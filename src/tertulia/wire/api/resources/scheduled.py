"""Messages that are sent later."""

from typing import Annotated, Literal

from msgspec import Meta

from tertulia.domain import names
from tertulia.domain.messages import scheduled, sending
from tertulia.model.errors import Refused
from tertulia.model.scheduled import ScheduledMessage
from tertulia.service.composing import prepare_message
from tertulia.wire.api.objects.scheduled import ScheduledMessageObject, scheduled_object
from tertulia.wire.api.resources.messages import counts_as_read
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer

Kind = Literal["direct", "channel", "stream", "private"]
To = Int | list[Int]

_TO = Meta(description="The channel's ID; or user IDs.")
_TOPIC = Meta(description="Required for channel messages.")
_TIME = Meta(description="When to send it: UNIX seconds, to come.")
_CONTENT = Meta(description="Markdown, at most max_message_length characters.")


class GetScheduled(Params, kw_only=True, frozen=True):
    """No parameters."""


class Scheduled(Answer, kw_only=True):
    """What the caller has scheduled, in the order of its times."""

    scheduled_messages: list[ScheduledMessageObject]


async def get_scheduled_messages(call: Call, params: GetScheduled) -> Scheduled:
    """What the caller has scheduled, in the order of its times."""
    own = scheduled.of_user(call.state, call.user.id)
    return Scheduled(scheduled_messages=[scheduled_object(message) for message in own])


class ScheduleMessage(Params, kw_only=True, frozen=True):
    """A message to send later."""

    type: Kind
    to: Annotated[To, _TO]
    content: Annotated[str, _CONTENT]
    topic: Annotated[str | None, _TOPIC] = None
    scheduled_delivery_timestamp: Annotated[Int, _TIME]
    read_by_sender: Annotated[
        bool | None,
        Meta(description="Whether it is read already; by default, for programs people write in."),
    ] = None


class NewScheduled(Answer, kw_only=True):
    """The ID of what waits; the message will have another."""

    scheduled_message_id: int


async def schedule_message(call: Call, params: ScheduleMessage) -> NewScheduled:
    """Send a message later."""
    draft = await prepare_message(
        call.node,
        call.user,
        _destination(_is_direct(params.type), params.to, params.topic),
        names.message_content(params.content),
        author_id=call.user.id,
        client=call.client,
        read_by_sender=counts_as_read(call, params.read_by_sender),
    )
    at = params.scheduled_delivery_timestamp
    return NewScheduled(scheduled_message_id=await call.submit(scheduled.schedule, draft, at))


class EditScheduled(Params, kw_only=True, frozen=True):
    """What a message that waits shall be; what is not sent stays."""

    scheduled_message_id: Annotated[Int, Path()]
    type: Annotated[Kind | None, Meta(description="Needs `to`, and for channels `topic`.")] = None
    to: Annotated[To | None, _TO] = None
    topic: Annotated[str | None, _TOPIC] = None
    content: Annotated[str | None, _CONTENT] = None
    scheduled_delivery_timestamp: Annotated[
        Int | None, Meta(description="One that could not be sent needs another time.")
    ] = None

    @property
    def concerns_message(self) -> bool:
        """Whether more than the time is to change."""
        parts = (self.type, self.to, self.topic, self.content)
        return any(part is not None for part in parts)


async def edit_scheduled_message(call: Call, params: EditScheduled) -> Answer:
    """Change a message that waits, or when it is sent."""
    at = params.scheduled_delivery_timestamp
    if at is None and not params.concerns_message:
        raise Refused("There is nothing to change.")
    while True:
        before = scheduled.own(call.state, call.user.id, params.scheduled_message_id)
        draft = await _rewritten(call, before, params) if params.concerns_message else None
        # Somebody else may have changed it while this was written: then once more.
        if await call.submit(scheduled.change, before, draft, at):
            return Answer()


class DeleteScheduled(Params, kw_only=True, frozen=True):
    """A message that is not to be sent."""

    scheduled_message_id: Annotated[Int, Path()]


async def delete_scheduled_message(call: Call, params: DeleteScheduled) -> Answer:
    """Do not send a message that waits."""
    await call.submit(scheduled.delete, params.scheduled_message_id)
    return Answer()


async def _rewritten(call: Call, before: ScheduledMessage, params: EditScheduled) -> sending.Draft:
    content = before.content
    if params.content is not None:
        content = names.message_content(params.content)
    return await prepare_message(
        call.node,
        call.user,
        _redirected(before, params),
        content,
        author_id=call.user.id,
        client=call.client,
        read_by_sender=before.read_by_sender,
    )


def _redirected(
    before: ScheduledMessage, params: EditScheduled
) -> sending.ToChannel | sending.ToPeople:
    if params.type is not None:
        if params.to is None:
            raise Refused("Another type needs a recipient: 'to'.")
        return _destination(_is_direct(params.type), params.to, params.topic)
    if before.channel_id is None:
        if params.to is None:
            return scheduled.destination(before)
        return _destination(True, params.to, None)
    to = before.channel_id if params.to is None else params.to
    return _destination(False, to, before.topic if params.topic is None else params.topic)


def _is_direct(kind: Kind) -> bool:
    return kind in {"direct", "private"}


def _destination(
    is_direct: bool, to: To, topic: str | None
) -> sending.ToChannel | sending.ToPeople:
    ids = to if isinstance(to, list) else [to]
    if is_direct:
        if not ids:
            raise Refused("The message is addressed to nobody.")
        return sending.ToPeople(frozenset(ids))
    if len(ids) != 1:
        raise Refused("A message goes to one channel.")
    if topic is None:
        raise Refused("The topic is missing.")
    return sending.ToChannel(topic=topic, channel_id=ids[0])
