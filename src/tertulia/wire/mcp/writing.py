"""Tools that change something. What they send says by which agent it was sent."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tertulia.domain import permissions
from tertulia.domain.channels import topics
from tertulia.domain.messages.reactions import RequestedEmoji
from tertulia.domain.messages.sending import ToChannel, ToPeople
from tertulia.domain.names import MAX_MESSAGE, topic_name
from tertulia.markup.addresses import direct_message_address, message_address
from tertulia.model.channels import topic_key
from tertulia.model.errors import Refused
from tertulia.model.user_topics import Visibility
from tertulia.service.messages import editing, flags, reactions, sending
from tertulia.wire.mcp.objects import ChannelRef, channel_called, link_to
from tertulia.wire.mcp.tool import Arguments, Name, Number, Outcome, ToolCall

Text = Annotated[
    str, Meta(min_length=1, max_length=MAX_MESSAGE, description="What to say: Markdown.")
]
Attempt = Annotated[
    Name | None,
    Meta(description="Any text of your own. Sent again with the same one, it is one message."),
]


class SentMessage(Outcome, kw_only=True):
    """The message that was sent."""

    message_id: int
    link: str


class SendMessage(Arguments, kw_only=True, frozen=True):
    """A message to a topic."""

    channel: ChannelRef
    topic: Name
    text: Text
    attempt: Attempt = None


async def send_message(call: ToolCall, asked: SendMessage) -> SentMessage:
    """Send a message to a topic of a channel, in your owner's name. A topic that there is not yet
    begins with it."""
    channel = channel_called(call, asked.channel)
    return await _send(call, sending.to_topic(channel.id, asked.topic), asked.text, asked.attempt)


class SendDirect(Arguments, kw_only=True, frozen=True):
    """A direct message."""

    people: Annotated[
        list[Number], Meta(min_length=1, max_length=100, description="IDs of the people to tell.")
    ]
    text: Text
    attempt: Attempt = None


async def send_direct_message(call: ToolCall, asked: SendDirect) -> SentMessage:
    """Send a direct message to one person or several, in your owner's name."""
    for user_id in asked.people:
        permissions.visible_user(call.agent.state, call.agent.user, user_id)
    return await _send(call, sending.to_people(asked.people), asked.text, asked.attempt)


class Reply(Arguments, kw_only=True, frozen=True):
    """An answer to a message."""

    message_id: Annotated[Number, Meta(description="The message to answer.")]
    text: Text
    attempt: Attempt = None


async def reply(call: ToolCall, asked: Reply) -> SentMessage:
    """Answer a message where it is: in its topic, or in its direct conversation."""
    message = await call.agent.message(asked.message_id)
    to: ToChannel | ToPeople
    if message.channel_id is None:
        to = ToPeople(frozenset(call.agent.state.directs[message.direct_id].members))
    else:
        to = sending.to_topic(message.channel_id, message.topic)
    return await _send(call, to, asked.text, asked.attempt)


async def _send(
    call: ToolCall, to: ToChannel | ToPeople, text: str, attempt: str | None
) -> SentMessage:
    key = call.agent.key
    sent = await sending.send_message(
        call.agent,
        to,
        text,
        client=key.client,
        # A person did not see it: their clients show that there is something new.
        read_by_sender=False,
        queue_id=None if attempt is None else key.client,
        local_id=attempt,
    )
    return SentMessage(message_id=sent.message_id, link=_link(call, to, sent.message_id))


def _link(call: ToolCall, to: ToChannel | ToPeople, message_id: int) -> str:
    """Where the message was sent to. (It is not read again: if that failed, it would be sent once
    more.)"""
    if isinstance(to, ToPeople):
        members = to.user_ids | {call.agent.user.id}
        return call.site + direct_message_address(members, message_id)
    channel = call.agent.state.channels[to.channel_id]
    return call.site + message_address(channel, topic_name(to.topic), message_id)


class EditOwn(Arguments, kw_only=True, frozen=True):
    """What a message is to say instead."""

    message_id: Number
    text: Text


class Done(Outcome, kw_only=True):
    """It is done."""

    changed: Annotated[
        int | UnsetType, Meta(description="How many messages, where that is a question.")
    ] = UNSET


async def edit_own_message(call: ToolCall, asked: EditOwn) -> SentMessage:
    """Give a message that you have sent other words. (What your owner wrote stays as it is.)"""
    message = await call.agent.own_message(asked.message_id)
    await editing.edit_message(call.agent, message.id, asked.text)
    return SentMessage(message_id=message.id, link=link_to(call, message))


class React(Arguments, kw_only=True, frozen=True):
    """An emoji for a message."""

    message_id: Number
    emoji: Annotated[str, Meta(max_length=100, description="Its name, for example thumbs_up.")]
    remove: Annotated[bool, Meta(description="Take it back instead.")] = False


async def react(call: ToolCall, asked: React) -> Done:
    """React to a message with an emoji, or take that back."""
    message = await call.agent.message(asked.message_id)
    emoji = RequestedEmoji(name=asked.emoji)
    change = reactions.remove_reaction if asked.remove else reactions.add_reaction
    await change(call.agent, message.id, emoji)
    return Done()


class MarkAsRead(Arguments, kw_only=True, frozen=True):
    """Messages by their IDs, or a whole topic."""

    message_ids: Annotated[list[Number], Meta(max_length=500)] = []
    channel: ChannelRef | None = None
    topic: Name | None = None


async def mark_as_read(call: ToolCall, asked: MarkAsRead) -> Done:
    """Mark messages as read for your owner: those of some IDs, or all of a topic."""
    if asked.message_ids and asked.channel is None and asked.topic is None:
        found = await call.agent.messages(asked.message_ids)
        marked = await flags.mark_read(call.agent, [message.id for message in found])
        return Done(changed=marked.changed)
    if asked.message_ids or asked.channel is None or asked.topic is None:
        raise Refused("Give either the messages' IDs, or a channel and a topic.")
    channel = channel_called(call, asked.channel)
    await flags.mark_topic_read(call.agent, channel.id, topic_name(asked.topic))
    return Done()


class Follow(Arguments, kw_only=True, frozen=True):
    """A topic to follow."""

    channel: ChannelRef
    topic: Name
    follow: Annotated[bool, Meta(description="False to follow it no more.")] = True


async def follow_topic(call: ToolCall, asked: Follow) -> Done:
    """Follow a topic for your owner, who then hears of each message in it; or end that."""
    channel = channel_called(call, asked.channel)
    state, user = call.agent.state, call.agent.user
    wanted = Visibility.FOLLOWED if asked.follow else Visibility.INHERIT
    known = state.visibility(user.id, channel.id, topic_key(topic_name(asked.topic)))
    if asked.follow or known is Visibility.FOLLOWED:
        await call.agent.submit(topics.set_visibility, channel.id, asked.topic, wanted)
    return Done()
