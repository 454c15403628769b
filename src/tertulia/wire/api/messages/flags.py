"""Events of the flags that readers have on messages, and of what they have read."""

from collections.abc import Hashable, Iterable
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import personal
from tertulia.domain.messages.flags import FlagUpdate
from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.domain.names import topic_name
from tertulia.model.changes import FlagsChanged, MessagesRead, MessagesUnread
from tertulia.model.errors import NoSuchMessage, Refused
from tertulia.model.messages import Flag, Message
from tertulia.model.users import User
from tertulia.service.messages import flags
from tertulia.service.messages.history import find_messages
from tertulia.service.messages.reading import readable_message
from tertulia.state.state import State
from tertulia.store import message_details
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.api.events import Event
from tertulia.wire.api.messages.flag_objects import flag_names
from tertulia.wire.api.messages.pages import GetMessages
from tertulia.wire.api.projection import ForOwner, ProjectionContext, Projections, Viewer, to_owner
from tertulia.wire.api.topics import topic_shown
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Alias, Int, Params, Path, Reads
from tertulia.wire.http.routing import ApiResponse


class UnreadDetails(Struct, kw_only=True):
    """Where a message is that became unread."""

    type: str
    mentioned: bool | UnsetType = UNSET
    user_ids: list[int] | UnsetType = UNSET
    stream_id: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET


class FlagsEvent(Event, kw_only=True, tag="update_message_flags"):
    """One's own messages gained or lost a flag. `operation` is what `op` was called before."""

    op: str
    operation: str
    flag: str
    messages: list[int]
    all: bool
    message_details: dict[str, UnreadDetails] | UnsetType = UNSET


def flags_event(
    op: str, flag: str, message_ids: Iterable[int], *, everything: bool = False
) -> FlagsEvent:
    """The messages gained the flag (`add`) or lost it (`remove`)."""
    return FlagsEvent(op=op, operation=op, flag=flag, messages=list(message_ids), all=everything)


class MessagesUnreadProjection(ForOwner[MessagesUnread]):
    """What one made unread again, to one's other clients."""

    of = MessagesUnread

    def view(self, context: ProjectionContext, change: MessagesUnread, viewer: Viewer) -> Hashable:
        return viewer.registration.capabilities.empty_topic_name

    def events(
        self, context: ProjectionContext, change: MessagesUnread, view: Any
    ) -> Iterable[Event]:
        details = {}
        for message in change.messages:
            mentioned = True if message.mentioned else UNSET
            if message.channel_id is None:
                details[str(message.id)] = UnreadDetails(
                    type="private", user_ids=list(message.others), mentioned=mentioned
                )
            else:
                details[str(message.id)] = UnreadDetails(
                    type="stream",
                    stream_id=message.channel_id,
                    topic=topic_shown(message.topic, empty_topic_name=view),
                    mentioned=mentioned,
                )
        event = flags_event("remove", "read", [message.id for message in change.messages])
        event.message_details = details
        yield event


def _flag_changed(_: ProjectionContext, change: FlagsChanged) -> FlagsEvent:
    (name,) = flag_names(Flag(change.flag), read=False)
    return flags_event("add" if change.added else "remove", name, change.message_ids)


def _read(_: ProjectionContext, change: MessagesRead) -> FlagsEvent:
    ids = () if change.everything else change.message_ids
    return flags_event("add", "read", ids, everything=change.everything)


class UpdateFlags(Params, kw_only=True, frozen=True):
    """A flag to set or clear on messages."""

    messages: Annotated[list[Int], Meta(max_length=10_000)]
    op: Annotated[Literal["add", "remove"], Alias("operation")]
    flag: str


class UpdatedFlags(ApiResponse, kw_only=True):
    """The messages that have the flag as asked now."""

    messages: list[int]
    ignored_because_not_subscribed_channels: list[int]


_SETTABLE = {"starred": Flag.STARRED, "collapsed": Flag.COLLAPSED}


async def update_flags(call: Call, params: UpdateFlags) -> UpdatedFlags:
    """Mark messages as read or unread, starred, collapsed, or not."""
    _check_settable(params.flag)
    updated = await _update(call, params.messages, params.flag, add=params.op == "add")
    return UpdatedFlags(
        messages=params.messages, ignored_because_not_subscribed_channels=sorted(updated.ignored)
    )


def _check_settable(flag: str) -> None:
    if flag != "read" and flag not in _SETTABLE:
        raise Refused(f"The flag '{flag[:50]}' doesn't exist or can't be changed.")


async def _update(call: Call, ids: list[int], flag: str, *, add: bool) -> FlagUpdate:
    if flag != "read":
        return await flags.set_flag(call, ids, _SETTABLE[flag], added=add)
    return await (flags.mark_read if add else flags.mark_unread)(call, ids)


