"""Addresses of channels, topics and messages in clients: `/#narrow/...`."""

from collections.abc import Iterable

from tertulia.model.channels import Channel, topic_key
from tertulia.model.messages import Message
from tertulia.state.organization import State

_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-~")


def encoded(text: str) -> str:
    """The text percent-encoded for a URL fragment, with dots instead of percent signs, which many
    programs would decode on the way."""
    return "".join(
        chr(byte) if byte in _KEPT else f".{byte:02X}"
        for byte in text.encode("utf-8", "surrogatepass")
    )


def channel_address(channel: Channel) -> str:
    """The channel's address, from the root of the site."""
    return f"/#narrow/channel/{channel.id}-{encoded(channel.name.replace(' ', '-'))}"


def topic_address(channel: Channel, topic: str) -> str:
    """The topic's address."""
    return f"{channel_address(channel)}/topic/{encoded(topic)}"


def newest_message(state: State, channel: Channel, topic: str) -> int | None:
    """The ID of the topic's newest message: a link with it finds the topic after it was moved."""
    known = state.topics.of_channel[channel.id].get(topic_key(topic))
    return None if known is None else known.last_message_id


def message_address(channel: Channel, topic: str, message_id: int) -> str:
    """The message's address, in its topic."""
    return f"{topic_address(channel, topic)}/near/{message_id}"


def address_of(state: State, message: Message) -> str:
    """The message's address, in its topic or direct conversation."""
    if message.direct_id is not None:
        return direct_message_address(state.directs[message.direct_id].members, message.id)
    return message_address(state.channels[message.channel_id], message.topic, message.id)


def direct_message_address(members: Iterable[int], message_id: int) -> str:
    """The address of a direct message among these people."""
    people = ",".join(map(str, sorted(members)))
    return f"/#narrow/dm/{people}-dm/near/{message_id}"
