"""Video calls on a BigBlueButton server."""

import hashlib
import secrets
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from tertulia.model.users import User
from tertulia.outbound.http_client import Web
from tertulia.outbound.http_responses import NotFetched
from tertulia.service.config import Config
from tertulia.service.credentials import Vault

JOIN: Final = "/calls/bigbluebutton/join"
LINK_DAYS: Final = 30
"""The number of days for which a link works."""
_PURPOSE: Final = "video call"
_SECONDS: Final = 15.0
_MAX_ANSWER: Final = 65_536


class VideoCall(Struct, frozen=True, kw_only=True):
    """The data of a call, which its link contains."""

    id: str
    name: str
    creator_id: int
    """The user ID of the moderator."""
    voice_only: bool = False


def is_offered(config: Config) -> bool:
    """Whether a BigBlueButton server is configured."""
    return bool(config.bigbluebutton_url and config.bigbluebutton_secret)


def link_to_new(vault: Vault, creator: User, name: str, now: float, *, voice_only: bool) -> str:
    """Return the path of a new call."""
    call = VideoCall(
        id=secrets.token_hex(16), name=name, creator_id=creator.id, voice_only=voice_only
    )
    text = msgspec.json.encode(call).decode()
    ticket = vault.ticket(_PURPOSE, text, int(now) + LINK_DAYS * 86400)
    return f"{JOIN}?{urlencode({'call': ticket})}"


def call_of(vault: Vault, ticket: str, now: float) -> VideoCall | None:
    """Return the call of a link's ticket; None if the link has expired."""
    text = vault.text_of(_PURPOSE, ticket, now)
    return None if text is None else msgspec.json.decode(text, type=VideoCall)


async def open_call(web: Web, config: Config, call: VideoCall) -> None:
    """Open the call on the BigBlueButton server. Raise NotFetched if that fails."""
    asked = {"meetingID": call.id, "name": call.name}
    if call.voice_only:
        asked["lockSettingsDisableCam"] = "true"
    url = _address(config, "create", asked)
    async with web.opened(url, accept="text/xml, */*", seconds=_SECONDS) as answer:
        content = await answer.content(_MAX_ANSWER)
    if b"<returncode>SUCCESS</returncode>" not in content:
        raise NotFetched("it opens no call")


def address_for(config: Config, call: VideoCall, user: User) -> str:
    """Return the URL with which the user's browser joins the call."""
    role = "MODERATOR" if user.id == call.creator_id else "VIEWER"
    asked = {
        "meetingID": call.id,
        "role": role,
        "fullName": user.full_name,
        "userID": str(user.id),
    }
    return _address(config, "join", asked)


def _address(config: Config, what: str, asked: dict[str, str]) -> str:
    query = urlencode(asked)
    said = f"{what}{query}{config.bigbluebutton_secret}"
    checksum = hashlib.sha256(said.encode()).hexdigest()
    return f"{config.bigbluebutton_url.rstrip('/')}/api/{what}?{query}&checksum={checksum}"
