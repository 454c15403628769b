"""Flags of messages, read state, and read receipts."""

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import names, permissions
from tertulia.domain.accounts import personal
from tertulia.domain.messages import flags
from tertulia.domain.messages.flags import FlagUpdate
from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.model.changes import FlagsChanged, MessagesRead, MessagesUnread, ReadStateImported
from tertulia.model.errors import NoSuchMessage, Refused
from tertulia.model.messages import Flag, Message
from tertulia.model.users import User
from tertulia.service.messages import flags as service
from tertulia.service.messages.history import MAX_PAGE, find_messages
from tertulia.service.messages.reading import readable_message
from tertulia.state.state import State
from tertulia.store import message_marks
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.api.events import Event
from tertulia.wire.api.messages.flag_objects import flag_names
from tertulia.wire.api.messages.pages import GetMessages
from tertulia.wire.api.projection import (
    ProjectionContext,
    Projections,
    owner,
    projected,
    to_owner,
    unseen,
)
from tertulia.wire.api.topics import display_topic
from tertulia.wire.http.parameters import Alias, Doc, Int, IntPath, Reads
from tertulia.wire.http.routing import ApiResponse, Call


class UnreadDetails(Struct, kw_only=True):
    """The conversation of a message that was marked as unread."""

    type: str
    mentioned: bool | UnsetType = UNSET
    user_ids: list[int] | UnsetType = UNSET
    stream_id: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET


class FlagsEvent(Event, kw_only=True, tag="update_message_flags"):
    """A flag was added to messages or removed from them. `operation` is the older name of `op`."""

    op: str
    operation: str
    flag: str
    messages: list[int]
    all: bool
    message_details: dict[str, UnreadDetails] | UnsetType = UNSET


def flags_event(
    op: str, flag: str, message_ids: Iterable[int], *, everything: bool = False
) -> FlagsEvent:
    return FlagsEvent(op=op, operation=op, flag=flag, messages=list(message_ids), all=everything)


def _unread(_: ProjectionContext, change: MessagesUnread, view: Any) -> Iterable[Event]:
    details = {}
    for message in change.messages:
        mentioned = True if message.mentioned else UNSET
        if message.channel_id is None:
            unread = UnreadDetails(
                type="private", user_ids=list(message.others), mentioned=mentioned
            )
        else:
            topic = display_topic(message.topic, empty_topic_name=view)
            unread = UnreadDetails(
                type="stream", stream_id=message.channel_id, topic=topic, mentioned=mentioned
            )
        details[str(message.id)] = unread
    event = flags_event("remove", "read", [message.id for message in change.messages])
    event.message_details = details
    yield event


def _flag_changed(_: ProjectionContext, change: FlagsChanged) -> FlagsEvent:
    (name,) = flag_names(Flag(change.flag), read=False)
    return flags_event("add" if change.added else "remove", name, change.message_ids)


def _read(_: ProjectionContext, change: MessagesRead) -> FlagsEvent:
    ids = () if change.everything else change.message_ids
    return flags_event("add", "read", ids, everything=change.everything)


class UpdateFlagsResponse(ApiResponse, kw_only=True):
    """The processed messages, and the channels whose messages stayed read because you aren't
    subscribed."""

    messages: list[int]
    ignored_because_not_subscribed_channels: list[int]


_SETTABLE = {"starred": Flag.STARRED, "collapsed": Flag.COLLAPSED}


async def update_flags(
    call: Call,
    messages: Annotated[list[Int], Meta(max_length=10_000)],
    op: Annotated[Literal["add", "remove"], Alias("operation")],
    flag: str,
) -> UpdateFlagsResponse:
    """Add a flag to messages, or remove it: `read`, `starred`, or `collapsed`."""
    _check_settable(flag)
    updated = await _update(call, messages, flag, add=op == "add")
    return UpdateFlagsResponse(
        messages=messages, ignored_because_not_subscribed_channels=sorted(updated.ignored)
    )


def _check_settable(flag: str) -> None:
    if flag != "read" and flag not in _SETTABLE:
        raise Refused(f"The flag '{flag[:50]}' doesn't exist or can't be changed.")


async def _update(call: Call, ids: list[int], flag: str, *, add: bool) -> FlagUpdate:
    known = await service.known_messages(call, ids)
    if flag != "read":
        return await call.submit(flags.change, known, _SETTABLE[flag], add)
    return await call.submit(flags.mark_read if add else flags.mark_unread, known)


