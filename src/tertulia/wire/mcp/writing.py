"""Tools that make changes. Messages are marked as sent by the agent."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tertulia.domain import permissions
from tertulia.domain.channels import topics
from tertulia.domain.messages import flags, reactions
from tertulia.domain.messages.reactions import RequestedEmoji
from tertulia.domain.messages.sending import ToChannel, ToPeople
from tertulia.domain.names import MAX_MESSAGE, topic_name
from tertulia.markup.addresses import direct_message_address, message_address
from tertulia.model.channels import topic_key
from tertulia.model.errors import Refused
from tertulia.model.user_topics import Visibility
from tertulia.service.messages import editing, sending
from tertulia.service.messages.flags import known_messages, submit_with_unread
from tertulia.service.messages.reactions import change_reaction
from tertulia.wire.http.parameters import Doc
from tertulia.wire.mcp.objects import ChannelRef, find_channel, link_to
from tertulia.wire.mcp.tool import Arguments, Name, Number, ToolCall, ToolResult

Text = Annotated[str, Meta(min_length=1, max_length=MAX_MESSAGE, description="Markdown.")]
Attempt = Annotated[
    Name | None,
    Doc("Any text of your choice. Retrying with the same value doesn't send the message again."),
]


class SentMessageResult(ToolResult, kw_only=True):
    """The sent message."""

    message_id: int
    link: str


class SendMessageArguments(Arguments, kw_only=True, frozen=True):
    channel: ChannelRef
    topic: Name
    text: Text
    attempt: Attempt = None


async def send_message(call: ToolCall, args: SendMessageArguments) -> SentMessageResult:
    """Send a message to a topic of a channel on behalf of your owner. If the topic doesn't exist,
    this creates it."""
    channel = find_channel(call, args.channel)
    return await _send(call, sending.to_topic(channel.id, args.topic), args.text, args.attempt)


class SendDirectMessageArguments(Arguments, kw_only=True, frozen=True):
    people: Annotated[
        list[Number], Meta(min_length=1, max_length=100, description="The recipients' IDs.")
    ]
    text: Text
    attempt: Attempt = None


async def send_direct_message(
    call: ToolCall, args: SendDirectMessageArguments
) -> SentMessageResult:
    """Send a direct message to one or more people on behalf of your owner."""
    for user_id in args.people:
        permissions.visible_user(call.agent.state, call.agent.user, user_id)
    return await _send(call, sending.to_people(args.people), args.text, args.attempt)


class ReplyArguments(Arguments, kw_only=True, frozen=True):
    message_id: Annotated[Number, Doc("The message to reply to.")]
    text: Text
    attempt: Attempt = None


async def reply(call: ToolCall, args: ReplyArguments) -> SentMessageResult:
    """Reply to a message in its topic or direct message conversation."""
    message = await call.agent.message(args.message_id)
    to: ToChannel | ToPeople
    if message.channel_id is None:
        to = ToPeople(frozenset(call.agent.state.directs[message.direct_id].members))
    else:
        to = sending.to_topic(message.channel_id, message.topic)
    return await _send(call, to, args.text, args.attempt)


async def _send(
    call: ToolCall, to: ToChannel | ToPeople, text: str, attempt: str | None
) -> SentMessageResult:
    key = call.agent.key
    sent = await sending.send_message(
        call.agent,
        to,
        text,
        client=key.client,
        # The owner has not seen the message, so it stays unread for them.
        read_by_sender=False,
        queue_id=None if attempt is None else key.client,
        local_id=attempt,
    )
    return SentMessageResult(message_id=sent.message_id, link=_link(call, to, sent.message_id))


def _link(call: ToolCall, to: ToChannel | ToPeople, message_id: int) -> str:
    # The message is not read again: if that failed, the agent would retry and send it twice.
    if isinstance(to, ToPeople):
        members = to.user_ids | {call.agent.user.id}
        return call.site + direct_message_address(members, message_id)
    channel = call.agent.state.channels[to.channel_id]
    return call.site + message_address(channel, topic_name(to.topic), message_id)


class EditMessageArguments(Arguments, kw_only=True, frozen=True):
    message_id: Number
    text: Text


class DoneResult(ToolResult, kw_only=True):
    """The change was made."""

    changed: Annotated[
        int | UnsetType, Doc("The number of messages, when marking messages by ID.")
    ] = UNSET


async def edit_own_message(call: ToolCall, args: EditMessageArguments) -> SentMessageResult:
    """Edit a message that you sent. You can't edit messages that your owner wrote."""
    message = await call.agent.own_message(args.message_id)
    await editing.edit_message(call.agent, message.id, args.text)
    return SentMessageResult(message_id=message.id, link=link_to(call, message))


class ReactArguments(Arguments, kw_only=True, frozen=True):
    message_id: Number
    emoji: Annotated[
        str, Meta(max_length=100, description="The emoji's name, for example thumbs_up.")
    ]
    remove: Annotated[bool, Doc("Whether to remove the reaction instead.")] = False


async def react(call: ToolCall, args: ReactArguments) -> DoneResult:
    """Add an emoji reaction to a message, or remove yours."""
    message = await call.agent.message(args.message_id)
    emoji = RequestedEmoji(name=args.emoji)
    verb = reactions.take_back if args.remove else reactions.react
    await change_reaction(call.agent, message.id, verb, emoji)
    return DoneResult()


class MarkAsReadArguments(Arguments, kw_only=True, frozen=True):
    message_ids: Annotated[list[Number], Meta(max_length=500)] = []
    channel: ChannelRef | None = None
    topic: Name | None = None


async def mark_as_read(call: ToolCall, args: MarkAsReadArguments) -> DoneResult:
    """Mark messages as read for your owner: either by their IDs, or a whole topic."""
    if args.message_ids and args.channel is None and args.topic is None:
        messages = await call.agent.messages(args.message_ids)
        known = await known_messages(call.agent, [message.id for message in messages])
        marked = await call.agent.submit(flags.mark_read, known)
        return DoneResult(changed=marked.changed)
    if args.message_ids or args.channel is None or args.topic is None:
        raise Refused("Give either the messages' IDs, or a channel and a topic.")
    channel = find_channel(call, args.channel)
    topic = topic_name(args.topic)
    await submit_with_unread(call.agent, flags.mark_topic_read, channel.id, topic)
    return DoneResult()


class FollowTopicArguments(Arguments, kw_only=True, frozen=True):
    channel: ChannelRef
    topic: Name
    follow: Annotated[bool, Doc("False to stop following it.")] = True


async def follow_topic(call: ToolCall, args: FollowTopicArguments) -> DoneResult:
    """Follow a topic for your owner, so that they are notified about its messages, or stop
    following it."""
    channel = find_channel(call, args.channel)
    state, user = call.agent.state, call.agent.user
    current = state.visibility(user.id, channel.id, topic_key(topic_name(args.topic)))
    if args.follow or current is Visibility.FOLLOWED:
        new = Visibility.FOLLOWED if args.follow else Visibility.INHERIT
        await call.agent.submit(topics.set_visibility, channel.id, args.topic, new)
    return DoneResult()
