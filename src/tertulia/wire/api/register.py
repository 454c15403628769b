"""Event queues: registering, reading, and deleting them."""

import asyncio
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request

from tertulia.delivery.queue import base_for, numbering_of
from tertulia.domain import permissions
from tertulia.log.snapshots import state_only
from tertulia.model.errors import Refused
from tertulia.model.queues import Capabilities, QueueRecord, Registration
from tertulia.store.notes import QueueDeleted
from tertulia.wire.api import narrow, reached_events, sections
from tertulia.wire.api.section import MadeOnce, SectionContext
from tertulia.wire.http.parameters import Doc, Reads
from tertulia.wire.http.responses import Fragment, TooLongForOneStep, fragmented
from tertulia.wire.http.routing import ApiResponse, Call, OpenApiResponse

MOBILE_IDLE_SECONDS = 12 * 3600
MAX_IDLE_SECONDS = 7 * 86400


class ClientCapabilities(Struct, kw_only=True, frozen=True):
    """The features that a client supports."""

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
        Doc(
            "Tertulia only: get `realm_banners`, `realm_upload_quota_per_user_mib`, and their"
            " events (`realm`, `update`), which Zulip doesn't have, and events of pinned messages"
            " (`pins`)."
        ),
    ] = False

    def model(self) -> Capabilities:
        """Return the capabilities by the domain's names. `user_settings_object` no longer has an
        effect."""
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


_NO_CAPABILITIES = ClientCapabilities()


Fetched = tuple[dict[str, Any], list[Fragment]]


class RegisterResponse(OpenApiResponse, kw_only=True):
    """The queue, and the initial data that was requested."""

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


def _queue_narrow(terms: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    narrowed = []
    for operator, operand in terms:
        name = narrow.ALIASES.get(operator, operator)
        value = "dm" if (name, operand) == ("is", "private") else operand
        operands = _QUEUE_NARROWS.get(name, set())
        if operands is not None and value not in operands:
            raise Refused(f"Operator {operator} {operand} isn't supported for event queues.")
        narrowed.append((name, value))
    return tuple(narrowed)


_EVENTS_OF_DATA = {"realm_user_groups": "user_group"}
"""Event types that clients may also request by the name of the initial data they update."""


def _event_types(requested: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*requested, *(_EVENTS_OF_DATA.get(text, text) for text in requested)}))


