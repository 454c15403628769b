"""Calls in Nextcloud Talk: each is a new public conversation."""

import base64
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from tertulia.outbound.http_client import Web
from tertulia.outbound.http_responses import NotFetched
from tertulia.service.config import Config

_ROOMS: Final = "/ocs/v2.php/apps/spreed/api/v4/room"
_PUBLIC: Final = 3
"""The type of rooms that anyone with the link can join."""
_SECONDS: Final = 15.0
_MAX_ANSWER: Final = 65_536
_MAX_TOKEN: Final = 100


class _Room(Struct):
    token: str


class _Data(Struct):
    data: _Room


class _Answer(Struct):
    ocs: _Data


def is_offered(config: Config) -> bool:
    """Whether a Nextcloud server and an account on it are configured."""
    return bool(config.nextcloud_url and config.nextcloud_user and config.nextcloud_password)


async def create(web: Web, config: Config, name: str) -> str:
    """Create a room and return its URL. Raise NotFetched; Unavailable if the server is busy with
    other requests."""
    login = f"{config.nextcloud_user}:{config.nextcloud_password}".encode()
    headers = {
        "Authorization": f"Basic {base64.b64encode(login).decode()}",
        "Content-Type": "application/json",
        "OCS-APIRequest": "true",
    }
    site = config.nextcloud_url.rstrip("/")
    body = msgspec.json.encode({"roomType": _PUBLIC, "roomName": name})
    answer = await web.send(site + _ROOMS, body, headers, seconds=_SECONDS, limit=_MAX_ANSWER)
    if answer.status not in {200, 201}:
        raise NotFetched(f"it responded with status {answer.status}")
    try:
        token = msgspec.json.decode(answer.body, type=_Answer).ocs.data.token
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotFetched("its response isn't a room") from None
    if not token.isalnum() or len(token) > _MAX_TOKEN:
        raise NotFetched("its response has no usable token")
    # The address works with and without "pretty URLs".
    return f"{site}/index.php/call/{quote(token)}"
