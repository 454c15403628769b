"""Messages that are sent later."""

from typing import Annotated, Literal

from msgspec import Meta

from tertulia.domain.messages import scheduled
from tertulia.service.messages import scheduling
from tertulia.service.messages.scheduling import ScheduledEdit
from tertulia.wire.api.objects.scheduled import ScheduledMessageObject, scheduled_object
from tertulia.wire.api.resources.messages import SentMessage, counts_as_read, sent_message
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
    scheduled_id = await scheduling.schedule_message(
        call,
        scheduling.destination(_is_direct(params.type), _ids(params.to), params.topic),
        params.content,
        params.scheduled_delivery_timestamp,
        client=call.client,
        read_by_sender=counts_as_read(call, params.read_by_sender),
    )
    return NewScheduled(scheduled_message_id=scheduled_id)


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


async def edit_scheduled_message(call: Call, params: EditScheduled) -> Answer:
    """Change a message that waits, or when it is sent."""
    edit = ScheduledEdit(
        is_direct=None if params.type is None else _is_direct(params.type),
        to=None if params.to is None else _ids(params.to),
        topic=params.topic,
        content=params.content,
        deliver_at=params.scheduled_delivery_timestamp,
    )
    await scheduling.change_scheduled(call, params.scheduled_message_id, edit, client=call.client)
    return Answer()


class DeleteScheduled(Params, kw_only=True, frozen=True):
    """A message that is not to be sent."""

    scheduled_message_id: Annotated[Int, Path()]


async def delete_scheduled_message(call: Call, params: DeleteScheduled) -> Answer:
    """Do not send a message that waits."""
    await call.submit(scheduled.delete, params.scheduled_message_id)
    return Answer()


class SendScheduled(Params, kw_only=True, frozen=True):
    """A message that is to be sent before its time."""

    scheduled_message_id: Annotated[Int, Path()]


async def send_scheduled_message(call: Call, params: SendScheduled) -> SentMessage:
    """Send a message that waits now: in one step, so that asked twice it is sent once."""
    return sent_message(await scheduling.send_scheduled_now(call, params.scheduled_message_id))


def _is_direct(kind: Kind) -> bool:
    return kind in {"direct", "private"}


def _ids(to: To) -> list[int]:
    return to if isinstance(to, list) else [to]
