"""References in imported texts to people, groups, channels, and messages.

A source knows records by its keys, and the importer assigns their IDs. So a source writes
references into its texts. The importer replaces them before it renders a text, but links to
messages only when it writes the message, which decides the ID. References are written with control
characters that `clean` removes from a source's own texts, so they can't be forged.
"""

import html
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from tertulia.imports.identifiers import Identifiers, key_of
from tertulia.imports.records import Key
from tertulia.markup import addresses
from tertulia.state.state import State

_BEGIN: Final = "\x02"
_END: Final = "\x03"
_NEXT: Final = "\x1f"
MESSAGE_MARK: Final = f"{_BEGIN}M{_NEXT}"
"""The beginning of each reference to a message."""
_REFERENCE: Final = re.compile(r"\x02(\w)\x1f([^\x02\x03\x1f]*)\x1f([^\x02\x03\x1f]*)\x03")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def clean(text: str) -> str:
    """Remove control characters from a source's text, except tabs and line feeds."""
    if text.isprintable():  # Most texts are, and this check is faster.
        return text
    return _CONTROLS.sub("", text.replace("\r\n", "\n"))


def person(key: Key, otherwise: str, *, silent: bool = False) -> str:
    """Mention someone. `otherwise` is the text if they weren't imported."""
    return _written("p" if silent else "P", key, otherwise)


def group(key: Key, otherwise: str) -> str:
    """Mention a user group. `otherwise` is the text if it wasn't imported."""
    return _written("G", key, otherwise)


def channel(key: Key, otherwise: str) -> str:
    """Link a channel. `otherwise` is the text if it wasn't imported."""
    return _written("C", key, otherwise)


def user_id(key: Key) -> str:
    """Refer to a user's ID, within a mention or an address. It becomes the key if the user wasn't
    imported."""
    return _written("u", key, str(key))


def channel_id(key: Key) -> str:
    """Refer to a channel's ID, within an address. It becomes the key if the channel wasn't
    imported."""
    return _written("c", key, str(key))


def message_url(key: Key, otherwise: str) -> str:
    """Refer to the URL of a message, for a link. The message must be `is_linked`. The URL is
    `otherwise` if the message isn't imported, or not yet."""
    return _written("M", key, otherwise)


def with_message_keys(text: str, keys: Mapping[str, Key]) -> str:
    """Return the text with other keys in its references to messages. References without a new key
    become their `otherwise` URL."""
    if MESSAGE_MARK not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        if match[1] != "M":
            return match[0]
        key = keys.get(match[2])
        return match[3] if key is None else message_url(key, match[3])

    return _REFERENCE.sub(replace, text)


def _written(kind: str, key: Key, otherwise: str) -> str:
    name = f"#{key}" if isinstance(key, int) else clean(key)
    return f"{_BEGIN}{kind}{_NEXT}{name}{_NEXT}{clean(otherwise)}{_END}"


class MessageLink(Struct, frozen=True):
    """A link whose URL is known when the message with it is written."""

    token: str
    """The token that stands for the URL in the content and its HTML."""
    key: Key
    otherwise: str

    def replaced(self, text: str, url: str | None, *, is_html: bool = False) -> str:
        url = url or self.otherwise
        return text.replace(self.token, html.escape(url) if is_html else url)


class References:
    """Replaces references. `secret` makes the tokens of links to messages unguessable."""

    def __init__(self, current_state: Callable[[], State], ids: Identifiers, secret: str) -> None:
        self._current_state = current_state
        self._ids = ids
        self._secret = secret

    def replaced(self, text: str, links: list[MessageLink]) -> str:
        """Replace the references in a text. Links to messages get tokens, and are added to
        `links`."""
        if _BEGIN not in text:
            return text
        write: dict[str, Callable[[Key, str], str]] = {
            "P": self._person,
            "p": lambda key, otherwise: self._person(key, otherwise, "@_"),
            "G": self._group,
            "C": self._channel,
            "u": lambda key, otherwise: str(self._ids.find("user", key) or otherwise),
            "c": lambda key, otherwise: str(self._ids.find("channel", key) or otherwise),
        }

        def replace(match: re.Match[str]) -> str:
            kind, key, otherwise = match[1], key_of(match[2]), match[3]
            if kind == "M":
                token = f"/#{self._secret}-{len(links)}."
                links.append(MessageLink(token, key, otherwise))
                return token
            return write[kind](key, otherwise) if kind in write else otherwise

        return _REFERENCE.sub(replace, text)

    def _person(self, key: Key, otherwise: str, sign: str = "@") -> str:
        user = self._current_state().users.get(self._ids.find("user", key) or 0)
        return otherwise if user is None else f"{sign}**{user.full_name}|{user.id}**"

    def _group(self, key: Key, otherwise: str) -> str:
        group = self._current_state().groups.get(self._ids.group(key) or 0)
        return otherwise if group is None else f"@*{group.name}*"

    def _channel(self, key: Key, otherwise: str) -> str:
        channel = self._current_state().channels.get(self._ids.find("channel", key) or 0)
        if channel is None:
            return otherwise
        if set(channel.name) & set("*\n"):
            return f"[#{channel.name}]({addresses.channel_address(channel)})"
        return f"#**{channel.name}**"
