"""Event queues: registering one, reading it, deleting it; and what is not written down."""

import asyncio
import re
import uuid
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request

from tertulia.delivery import event_ids
from tertulia.domain import permissions
from tertulia.log.snapshots import state_only
from tertulia.model.errors import Refused
from tertulia.model.queues import Capabilities, QueueRecord, Registration
from tertulia.state.state import State
from tertulia.store.writing import QueueDeleted
from tertulia.wire.api import narrow, snapshot
from tertulia.wire.http.call import Call
from tertulia.wire.http.fragments import Fragment, TooLongForOneTurn, fragmented
from tertulia.wire.http.parameters import Params, Reads
from tertulia.wire.http.routing import ApiResponse, OpenAnswer

MOBILE_IDLE_SECONDS = 12 * 3600
MAX_IDLE_SECONDS = 7 * 86400


class ClientCapabilities(Struct, kw_only=True, frozen=True):
    """What a client says it understands."""

    notification_settings_null: bool = False
    bulk_message_deletion: bool = False
    user_avatar_url_field_optional: bool = False
    stream_typing_notifications: bool = False
    user_settings_object: bool = False
    linkifier_url_template: bool = False
    user_list_incomplete: bool = False
    include_deactivated_groups: bool = False
    archived_channels: bool = False
    empty_topic_name: bool = False
    simplified_presence_events: bool = False
    individual_emoji_changes: bool = False
    server_extensions: Annotated[
        bool,
        Meta(
            description="Of this server alone: what the organization has that the reference's"
            " interface does not: `realm_banners`, `realm_upload_quota_per_user_mib`, and their"
            " events (`realm`, `update`); and events of pinned messages (`pins`)."
        ),
    ] = False

    def model(self) -> Capabilities:
        """The same in the names of the domain. `user_settings_object` has no effect any more."""
        fields = msgspec.structs.asdict(self)
        fields.pop("user_settings_object")
        fields["channel_typing_notifications"] = fields.pop("stream_typing_notifications")
        return Capabilities(**fields)


_INCLUDE = {"true": "true", "false": "false", "partial": "partial", '"partial"': "partial"}


def read_include_subscribers(text: str) -> str:
    try:
        return _INCLUDE[text]
    except KeyError:
        raise ValueError("it must be true, false, or partial") from None


def _read_idle(text: str) -> int:
    if text in {"mobile", '"mobile"'}:
        return MOBILE_IDLE_SECONDS
    if not re.fullmatch("-?[0-9]{1,20}", text):
        raise ValueError('it must be a number of seconds or "mobile"')
    seconds = int(text)
    if seconds <= 0:
        raise ValueError("it must be positive")
    return min(seconds, MAX_IDLE_SECONDS)


class Register(Params, kw_only=True, frozen=True):
    """How a client wants to be told of changes, and what it wants to know at once."""

    apply_markdown: bool = False
    client_gravatar: bool | None = None
    include_subscribers: Annotated[
        str,
        Reads(read_include_subscribers, {"enum": [True, False, "partial"]}),
    ] = "false"
    slim_presence: bool = False
    presence_history_limit_days: Annotated[int, Meta(ge=0, le=36500)] = 14
    event_types: Annotated[
        Annotated[list[str], Meta(max_length=500)] | None,
        Meta(description="The events wanted; all by default."),
    ] = None
    fetch_event_types: Annotated[
        list[str] | None,
        Meta(description="The kinds of initial data wanted; as event_types by default."),
    ] = None
    all_public_streams: bool = False
    most_users: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Of this server alone: where the organization has more accounts,"
            " `realm_users` and `realm_non_active_users` have only the caller and those with whom"
            " the caller wrote last, `realm_users_incomplete` is true, groups with more members,"
            " or more than half as many, may name none, and `realm_user_groups_own` are the"
            " caller's. `GET /users` and"
            " `GET /user_groups` have the others. Null: all of them."
        ),
    ] = None
    client_capabilities: ClientCapabilities = ClientCapabilities()
    narrow: Annotated[
        list[tuple[str, str]],
        Meta(max_length=100, description="Only messages for which each (operator, operand) holds."),
    ] = []
    idle_queue_timeout: Annotated[
        int | None,
        Reads(_read_idle, {"oneOf": [{"type": "integer"}, {"const": "mobile"}]}),
        Meta(description="Seconds without a poll after which the queue goes; or `mobile`."),
    ] = None


Taken = tuple[dict[str, Any], list[Fragment]]


class Registered(OpenAnswer, kw_only=True):
    """The queue, and the initial data that was asked for (see the field list in the docs)."""

    queue_id: str | None
    last_event_id: int
    idle_queue_timeout_secs: int
    zulip_version: str
    zulip_feature_level: int
    zulip_merge_base: str
    service_feature_level: int


_QUEUE_NARROWS = {
    "channel": None,
    "topic": None,
    "sender": None,
    "is": {"dm", "starred", "unread", "mentioned", "alerted", "resolved"},
}


