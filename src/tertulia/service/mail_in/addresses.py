"""Addresses that receive email."""

import hmac
import re
from typing import Final

from msgspec import Struct

from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.state.state import State

REPLY_DAYS: Final = 30
"""The number of days for which replies to missed-message emails are accepted."""
_DAY: Final = 86400
_IDS: Final = r"([1-9][0-9]{0,15})\.([1-9][0-9]{0,15})\.([1-9][0-9]{0,15})"
_CHANNEL: Final = re.compile(rf"(?:[a-z0-9-]+\.)?m{_IDS}(?:\.([a-z]{{1,4}}))?\.([a-z2-7]{{20}})")
_UNSIGNED: Final = re.compile(rf"(?:[a-z0-9-]+\.)?c{_IDS}\.([a-z2-7]{{20}})((?:\.[a-z-]+)*)")
"""A channel's address in the older form, whose proof doesn't cover its options."""
_REPLY: Final = re.compile(
    r"r([1-9][0-9]{0,15})\.([1-9][0-9]{0,15})\.([1-9][0-9]{0,7})\.([a-z2-7]{20})"
)
_MAX_NAME: Final = 12
"""The most characters of the channel's name at the beginning of an address."""
_NO_LETTERS: Final = re.compile(r"[^a-z0-9]+")


class MailOptions(Struct, frozen=True, kw_only=True):
    """Options for converting an email to a channel. By default, quotes and signatures are
    removed."""

    show_sender: bool = False
    include_footer: bool = False
    include_quotes: bool = False
    prefer_html: bool = False
    """Prefer the HTML part to the plain text."""


_LETTERS: Final = {
    "s": "show_sender",
    "f": "include_footer",
    "q": "include_quotes",
    "h": "prefer_html",
}
_UNSIGNED_OPTIONS: Final = {
    "show-sender": "show_sender",
    "include-footer": "include_footer",
    "include-quotes": "include_quotes",
    "prefer-html": "prefer_html",
}
"""The options in addresses of the older form, each after a dot."""


_DEFAULT: Final = MailOptions()


class ChannelAddress(Struct, frozen=True, kw_only=True):
    """A channel's email address. Permissions are checked when it's used."""

    channel_id: int
    sender_id: int
    creator_id: int
    """The person who created the address."""
    options: MailOptions


class ReplyAddress(Struct, frozen=True, kw_only=True):
    """The reply address of a missed-message email."""

    user_id: int
    message_id: int


MailTarget = ChannelAddress | ReplyAddress


class MailAddresses:
    """Creates and parses this server's addresses."""

    def __init__(self, config: Config, vault: Vault) -> None:
        self._vault = vault
        self._before, _, self._after = config.mail_in_pattern.lower().partition("%s")
        self.are_taken = bool(config.mail_in_pattern)
        """Whether incoming email is turned on."""

    def of_channel(
        self,
        state: State,
        channel_id: int,
        sender: User,
        creator: User,
        options: MailOptions = _DEFAULT,
    ) -> str:
        """Return the address for messages of the sender in the channel."""
        name = _NO_LETTERS.sub("-", state.channels[channel_id].name.lower())[:_MAX_NAME].strip("-")
        letters = "".join(text for text, field in _LETTERS.items() if getattr(options, field))
        proof = self._channel_proof(state, channel_id, sender.id, creator.id, letters)
        parts = (f"m{channel_id}", str(sender.id), str(creator.id), letters, proof)
        return self._address(".".join(part for part in (name, *parts) if part))

    def of_answer(self, state: State, user: User, message: Message, now: float) -> str:
        """Return the address for the user's reply to the message; empty if incoming email is turned
        off. `now` is in UNIX seconds."""
        if not self.are_taken:
            return ""
        last_day = int(now // _DAY) + REPLY_DAYS
        proof = self._answer_proof(state, user.id, message.id, last_day)
        return self._address(f"r{user.id}.{message.id}.{last_day}.{proof}")

    def local_part(self, address: str) -> str | None:
        """Return the variable part of an address of this server; None for others."""
        address = address.lower()
        fits = address.startswith(self._before) and address.endswith(self._after)
        if not self.are_taken or not fits:
            return None
        inner = address[len(self._before) : len(address) - len(self._after)]
        return inner or None

    def target(self, state: State, address: str, now: float) -> MailTarget | None:
        """Return the target of an address; None if this server didn't create it, or it has
        expired."""
        inner = self.local_part(address)
        if inner is None:
            return None
        if match := _REPLY.fullmatch(inner):
            user_id, message_id, last_day = (int(group) for group in match.groups()[:3])
            expected = self._answer_proof(state, user_id, message_id, last_day)
            is_over = now // _DAY > last_day
            if is_over or not hmac.compare_digest(expected, match[4]):
                return None
            return ReplyAddress(user_id=user_id, message_id=message_id)
        if match := _CHANNEL.fullmatch(inner):
            ids, letters, proof = match.groups()[:3], match[4] or "", match[5]
            fields = [_LETTERS.get(letter) for letter in letters]
            signed: str | None = letters
        elif match := _UNSIGNED.fullmatch(inner):
            ids, proof, signed = match.groups()[:3], match[4], None
            fields = [_UNSIGNED_OPTIONS.get(item) for item in match[5].split(".")]
        else:
            return None
        channel_id, sender_id, creator_id = (int(item) for item in ids)
        expected = self._channel_proof(state, channel_id, sender_id, creator_id, signed)
        if not hmac.compare_digest(expected, proof):
            return None
        return ChannelAddress(
            channel_id=channel_id,
            sender_id=sender_id,
            creator_id=creator_id,
            options=MailOptions(**dict.fromkeys(filter(None, fields), True)),
        )

    def _address(self, inner: str) -> str:
        return f"{self._before}{inner}{self._after}"

    def _channel_proof(
        self, state: State, channel_id: int, sender_id: int, creator_id: int, letters: str | None
    ) -> str:
        """Return the proof of a channel's address. `letters` are its options; None for addresses
        with unsigned options."""
        keys = f"{_key(state, sender_id)}:{_key(state, creator_id)}"
        kind = "channel" if letters is None else f"channel options {letters}"
        return self._vault.address_proof(f"{kind}:{channel_id}:{sender_id}:{creator_id}:{keys}")

    def _answer_proof(self, state: State, user_id: int, message_id: int, last_day: int) -> str:
        key = _key(state, user_id)
        return self._vault.address_proof(f"answer:{user_id}:{message_id}:{last_day}:{key}")


def _key(state: State, user_id: int) -> str:
    """Return a text that changes with the account's API key, so that replacing the key invalidates
    its addresses."""
    credential = state.credentials.get(user_id)
    return "" if credential is None else credential.key_digest
