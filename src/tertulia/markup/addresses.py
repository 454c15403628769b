"""The URLs that messages may link, and the URLs of channels, topics, and messages."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from tertulia.model.channels import Channel, topic_key
from tertulia.model.messages import Message
from tertulia.state.state import State

_WITH_HOST: Final = frozenset({"http", "https", "ftp"})
_WITHOUT_HOST: Final = frozenset({"mailto", "tel", "sms", "xmpp", "news"})
_UNSEEN: Final = re.compile(r"[\x00-\x20\x7f]")


def safe(address: str, site: str = "") -> str | None:
    """Return the URL in its final form, or None if it isn't safe to link (for example,
    `javascript:`).

    URLs of conversations and files of this server (`site`) become relative. Without a scheme, the
    text is a fragment, an absolute path, an email address, or a web host.
    """
    address = _UNSEEN.sub("", address.replace("&amp;", "&"))
    if not address:
        return None
    if site and address.startswith((f"{site}/#", f"{site}/user_uploads/")):
        rest = address.removeprefix(site)
        return rest[1:] if rest.startswith("/#") else rest
    if address[0] == "#" or (address[0] == "/" and address[1:2] not in {"/", "\\"}):
        return address
    try:
        parts = urlsplit(address)
        _ = parts.port  # Raises ValueError if the port isn't a number.
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme in _WITHOUT_HOST:
        return address if parts.path else None
    if scheme in _WITH_HOST:
        return address if parts.netloc else None
    if scheme and not _is_host_and_port(address):
        return None
    if address.startswith("//"):
        return "http:" + address if parts.netloc else None
    if "@" in address and "/" not in address:
        return f"mailto:{address}"
    return safe(f"http://{address}") if re.match(r"\w", address) else None


def _is_host_and_port(address: str) -> bool:
    """Whether the text is a host and a port, such as `localhost:9991/x`, which looks as if it had a
    scheme."""
    return re.match(r"[\w.-]+:[0-9]{1,5}(?:[/?#]|$)", address) is not None


_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-~")


def encoded(text: str) -> str:
    """Percent-encode the text for a URL fragment. Percent signs, which many programs would decode,
    become periods."""
    return "".join(
        chr(byte) if byte in _KEPT else f".{byte:02X}"
        for byte in text.encode("utf-8", "surrogatepass")
    )


def channel_address(channel: Channel) -> str:
    return f"/#narrow/channel/{channel.id}-{encoded(channel.name.replace(' ', '-'))}"


def topic_address(channel: Channel, topic: str) -> str:
    return f"{channel_address(channel)}/topic/{encoded(topic)}"


def newest_message(state: State, channel: Channel, topic: str) -> int | None:
    """Return the ID of the topic's newest message. A link with the ID still works after the topic
    was moved."""
    known = state.topics.of_channel[channel.id].get(topic_key(topic))
    return None if known is None else known.last_message_id


def message_address(channel: Channel, topic: str, message_id: int) -> str:
    return f"{topic_address(channel, topic)}/near/{message_id}"


def address_of(state: State, message: Message) -> str:
    """Return the message's URL in its topic or direct conversation."""
    if message.direct_id is not None:
        return direct_message_address(state.directs[message.direct_id].members, message.id)
    return message_address(state.channels[message.channel_id], message.topic, message.id)


def direct_message_address(members: Iterable[int], message_id: int) -> str:
    people = ",".join(map(str, sorted(members)))
    return f"/#narrow/dm/{people}-dm/near/{message_id}"


def custom_address(realm_id: int, file: str) -> str:
    """Return the URL of a custom emoji's image."""
    return f"/user_avatars/{realm_id}/emoji/images/{file}"


def extra_address(name: str) -> str:
    """Return the URL of an image for an emoji that Unicode doesn't have."""
    return f"/static/generated/emoji/images/emoji/unicode/{name}.png"
