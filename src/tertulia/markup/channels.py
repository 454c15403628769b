"""Links to channels, topics and messages, by name."""

import re
from typing import Final

from markdown_it.rules_inline import StateInline

from tertulia.markup import narrow_links
from tertulia.markup.elements import element, escaped
from tertulia.markup.render_context import RenderContext, add_html, context_of
from tertulia.model.channels import Channel

GENERAL_CHAT: Final = "general chat"
"""The name that is shown for the topic without one."""
_LINK: Final = re.compile(r"#\*\*([^*\n]+)\*\*")
_AT_MESSAGE: Final = re.compile(r"(.*)@([0-9]{1,15})", re.DOTALL)


def channel_link(state: StateInline, silent: bool) -> bool:
    """`#**channel**`, `#**channel>topic**`, `#**channel>topic@17**`, of channels that the author
    may know of."""
    if state.src[state.pos] != "#":
        return False
    match = _LINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    context = context_of(state)
    channel, topic = context.state.channel_named(match[1]), None
    if channel is None:
        name, sign, topic = match[1].partition(">")
        channel = context.state.channel_named(name) if sign else None
    if channel is None or not context.may_link(channel):
        return False
    if not silent:
        add_html(state, _channel(channel) if topic is None else _topic(context, channel, topic))
    state.pos = match.end()
    return True


def _channel(channel: Channel) -> str:
    attributes = {
        "class": "stream",
        "data-stream-id": str(channel.id),
        "href": narrow_links.channel_address(channel),
    }
    return element("a", attributes, escaped(f"#{channel.name}"))


def _topic(context: RenderContext, channel: Channel, name: str) -> str:
    message = _AT_MESSAGE.fullmatch(name)
    if message:
        topic = message[1].strip()
        href = narrow_links.message_address(channel, topic, int(message[2]))
        return element(
            "a", {"class": "message-link", "href": href}, f"{_label(channel, topic)} @ 💬"
        )
    topic = name.strip()
    href = narrow_links.topic_address(channel, topic)
    newest = narrow_links.newest_message(context.state, channel, topic)
    if newest is not None and context.may_read(channel, newest):
        href = f"{href}/with/{newest}"
    attributes = {
        "class": "stream-topic",
        "data-stream-id": str(channel.id),
        "href": href,
    }
    return element("a", attributes, _label(channel, topic))


def _label(channel: Channel, topic: str) -> str:
    shown = escaped(topic) if topic else f"<em>{GENERAL_CHAT}</em>"
    return f"{escaped(f'#{channel.name}')} &gt; {shown}"
