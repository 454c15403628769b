"""Zoom meetings, either in each person's own Zoom account (OAuth) or in one account for everyone.
The tokens of people's accounts are stored encrypted, and renewed when they expire."""

import base64
import secrets
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.outbound.http_client import Web
from tertulia.outbound.http_responses import NotFetched
from tertulia.service.config import Config

REGISTER: Final = "/calls/zoom/register"
COMPLETE: Final = "/calls/zoom/complete"
EARLY_SECONDS: Final = 240
"""The number of seconds before its expiry at which a token is renewed."""
_SECONDS: Final = 15.0
_MAX_ANSWER: Final = 65_536
_UNKNOWN_USER: Final = 1001


class ZoomTokens(Struct, frozen=True, kw_only=True):
    """The tokens for a Zoom account."""

    access: str
    refresh: str = ""
    """The refresh token. It works once; each response has a new one."""
    expires_at: int

    def is_fresh(self, now: float) -> bool:
        return now < self.expires_at - EARLY_SECONDS


class ZoomRefused(Exception):
    """Zoom refuses the tokens, so the person has to connect the account again."""


class UnknownZoomUser(Refused):
    """The shared account has no user with the person's email address."""

    def __init__(self) -> None:
        super().__init__("Your email address doesn't belong to a user of the Zoom account.")


class _Tokens(Struct):
    access_token: str
    expires_in: int
    refresh_token: str = ""


class _Meeting(Struct):
    join_url: str


class _Failure(Struct):
    code: int = 0


def is_offered(config: Config) -> bool:
    """Whether people can connect their own Zoom accounts."""
    return _has_client(config) and not config.zoom_account_id


def is_offered_for_all(config: Config) -> bool:
    """Whether one Zoom account is used for everyone."""
    return _has_client(config) and bool(config.zoom_account_id)


def _has_client(config: Config) -> bool:
    return bool(config.zoom_client_id and config.zoom_client_secret)


def new_state() -> str:
    """Return an unguessable value that links Zoom's redirect to the browser's request."""
    return secrets.token_urlsafe(24)


def authorization_url(config: Config, state: str) -> str:
    """Return the URL where a person allows this server to create meetings."""
    query = {
        "response_type": "code",
        "client_id": config.zoom_client_id,
        "redirect_uri": _redirect_url(config),
        "state": state,
    }
    return f"{config.zoom_url.rstrip('/')}/oauth/authorize?{urlencode(query)}"


def _redirect_url(config: Config) -> str:
    return f"{config.external_url}{COMPLETE}"


async def connect(web: Web, config: Config, code: str, now: float) -> ZoomTokens:
    """Exchange the code in Zoom's redirect for tokens. Raise ZoomRefused, NotFetched."""
    form = {"grant_type": "authorization_code", "code": code}
    form["redirect_uri"] = _redirect_url(config)
    return await _tokens(web, config, form, now)


async def renewed(web: Web, config: Config, tokens: ZoomTokens, now: float) -> ZoomTokens:
    """Renew an account's tokens. Raise ZoomRefused, NotFetched."""
    form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh}
    return await _tokens(web, config, form, now)


async def tokens_for_all(web: Web, config: Config, now: float) -> ZoomTokens:
    """Return tokens for the shared account. Raise ZoomRefused, NotFetched."""
    form = {"grant_type": "account_credentials", "account_id": config.zoom_account_id}
    return await _tokens(web, config, form, now)


async def _tokens(web: Web, config: Config, form: Mapping[str, str], now: float) -> ZoomTokens:
    client = f"{config.zoom_client_id}:{config.zoom_client_secret}".encode()
    headers = {
        "Authorization": f"Basic {base64.b64encode(client).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    url = f"{config.zoom_url.rstrip('/')}/oauth/token"
    body = urlencode(form).encode()
    answer = await web.send(url, body, headers, seconds=_SECONDS, limit=_MAX_ANSWER)
    if answer.status in {400, 401}:
        raise ZoomRefused
    if answer.status != 200:
        raise NotFetched(f"it responded with status {answer.status}")
    tokens = _decoded(answer.body, _Tokens)
    if not tokens.access_token.isascii() or not tokens.access_token.isprintable():
        raise NotFetched("its token isn't usable")
    return ZoomTokens(
        access=tokens.access_token,
        refresh=tokens.refresh_token,
        expires_at=int(now) + max(0, tokens.expires_in),
    )


async def create(
    web: Web, config: Config, tokens: ZoomTokens, user: User, *, is_video: bool
) -> str:
    """Create a meeting and return its URL. Raise ZoomRefused, NotFetched, UnknownZoomUser."""
    owner = quote(user.address, safe="@") if is_offered_for_all(config) else "me"
    url = f"{config.zoom_api_url.rstrip('/')}/v2/users/{owner}/meetings"
    video = {"host_video": is_video, "participant_video": is_video}
    # With a password, Zoom doesn't turn on the waiting room.
    body = msgspec.json.encode({"settings": video, "default_password": True})
    headers = {
        "Authorization": f"Bearer {tokens.access}",
        "Content-Type": "application/json",
    }
    answer = await web.send(url, body, headers, seconds=_SECONDS, limit=_MAX_ANSWER)
    if answer.status == 401:
        raise ZoomRefused
    if answer.status not in {200, 201}:
        if _decoded(answer.body, _Failure).code == _UNKNOWN_USER:
            raise UnknownZoomUser
        raise NotFetched(f"it responded with status {answer.status}")
    address: str = _decoded(answer.body, _Meeting).join_url
    if urlsplit(address).scheme != "https" or not address.isprintable() or " " in address:
        raise NotFetched("its response has no usable link")
    return address


def _decoded(content: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotFetched("its response isn't what was expected") from None
