"""Channels, topics and messages, as parts of addresses that clients know."""

from tertulia.model.channels import Channel, topic_key
from tertulia.state.organization import State

_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-~")


def encoded(text: str) -> str:
    """The text as a part of a fragment. Dots stand for percent signs, which many programs would
    decode in passing."""
    return "".join(
        chr(byte) if byte in _KEPT else f".{byte:02X}"
        for byte in text.encode("utf-8", "surrogatepass")
    )


def channel_address(channel: Channel) -> str:
    """Where the channel is in a client, from the root of the site."""
    return f"/#narrow/channel/{channel.id}-{encoded(channel.name.replace(' ', '-'))}"


def topic_address(channel: Channel, topic: str) -> str:
    """Where the topic is."""
    return f"{channel_address(channel)}/topic/{encoded(topic)}"


def newest_message(state: State, channel: Channel, topic: str) -> int | None:
    """The topic's newest message, by which it is found again when it has moved."""
    known = state.topics.of_channel[channel.id].get(topic_key(topic))
    return None if known is None else known.last_message_id


def message_address(channel: Channel, topic: str, message_id: int) -> str:
    """Where a message is, in its topic."""
    return f"{topic_address(channel, topic)}/near/{message_id}"
