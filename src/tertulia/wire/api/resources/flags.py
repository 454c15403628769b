"""What a reader does with messages: read, star, collapse."""

from typing import Annotated, Literal

from msgspec import Meta

from tertulia.domain.messages.flags import Updated
from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.domain.names import topic_name
from tertulia.model.errors import Refused
from tertulia.model.messages import Flag
from tertulia.service.messages import flags
from tertulia.service.messages.history import find_messages
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.api.resources.history import GetMessages
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Alias, Int, Params, Reads
from tertulia.wire.http.routing import Answer


class UpdateFlags(Params, kw_only=True, frozen=True):
    """A flag to set or clear on messages."""

    messages: Annotated[list[Int], Meta(max_length=10_000)]
    op: Annotated[Literal["add", "remove"], Alias("operation")]
    flag: str


class UpdatedFlags(Answer, kw_only=True):
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


async def _update(call: Call, ids: list[int], flag: str, *, add: bool) -> Updated:
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


class UpdatedPage(Answer, kw_only=True):
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


class Marked(Answer, kw_only=True):
    """Whether nothing is left to mark; otherwise ask again."""

    complete: bool


async def mark_all_as_read(call: Call, params: MarkAll) -> Marked:
    """Mark everything as read."""
    return Marked(complete=await flags.mark_all_read(call))


class MarkChannel(Params, kw_only=True, frozen=True):
    """A channel whose messages one has read."""

    stream_id: Int


async def mark_stream_as_read(call: Call, params: MarkChannel) -> Answer:
    """Mark a channel's messages as read."""
    await flags.mark_channel_read(call, params.stream_id)
    return Answer()


class MarkTopic(Params, kw_only=True, frozen=True):
    """A topic whose messages one has read."""

    stream_id: Int
    topic_name: str


async def mark_topic_as_read(call: Call, params: MarkTopic) -> Answer:
    """Mark a topic's messages as read."""
    topic = topic_name(params.topic_name)
    await flags.mark_topic_read(call, params.stream_id, topic)
    return Answer()
