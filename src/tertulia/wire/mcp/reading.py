"""Tools that read messages."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.model.errors import NoSuchMessage, Refused
from tertulia.service.messages.history import MessageQuery
from tertulia.wire.mcp.objects import (
    ChannelRef,
    MessagePage,
    WrittenMessage,
    channel_called,
    page,
    written,
)
from tertulia.wire.mcp.tool import Arguments, Name, Number, Outcome, ToolCall

Limit = Annotated[int, Meta(ge=1, le=50, description="Messages in one page.")]
OlderThan = Annotated[Number | None, Meta(description="Only before the message of this ID.")]
NewerThan = Annotated[Number | None, Meta(description="Only after the message of this ID.")]


class Search(Arguments, kw_only=True, frozen=True):
    """What to look for; what is given must all hold."""

    text: (
        Annotated[str, Meta(max_length=500, description='Words, and "phrases in quotes".')] | None
    ) = None
    channel: ChannelRef | None = None
    topic: Name | None = None
    sender: Annotated[Number | None, Meta(description="A person's ID.")] = None
    only: Annotated[
        Literal["unread", "mentioned", "starred", "followed", "resolved"] | None,
        Meta(description="Only such messages, or those in such topics."),
    ] = None
    has: Literal["link", "image", "attachment", "reaction"] | None = None
    in_all_public_channels: Annotated[
        bool,
        Meta(
            description="Also where your owner is not subscribed. Otherwise, without a channel, in"
            " what they received."
        ),
    ] = False
    limit: Limit = 20
    older_than: OlderThan = None


async def search_messages(call: ToolCall, asked: Search) -> MessagePage:
    """Search messages by words, place, sender and state. The newest that match come first in
    paging, each page in the order of time."""
    terms = []
    if asked.channel is not None:
        terms.append(NarrowTerm("channel", channel_called(call, asked.channel).id))
    elif asked.in_all_public_channels:
        terms.append(NarrowTerm("channels", "public"))
    if asked.topic is not None:
        terms.append(NarrowTerm("topic", asked.topic))
    if asked.sender is not None:
        terms.append(NarrowTerm("sender", asked.sender))
    if asked.only is not None:
        terms.append(NarrowTerm("is", asked.only))
    if asked.has is not None:
        terms.append(NarrowTerm("has", asked.has))
    if asked.text is not None:
        terms.append(NarrowTerm("search", asked.text))
    return await _page(call, terms, asked.limit, asked.older_than, None)


class ReadTopic(Arguments, kw_only=True, frozen=True):
    """A topic, and which part of it."""

    channel: ChannelRef
    topic: Name
    limit: Limit = 20
    older_than: OlderThan = None
    newer_than: NewerThan = None


async def read_topic(call: ToolCall, asked: ReadTopic) -> MessagePage:
    """Read a topic of a channel: its newest messages, or those before or after another one.
    Reading does not mark anything as read."""
    channel = channel_called(call, asked.channel)
    terms = [NarrowTerm("channel", channel.id), NarrowTerm("topic", asked.topic)]
    return await _page(call, terms, asked.limit, asked.older_than, asked.newer_than)


class ReadDirect(Arguments, kw_only=True, frozen=True):
    """A direct conversation, and which part of it."""

    people: Annotated[
        list[Number],
        Meta(min_length=1, max_length=100, description="IDs of the others in it, all of them."),
    ]
    limit: Limit = 20
    older_than: OlderThan = None
    newer_than: NewerThan = None


async def read_direct_messages(call: ToolCall, asked: ReadDirect) -> MessagePage:
    """Read your owner's direct conversation with these people: its newest messages, or those before
    or after another one."""
    terms = [NarrowTerm("dm", list(asked.people))]
    return await _page(call, terms, asked.limit, asked.older_than, asked.newer_than)


class ReadMessage(Arguments, kw_only=True, frozen=True):
    """A message."""

    message_id: Number


class OneMessage(Outcome, kw_only=True):
    """The message, with all of its text."""

    message: WrittenMessage


async def read_message(call: ToolCall, asked: ReadMessage) -> OneMessage:
    """Read one message with all of its text."""
    found = await call.agent.find(MessageQuery(ids=[asked.message_id]))
    if not found.page.messages:
        raise NoSuchMessage
    (message,) = found.page.messages
    return OneMessage(message=written(call, message, found.extras, whole=True))


async def _page(
    call: ToolCall,
    terms: list[NarrowTerm],
    limit: int,
    older_than: int | None,
    newer_than: int | None,
) -> MessagePage:
    if older_than is not None and newer_than is not None:
        raise Refused("Ask for either older or newer messages, but not both.")
    where: dict[str, Any] = {"anchor": "newest", "before": limit, "after": 0}
    if older_than is not None:
        where |= {"anchor": str(older_than), "include_anchor": False}
    if newer_than is not None:
        where = {
            "anchor": str(newer_than),
            "before": 0,
            "after": limit,
            "include_anchor": False,
        }
    return page(call, await call.agent.find(MessageQuery(narrow=tuple(terms), **where)))