class UpdateFlagsInNarrow(Params, kw_only=True, frozen=True):
    """A flag to set or clear on a page of messages."""

    anchor: Annotated[
        str, Meta(description="As for GET /messages: an ID, `newest`, `oldest`, `first_unread`, …")
    ]
    anchor_date: Annotated[str | None, Meta(description="ISO 8601.")] = None
    include_anchor: bool = True
    num_before: Annotated[int, Meta(ge=0, le=2**31)]
    num_after: Annotated[int, Meta(ge=0, le=2**31)]
    narrow: Annotated[
        tuple[NarrowTerm, ...],
        Reads(wire_narrow.read, wire_narrow.SCHEMA),
        Meta(description="Terms that must all hold; empty for all messages received."),
    ]
    op: Annotated[Literal["add", "remove"], Alias("operation")]
    flag: str


class UpdatedPage(ApiResponse, kw_only=True):
    """How far the page went, and how many of its messages have changed."""

    processed_count: int
    updated_count: int
    first_processed_id: int | None
    last_processed_id: int | None
    found_oldest: bool
    found_newest: bool
    ignored_because_not_subscribed_channels: list[int]


async def update_flags_in_narrow(call: Call, params: UpdateFlagsInNarrow) -> UpdatedPage:
    """Set or clear a flag on the messages of a narrow, a page at a time."""
    _check_settable(params.flag)
    page = GetMessages(
        anchor=params.anchor,
        anchor_date=params.anchor_date,
        include_anchor=params.include_anchor,
        num_before=params.num_before,
        num_after=params.num_after,
        narrow=params.narrow,
    )
    found = (await find_messages(call.node, call.user, page.query(), extras=False)).page
    ids = [message.id for message in found.messages]
    updated = await _update(call, ids, params.flag, add=params.op == "add")
    return UpdatedPage(
        processed_count=len(ids),
        updated_count=updated.changed,
        first_processed_id=ids[0] if ids else None,
        last_processed_id=ids[-1] if ids else None,
        found_oldest=found.found_oldest,
        found_newest=found.found_newest,
        ignored_because_not_subscribed_channels=sorted(updated.ignored),
    )


class MarkAll(Params, kw_only=True, frozen=True):
    """Everything that is unread."""


class Marked(ApiResponse, kw_only=True):
    """Whether nothing is left to mark; otherwise ask again."""

    complete: bool


async def mark_all_as_read(call: Call, params: MarkAll) -> Marked:
    """Mark everything as read."""
    return Marked(complete=await flags.mark_all_read(call))


class MarkChannel(Params, kw_only=True, frozen=True):
    """A channel whose messages one has read."""

    stream_id: Int


async def mark_stream_as_read(call: Call, params: MarkChannel) -> ApiResponse:
    """Mark a channel's messages as read."""
    await flags.mark_channel_read(call, params.stream_id)
    return ApiResponse()


class MarkTopic(Params, kw_only=True, frozen=True):
    """A topic whose messages one has read."""

    stream_id: Int
    topic_name: str


async def mark_topic_as_read(call: Call, params: MarkTopic) -> ApiResponse:
    """Mark a topic's messages as read."""
    topic = topic_name(params.topic_name)
    await flags.mark_topic_read(call, params.stream_id, topic)
    return ApiResponse()


class OfMessage(Params, kw_only=True, frozen=True):
    """A message."""

    message_id: Annotated[Int, Path()]


class ReadReceipts(ApiResponse, kw_only=True):
    """Who has read it, as far as they let others know."""

    user_ids: list[int]


async def get_read_receipts(call: Call, params: OfMessage) -> ReadReceipts:
    """Who has read a message: without its sender, bots, deactivated users, those who do not let
    others know, those whom the caller has muted, or who have muted the caller, and those of whom
    the caller may not know."""
    message = await readable_message(call.node, call.user, params.message_id)
    if message is None:
        raise NoSuchMessage
    if not call.state.realm.enable_read_receipts:
        raise Refused("This organization doesn't show read receipts.")
    holders = await call.node.store.read(message_details.holders, message.id)
    shown = _shown(call.state, message, call.user, holders)
    read = await call.node.store.read(message_details.have_read, message.id, shown)
    return ReadReceipts(user_ids=read)


def _shown(state: State, message: Message, viewer: User, holders: tuple[int, ...]) -> list[int]:
    """The people whose reading of the message the viewer may be told of."""
    if message.channel_id is None:
        received = set(state.directs[message.direct_id].members)
    else:
        ever = state.subscriptions.of_channel[message.channel_id]
        received = {u for u, subscription in ever.items() if subscription.covers(message.id)}
    apart = personal.muted_either_way(state, viewer.id)
    return [
        user_id
        for user_id in sorted(received.union(holders) - apart - {message.sender_id})
        if state.users[user_id].is_active
        and not state.users[user_id].is_bot
        and (settings := state.settings.get(user_id)) is not None
        and settings.send_read_receipts
        and permissions.sees_user(state, viewer, state.users[user_id])
    ]


PROJECTIONS: Final[Projections] = (
    to_owner(FlagsChanged, _flag_changed),
    to_owner(MessagesRead, _read),
    MessagesUnreadProjection(),
)
