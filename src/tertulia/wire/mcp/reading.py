"""Tools that read messages."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.model.errors import NoSuchMessage, Refused
from tertulia.service.messages.history import MessageQuery
from tertulia.wire.http.parameters import Doc
from tertulia.wire.mcp.objects import (
    ChannelRef,
    MessagesResult,
    WrittenMessage,
    find_channel,
    message_object,
    message_page,
)
from tertulia.wire.mcp.tool import Arguments, Name, Number, ToolCall, ToolResult

Limit = Annotated[int, Meta(ge=1, le=50, description="Messages per page.")]
OlderThan = Annotated[Number | None, Doc("Only messages before the one with this ID.")]
NewerThan = Annotated[Number | None, Doc("Only messages after the one with this ID.")]


class SearchArguments(Arguments, kw_only=True, frozen=True):
    text: (
        Annotated[str, Meta(max_length=500, description='Words, and "phrases in quotes".')] | None
    ) = None
    channel: ChannelRef | None = None
    topic: Name | None = None
    sender: Annotated[Number | None, Doc("A person's ID.")] = None
    only: Annotated[
        Literal["unread", "mentioned", "starred", "followed", "resolved"] | None,
        Doc("Only messages in this state, or in topics in this state."),
    ] = None
    has: Literal["link", "image", "attachment", "reaction"] | None = None
    in_all_public_channels: Annotated[
        bool,
        Doc(
            "Also search public channels that your owner isn't subscribed to. By default, only"
            " messages that they received are searched unless you give a channel."
        ),
    ] = False
    limit: Limit = 20
    older_than: OlderThan = None


async def search_messages(call: ToolCall, args: SearchArguments) -> MessagesResult:
    """Search messages. All given conditions must match. The first page has the newest matches;
    within a page, messages are oldest first."""
    terms = []
    if args.channel is not None:
        terms.append(NarrowTerm("channel", find_channel(call, args.channel).id))
    elif args.in_all_public_channels:
        terms.append(NarrowTerm("channels", "public"))
    if args.topic is not None:
        terms.append(NarrowTerm("topic", args.topic))
    if args.sender is not None:
        terms.append(NarrowTerm("sender", args.sender))
    if args.only is not None:
        terms.append(NarrowTerm("is", args.only))
    if args.has is not None:
        terms.append(NarrowTerm("has", args.has))
    if args.text is not None:
        terms.append(NarrowTerm("search", args.text))
    return await _page(call, terms, args.limit, args.older_than, None)


class ReadTopicArguments(Arguments, kw_only=True, frozen=True):
    channel: ChannelRef
    topic: Name
    limit: Limit = 20
    older_than: OlderThan = None
    newer_than: NewerThan = None


async def read_topic(call: ToolCall, args: ReadTopicArguments) -> MessagesResult:
    """Read a topic: its newest messages, or those older or newer than a message. Reading doesn't
    mark messages as read."""
    channel = find_channel(call, args.channel)
    terms = [NarrowTerm("channel", channel.id), NarrowTerm("topic", args.topic)]
    return await _page(call, terms, args.limit, args.older_than, args.newer_than)


class ReadDirectMessagesArguments(Arguments, kw_only=True, frozen=True):
    people: Annotated[
        list[Number],
        Meta(
            min_length=1,
            max_length=100,
            description="The IDs of all other people in the conversation.",
        ),
    ]
    limit: Limit = 20
    older_than: OlderThan = None
    newer_than: NewerThan = None


async def read_direct_messages(call: ToolCall, args: ReadDirectMessagesArguments) -> MessagesResult:
    """Read your owner's direct messages with these people: the newest, or those older or newer than
    a message."""
    terms = [NarrowTerm("dm", list(args.people))]
    return await _page(call, terms, args.limit, args.older_than, args.newer_than)


class ReadMessageArguments(Arguments, kw_only=True, frozen=True):
    message_id: Number


class ReadMessageResult(ToolResult, kw_only=True):
    """The message with its complete text."""

    message: WrittenMessage


async def read_message(call: ToolCall, args: ReadMessageArguments) -> ReadMessageResult:
    """Read one message with its complete text."""
    result = await call.agent.find(MessageQuery(ids=[args.message_id]))
    if not result.page.messages:
        raise NoSuchMessage
    (message,) = result.page.messages
    return ReadMessageResult(message=message_object(call, message, result.extras, whole=True))


async def _page(
    call: ToolCall,
    terms: list[NarrowTerm],
    limit: int,
    older_than: int | None,
    newer_than: int | None,
) -> MessagesResult:
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
    return message_page(call, await call.agent.find(MessageQuery(narrow=tuple(terms), **where)))
