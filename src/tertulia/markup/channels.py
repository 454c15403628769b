"""Links to channels, topics and messages, by name."""

import re
from typing import Final

from markdown_it.rules_inline import StateInline

from tertulia.markup import places
from tertulia.markup.elements import element, literal
from tertulia.markup.page import Page, made, page_of
from tertulia.model.channels import Channel

GENERAL_CHAT: Final = "general chat"
"""How a topic without a name is shown."""
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
    page = page_of(state)
    channel, topic = page.state.channel_named(match[1]), None
    if channel is None:
        name, sign, topic = match[1].partition(">")
        channel = page.state.channel_named(name) if sign else None
    if channel is None or not page.may_link(channel):
        return False
    if not silent:
        made(state, _channel(channel) if topic is None else _topic(page, channel, topic))
    state.pos = match.end()
    return True


def _channel(channel: Channel) -> str:
    attributes = {
        "class": "stream",
        "data-stream-id": str(channel.id),
        "href": places.channel_address(channel),
    }
    return element("a", attributes, literal(f"#{channel.name}"))


def _topic(page: Page, channel: Channel, name: str) -> str:
    message = _AT_MESSAGE.fullmatch(name)
    if message:
        topic = message[1].strip()
        href = places.message_address(channel, topic, int(message[2]))
        return element(
            "a", {"class": "message-link", "href": href}, f"{_label(channel, topic)} @ 💬"
        )
    topic = name.strip()
    href = places.topic_address(channel, topic)
    newest = places.newest_message(page.state, channel, topic)
    if newest is not None and page.may_read(channel, newest):
        href = f"{href}/with/{newest}"
    attributes = {
        "class": "stream-topic",
        "data-stream-id": str(channel.id),
        "href": href,
    }
    return element("a", attributes, _label(channel, topic))


def _label(channel: Channel, topic: str) -> str:
    shown = literal(topic) if topic else f"<em>{GENERAL_CHAT}</em>"
    return f"{literal(f'#{channel.name}')} &gt; {shown}"
