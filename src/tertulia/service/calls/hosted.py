"""Calls on a server that the operator runs, such as Jitsi Meet, LiveKit, or Element Call.

A call's link leads through this server, which sends people on to the address in `calls_url`, each
with a token that is signed for them.
"""

import base64
import hashlib
import hmac
import re
import secrets
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.service.credentials import Vault

JOIN: Final = "/calls/hosted/join"
LINK_DAYS: Final = 30
"""The number of days for which a link works."""
TOKEN_SECONDS: Final = 4 * 3600
"""The number of seconds for which someone can join with a token. It's longer than most calls, in
case the connection is lost."""
_PURPOSE: Final = "hosted call"
_PLACEHOLDER: Final = re.compile(r"\{(room|token|name|muted)\}")


class HostedCall(Struct, frozen=True, kw_only=True):
    """The data of a call, which its link contains."""

    room: str
    creator_id: int
    """The user ID of the moderator."""
    voice_only: bool = False


def is_offered(config: Config) -> bool:
    """Whether the address of a call server and the secret for its tokens are configured."""
    return bool(config.calls_url) and (not config.calls_token or bool(config.calls_secret))


def link_to_new(vault: Vault, creator: User, now: float, *, voice_only: bool) -> str:
    """Return the path of a new call."""
    call = HostedCall(room=secrets.token_hex(10), creator_id=creator.id, voice_only=voice_only)
    text = msgspec.json.encode(call).decode()
    ticket = vault.ticket(_PURPOSE, text, int(now) + LINK_DAYS * 86400)
    return f"{JOIN}?{urlencode({'call': ticket})}"


def call_of(vault: Vault, ticket: str, now: float) -> HostedCall | None:
    """Return the call of a link's ticket; None if the link has expired."""
    text = vault.text_of(_PURPOSE, ticket, now)
    return None if text is None else msgspec.json.decode(text, type=HostedCall)


def address_for(config: Config, call: HostedCall, user: User, now: float) -> str:
    """Return the URL with which the user's browser joins the call."""
    values = {
        "room": call.room,
        "token": _token(config, call, user, int(now)),
        "name": user.full_name,
        "muted": "true" if call.voice_only else "false",
    }
    # Replace in one pass, so that braces in someone's name stay.
    return _PLACEHOLDER.sub(lambda match: quote(values[match[1]], safe=""), config.calls_url)


def _token(config: Config, call: HostedCall, user: User, now: int) -> str:
    is_moderator = user.id == call.creator_id
    claims: dict[str, Any] = {
        "iss": config.calls_key,
        "sub": str(user.id),
        "nbf": now - 10,
        "exp": now + TOKEN_SECONDS,
    }
    match config.calls_token:
        case "jitsi":
            person = {"id": str(user.id), "name": user.full_name, "moderator": is_moderator}
            person["affiliation"] = "owner" if is_moderator else "member"
            claims |= {"aud": "jitsi", "sub": "*", "room": call.room, "context": {"user": person}}
        case "livekit":
            video = {"room": call.room, "roomJoin": True, "roomAdmin": is_moderator}
            claims |= {"name": user.full_name, "video": video}
        case _:
            return ""
    return _signed(claims, config.calls_secret)


def _signed(claims: dict[str, Any], secret: str) -> str:
    """Return a JSON web token."""
    parts = ({"alg": "HS256", "typ": "JWT"}, claims)
    said = ".".join(_encoded(msgspec.json.encode(part)) for part in parts)
    proof = hmac.digest(secret.encode(), said.encode(), hashlib.sha256)
    return f"{said}.{_encoded(proof)}"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