def _queue_narrow(terms: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    found = []
    for operator, operand in terms:
        name = narrow.ALIASES.get(operator, operator)
        value = "dm" if (name, operand) == ("is", "private") else operand
        operands = _QUEUE_NARROWS.get(name, set())
        if operands is not None and value not in operands:
            raise Refused(f"Operator {operator} {operand} isn't supported for event queues.")
        found.append((name, value))
    return tuple(found)


_KEPT_UP_BY = {"realm_user_groups": "user_group"}
"""Events that are asked for by the name of the data that they keep up, as well as by their own."""


def _event_types(wanted: Iterable[str]) -> tuple[str, ...]:
    types = set(wanted)
    return tuple(sorted(types | {_KEPT_UP_BY[one] for one in types if one in _KEPT_UP_BY}))


async def register(call: Call, params: Register) -> Registered:
    """Register an event queue, and fetch the state from which its events go on."""
    node = call.node
    user = call.user if call.user_id is not None else None
    if user is None and params.client_gravatar:
        raise Refused("You need to sign in to use 'client_gravatar'.")
    if user is None and params.include_subscribers != "false":
        raise Refused("You need to sign in to use 'include_subscribers'.")
    if user is not None and params.all_public_streams and permissions.is_guest(call.state, user):
        raise Refused("Guests can't receive events of all public channels.")
    if user is not None and not node.delivery.queues.has_room(user.id):
        raise Refused("Too many of this account's event queues are being polled.")
    gravatar = user is not None if params.client_gravatar is None else params.client_gravatar
    event_types = None if params.event_types is None else _event_types(params.event_types)
    registration = Registration(
        event_types=event_types,
        narrow=_queue_narrow(params.narrow),
        all_public_channels=params.all_public_streams,
        apply_markdown=params.apply_markdown,
        client_gravatar=gravatar,
        slim_presence=params.slim_presence,
        include_subscribers=params.include_subscribers,
        capabilities=params.client_capabilities.model(),
    )
    idle = params.idle_queue_timeout or node.config.queue_idle_seconds
    fetch = params.fetch_event_types
    if fetch is None:
        fetch = params.event_types
    made: list[QueueRecord] = []

    def queue(seq: int) -> QueueRecord:
        now = int(call.now)
        made.append(
            QueueRecord(
                id=str(uuid.uuid4()),
                user_id=0 if user is None else user.id,
                registration=registration,
                start=seq,
                created_at=now,
                seen_at=now,
                idle_timeout=idle,
                counted_from=event_ids.base_for(seq),
            )
        )
        return made[-1]

    def taken(state: State, fetch: Iterable[str] | None) -> Taken:
        return snapshot.taken(
            snapshot.SnapshotContext(
                state=state,
                node=node,
                viewer=None if user is None else state.users[user.id],
                registration=registration,
                presence_days=params.presence_history_limit_days,
                url=call.url,
                now=call.now,
                most_accounts=params.most_users,
            ),
            None if fetch is None else frozenset(fetch),
        )

    needs_reading = user is not None and (fetch is None or bool(snapshot.READS & set(fetch)))

    async def shot(conclude: Callable[[State, None], Taken]) -> Taken:
        return await node.log.snapshot(
            user.id if user is not None and needs_reading else None,
            state_only,
            conclude,
            None if user is None else queue,
        )

    try:
        data, kept = await shot(
            lambda state, _: node.fragments.in_one_turn(lambda: taken(state, fetch))
        )
    except TooLongForOneTurn:
        if made:
            node.log.note(QueueDeleted(made.pop().id), soon=False)
        wanted = snapshot.TYPES if fetch is None else snapshot.TYPES & set(fetch)

        def prepared() -> Taken:
            # What was read is loaded by now, unless it was evicted meanwhile.
            state = node.state
            is_loaded = user is None or not state.unread.missing(state, user.id)
            return taken(state, wanted if is_loaded else wanted - snapshot.READS)

        await node.fragments.in_turns(prepared)
        data, kept = await shot(lambda state, _: taken(state, fetch))
    if made:
        node.delivery.add(made[-1])
    queue_fields = {
        "queue_id": made[-1].id if made else None,
        "last_event_id": event_ids.of_queue(made[-1]).end_of(made[-1].start) if made else -1,
        "idle_queue_timeout_secs": idle,
    }
    return fragmented(Registered, {**queue_fields, **data}, kept)


class GetEvents(Params, kw_only=True, frozen=True):
    """A queue, and how far its client has come."""

    queue_id: str
    last_event_id: Annotated[int, Meta(ge=-1, le=2**53)]
    dont_block: bool = False


AnyEvent = Annotated[msgspec.Raw, Meta(extra_json_schema={"$ref": "#/components/schemas/Event"})]
"""An event, encoded already."""


class Events(ApiResponse, kw_only=True):
    """Events in ascending order of ID."""

    events: list[AnyEvent]
    queue_id: str


async def get_events(call: Call, params: GetEvents) -> Events:
    """The queue's events after one; where there is none yet, wait for it."""
    user = call.user
    poll = asyncio.ensure_future(
        call.node.delivery.poll(
            params.queue_id,
            user.id,
            params.last_event_id,
            block=not params.dont_block,
            session_id=call.session_id,
        )
    )
    gone = asyncio.ensure_future(_gone(call.request))
    try:
        await asyncio.wait({poll, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not poll.done():
            return Events(events=[], queue_id=params.queue_id)
        events = await poll
    finally:
        poll.cancel()
        gone.cancel()
    return Events(events=[msgspec.Raw(event) for event in events], queue_id=params.queue_id)


async def _gone(request: Request) -> None:
    """Returns when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class DeleteQueue(Params, kw_only=True, frozen=True):
    """A queue to delete."""

    queue_id: str


async def delete_queue(call: Call, params: DeleteQueue) -> ApiResponse:
    """Delete the queue."""
    await call.node.delivery.delete(params.queue_id, call.user.id)
    return ApiResponse()