class UpdateFlagsInNarrowResponse(ApiResponse, kw_only=True):
    """The range of messages that were processed, and the number of changed messages."""

    processed_count: int
    updated_count: int
    first_processed_id: int | None
    last_processed_id: int | None
    found_oldest: bool
    found_newest: bool
    ignored_because_not_subscribed_channels: list[int]


async def update_flags_in_narrow(
    call: Call,
    *,
    anchor: Annotated[
        str,
        Doc("A message ID, `newest`, `oldest`, `first_unread`, or `date`, as for GET /messages."),
    ],
    anchor_date: Annotated[str | None, Doc("ISO 8601.")] = None,
    include_anchor: bool = True,
    num_before: Annotated[int, Meta(ge=0, le=2**31)],
    num_after: Annotated[int, Meta(ge=0, le=2**31)],
    narrow: Annotated[
        tuple[NarrowTerm, ...],
        Reads(wire_narrow.read, wire_narrow.SCHEMA),
        Doc("Terms that messages have to match; empty for all messages you received."),
    ],
    op: Annotated[Literal["add", "remove"], Alias("operation")],
    flag: str,
) -> UpdateFlagsInNarrowResponse:
    """Add or remove a flag on a page of messages that match a narrow. A larger page than the server
    processes at a time is shortened."""
    _check_settable(flag)
    num_before = min(num_before, max(MAX_PAGE - num_after, MAX_PAGE // 2))
    page = GetMessages(
        anchor=anchor,
        anchor_date=anchor_date,
        include_anchor=include_anchor,
        num_before=num_before,
        num_after=min(num_after, MAX_PAGE - num_before),
        narrow=narrow,
    )
    matches = (await find_messages(call.node, call.user, page.query(), extras=False)).page
    ids = [message.id for message in matches.messages]
    updated = await _update(call, ids, flag, add=op == "add")
    return UpdateFlagsInNarrowResponse(
        processed_count=len(ids),
        updated_count=updated.changed,
        first_processed_id=ids[0] if ids else None,
        last_processed_id=ids[-1] if ids else None,
        found_oldest=matches.found_oldest,
        found_newest=matches.found_newest,
        ignored_because_not_subscribed_channels=sorted(updated.ignored),
    )


class MarkAllAsReadResponse(ApiResponse, kw_only=True):
    """Whether all messages were marked. If false, send the request again."""

    complete: bool


async def mark_all_as_read(call: Call) -> MarkAllAsReadResponse:
    """Mark all messages as read."""
    complete = await service.submit_with_unread(call, flags.mark_everything_read)
    return MarkAllAsReadResponse(complete=complete)


async def mark_stream_as_read(call: Call, stream_id: Int) -> None:
    """Mark all messages in a channel as read."""
    await service.submit_with_unread(call, flags.mark_channel_read, stream_id)


async def mark_topic_as_read(call: Call, stream_id: Int, topic_name: str) -> None:
    """Mark all messages in a topic as read."""
    topic = names.topic_name(topic_name)
    await service.submit_with_unread(call, flags.mark_topic_read, stream_id, topic)


class ReadReceiptsResponse(ApiResponse, kw_only=True):
    """The IDs of users who have read the message and share read receipts."""

    user_ids: list[int]


async def get_read_receipts(call: Call, message_id: IntPath) -> ReadReceiptsResponse:
    """List the users who have read a message. The list leaves out its sender, deactivated users,
    users who don't share read receipts, users you muted or who muted you, and users you can't
    see."""
    message = await readable_message(call.node, call.user, message_id)
    if message is None:
        raise NoSuchMessage
    if not call.state.realm.enable_read_receipts:
        raise Refused("This organization doesn't show read receipts.")
    holders = await call.node.store.read(message_marks.holders, message.id)
    readers = _visible_readers(call.state, message, call.user, holders)
    read = await call.node.store.read(message_marks.have_read, message.id, readers)
    return ReadReceiptsResponse(user_ids=read)


def _visible_readers(
    state: State, message: Message, viewer: User, holders: tuple[int, ...]
) -> list[int]:
    """Return the users whose read state of the message the viewer may see."""
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
        and (settings := state.settings.get(user_id)) is not None
        and settings.send_read_receipts
        and permissions.sees_user(state, viewer, state.users[user_id])
    ]


PROJECTIONS: Final[Projections] = (
    to_owner(FlagsChanged, _flag_changed),
    to_owner(MessagesRead, _read),
    unseen(ReadStateImported),  # Clients get no events about imported messages.
    projected(
        MessagesUnread,
        lambda _, __, viewer: viewer.registration.capabilities.empty_topic_name,
        _unread,
        audience=owner,
    ),
)
