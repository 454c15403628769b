"""What a reader does with messages: read, star, collapse."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from tertulia.domain import permissions
from tertulia.domain.messages import flags as flag_verbs
from tertulia.domain.messages.narrow import Asked
from tertulia.domain.names import topic_name
from tertulia.model.errors import NoSuchMessage, Refused
from tertulia.model.messages import Flag, Message
from tertulia.service.conflicts import retry_on_conflict
from tertulia.state.moment import Verb
from tertulia.store import queries
from tertulia.store.database import Connection
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.api.objects.message_flags import effective_flags, is_mention, is_read
from tertulia.wire.api.resources.history import GetMessages, messages_asked_for
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Alias, Int, Params, Reads
from tertulia.wire.http.routing import Answer

T = TypeVar("T")


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
    known = await _known(call, params.messages)
    updated = await _update(call, known, params.flag, add=params.op == "add")
    return UpdatedFlags(
        messages=params.messages, ignored_because_not_subscribed_channels=sorted(updated.ignored)
    )


def _check_settable(flag: str) -> None:
    if flag != "read" and flag not in _SETTABLE:
        raise Refused(f"There is no flag '{flag[:50]}' to set.")


async def _known(call: Call, message_ids: Iterable[int]) -> list[flag_verbs.Known]:
    """The caller's relation to each of the messages. NoSuchMessage where one cannot be read."""
    user = call.user
    ids = sorted(set(message_ids))

    def look(
        connection: Connection,
    ) -> tuple[list[Message], dict[int, queries.Relation]]:
        found = queries.messages(connection, ids)
        return found, queries.relations(connection, user.id, [message.id for message in found])

    found, relations = await call.node.store.read(look)
    state = call.state
    if len(found) != len(ids) or not all(
        permissions.reads_message(state, user, message, call.now) for message in found
    ):
        raise NoSuchMessage
    return [
        flag_verbs.Known(
            message=message,
            flags=relations[message.id].flags,
            is_read=is_read(state, user.id, message, relations[message.id]),
            is_mentioned=is_mention(
                effective_flags(state, user.id, message, relations[message.id])
            ),
        )
        for message in found
    ]


async def _update(
    call: Call, known: Sequence[flag_verbs.Known], flag: str, *, add: bool
) -> flag_verbs.Updated:
    if flag == "read":
        return await call.submit(flag_verbs.mark_read if add else flag_verbs.mark_unread, known)
    return await call.submit(flag_verbs.change, known, _SETTABLE[flag], add)


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
        tuple[Asked, ...],
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
    found = (await messages_asked_for(call, call.user, page, lambda *_: None)).page
    ids = [message.id for message in found.messages]
    known = await _known(call, ids)
    updated = await _update(call, known, params.flag, add=params.op == "add")
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
    return Marked(complete=await _of_unread(call, flag_verbs.mark_everything_read))


class MarkChannel(Params, kw_only=True, frozen=True):
    """A channel whose messages one has read."""

    stream_id: Int


async def mark_stream_as_read(call: Call, params: MarkChannel) -> Answer:
    """Mark a channel's messages as read."""
    await _of_unread(call, flag_verbs.mark_channel_read, params.stream_id)
    return Answer()


class MarkTopic(Params, kw_only=True, frozen=True):
    """A topic whose messages one has read."""

    stream_id: Int
    topic_name: str


async def mark_topic_as_read(call: Call, params: MarkTopic) -> Answer:
    """Mark a topic's messages as read."""
    topic = topic_name(params.topic_name)
    await _of_unread(call, flag_verbs.mark_topic_read, params.stream_id, topic)
    return Answer()


async def _of_unread(call: Call, verb: Verb[T], *arguments: Any) -> T:
    """Submit a verb that looks at what the caller has not read, which is loaded for it."""

    async def attempt() -> T:
        await call.node.log.with_unread(call.user.id, lambda _: None)
        return await call.submit(verb, *arguments)

    return await retry_on_conflict(attempt)