async def register(
    call: Call,
    apply_markdown: bool = False,
    client_gravatar: bool | None = None,
    include_subscribers: Annotated[
        str,
        Reads(read_include_subscribers, {"enum": [True, False, "partial"]}),
    ] = "false",
    slim_presence: bool = False,
    presence_history_limit_days: Annotated[int, Meta(ge=0, le=36500)] = 14,
    event_types: Annotated[
        Annotated[list[str], Meta(max_length=500)] | None,
        Doc("The types of events to receive; all by default."),
    ] = None,
    fetch_event_types: Annotated[
        list[str] | None, Doc("The types of initial data to return; `event_types` by default.")
    ] = None,
    all_public_streams: bool = False,
    most_users: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Doc(
            "Tertulia only: if the organization has more accounts than this, `realm_users` and"
            " `realm_non_active_users` contain only you and the people in your most recent direct"
            " conversations, and `realm_users_incomplete` is true. Groups with more members than"
            " this, or than half of it, may have an empty member list, and"
            " `realm_user_groups_own` lists your groups. Get the rest from GET /users and GET"
            " /user_groups. Null returns all accounts."
        ),
    ] = None,
    client_capabilities: ClientCapabilities = _NO_CAPABILITIES,
    narrow: Annotated[
        Sequence[tuple[str, str]],
        Meta(
            max_length=100,
            description="Receive only messages that match each [operator, operand] pair.",
        ),
    ] = (),
    idle_queue_timeout: Annotated[
        int | None,
        Reads(_read_idle, {"oneOf": [{"type": "integer"}, {"const": "mobile"}]}),
        Doc(
            "The number of seconds without a request after which the queue is deleted, or"
            " `mobile` for 12 hours."
        ),
    ] = None,
) -> RegisterResponse:
    """Register an event queue, and get the initial data that its events update."""
    node = call.node
    user = call.user if call.user_id is not None else None
    if user is None and client_gravatar:
        raise Refused("You need to sign in to use 'client_gravatar'.")
    if user is None and include_subscribers != "false":
        raise Refused("You need to sign in to use 'include_subscribers'.")
    if user is not None and all_public_streams and permissions.is_guest(call.state, user):
        raise Refused("Guests can't receive events of all public channels.")
    if user is not None and not node.delivery.queues.has_room(user.id):
        raise Refused("Too many of this account's event queues are in use. Delete one and retry.")
    fetch: Iterable[str] | None = fetch_event_types
    if fetch is None:
        fetch = event_types
    if user is not None and user.reach is not None:
        event_types, fetch = reached_events.allowed_types(event_types, fetch_event_types)
    gravatar = user is not None if client_gravatar is None else client_gravatar
    registration = Registration(
        event_types=None if event_types is None else _event_types(event_types),
        narrow=_queue_narrow(narrow),
        all_public_channels=all_public_streams,
        apply_markdown=apply_markdown,
        client_gravatar=gravatar,
        slim_presence=slim_presence,
        include_subscribers=include_subscribers,
        capabilities=client_capabilities.model(),
        key_id=call.key_id,
    )
    idle = idle_queue_timeout or node.config.queue_idle_seconds
    queues: list[QueueRecord] = []

    def queue(seq: int) -> QueueRecord:
        now = int(call.now)
        queues.append(
            QueueRecord(
                id=str(uuid.uuid4()),
                user_id=0 if user is None else user.id,
                registration=registration,
                start=seq,
                created_at=now,
                seen_at=now,
                idle_timeout=idle,
                counted_from=base_for(seq),
            )
        )
        return queues[-1]

    made: dict[int, MadeOnce] = {}

    def context() -> SectionContext:
        return SectionContext(
            state=node.state,
            node=node,
            viewer=None if user is None else call.user,
            registration=registration,
            presence_days=presence_history_limit_days,
            url=call.url,
            now=call.now,
            most_accounts=most_users,
            made=made,
        )

    types = None if fetch is None else frozenset(fetch)

    def fetched() -> Fetched:
        return sections.fetched(context(), types)

    needs_reading = user is not None and (fetch is None or bool(sections.READS & set(fetch)))

    async def snapshot(conclude: Callable[[], Fetched]) -> Fetched:
        return await node.log.snapshot(
            user.id if user is not None and needs_reading else None,
            state_only,
            lambda *_: conclude(),
            None if user is None else queue,
        )

    steps = node.fragments
    pending = sections.requested(types)

    def prepare() -> None:
        # The viewer's read state is loaded by now, unless it was evicted in the meantime.
        is_loaded = user is None or not node.state.unread.missing(node.state, user.id)
        sections.prepare(context(), pending, reads=is_loaded)

    if user is not None and needs_reading:
        # Loaded before the turn, so that others don't wait for the database.
        await node.log.with_unread(user.id, lambda _: None)
    async with steps.turns.turn(call.request) if pending else nullcontext():
        try:
            data, fragments = await snapshot(lambda: steps.in_one_step(fetched))
        except TooLongForOneStep:
            if queues:
                node.log.note(QueueDeleted(queues.pop().id), soon=False)
            await steps.turns.rest()
            await steps.in_steps(prepare)
            data, fragments = await snapshot(lambda: steps.turns.step(fetched))
    last_event_id = -1
    if queues:
        node.delivery.add(queues[-1])
        last_event_id = numbering_of(queues[-1]).end_of(queues[-1].start)
    queue_fields = {
        "queue_id": queues[-1].id if queues else None,
        "last_event_id": last_event_id,
        "idle_queue_timeout_secs": idle,
    }
    return fragmented(RegisterResponse, {**queue_fields, **data}, fragments)


AnyEvent = Annotated[msgspec.Raw, Meta(extra_json_schema={"$ref": "#/components/schemas/Event"})]
"""An encoded event."""


class EventsResponse(ApiResponse, kw_only=True):
    """Events in ascending order of ID."""

    events: list[AnyEvent]
    queue_id: str


async def get_events(
    call: Call,
    queue_id: str,
    last_event_id: Annotated[
        int,
        Meta(ge=-1, le=2**53, description="The ID of the last event you handled, or -1 for none."),
    ],
    dont_block: Annotated[
        bool, Doc("Respond immediately, even if there are no new events.")
    ] = False,
) -> EventsResponse:
    """Get new events of a queue, waiting until there is one."""
    user = call.user
    poll = asyncio.ensure_future(
        call.node.delivery.poll(
            queue_id,
            user.id,
            last_event_id,
            block=not dont_block,
            session_id=call.session_id,
            key_id=call.key_id,
        )
    )
    gone = asyncio.ensure_future(_gone(call.request))
    try:
        await asyncio.wait({poll, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not poll.done():
            return EventsResponse(events=[], queue_id=queue_id)
        events = await poll
    finally:
        poll.cancel()
        gone.cancel()
    return EventsResponse(events=[msgspec.Raw(event) for event in events], queue_id=queue_id)


async def _gone(request: Request) -> None:
    """Wait until the client closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def delete_queue(call: Call, queue_id: str) -> None:
    """Delete an event queue."""
    await call.node.delivery.delete(queue_id, call.user.id, call.key_id)
