"""Video calls at a BigBlueButton server: its API's addresses, and the links by which people of this
organization join a call."""

import hashlib
import secrets
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from tertulia.model.users import User
from tertulia.outbound.http_client import NotFetched, Web
from tertulia.service.config import Config
from tertulia.service.credentials import Vault

JOIN: Final = "/calls/bigbluebutton/join"
LINK_DAYS: Final = 30
"""So long a link opens its call."""
_PURPOSE: Final = "video call"
_SECONDS: Final = 15.0
_PORTS: Final = {"http": 80, "https": 443}
_MAX_ANSWER: Final = 65_536


class VideoCall(Struct, frozen=True, kw_only=True):
    """A call that somebody made a link to."""

    id: str
    name: str
    creator_id: int
    """Who moderates it."""
    voice_only: bool = False


def is_offered(config: Config) -> bool:
    """Whether the server has a BigBlueButton server to hold calls at."""
    return bool(config.bigbluebutton_url and config.bigbluebutton_secret)


def link_to_new(vault: Vault, creator: User, name: str, now: float, *, voice_only: bool) -> str:
    """A link, below the organization's address, to a call that nobody has joined yet."""
    call = VideoCall(
        id=secrets.token_hex(16), name=name, creator_id=creator.id, voice_only=voice_only
    )
    text = msgspec.json.encode(call).decode()
    ticket = vault.ticket(_PURPOSE, text, int(now) + LINK_DAYS * 86400)
    return f"{JOIN}?{urlencode({'call': ticket})}"


def call_of(vault: Vault, ticket: str, now: float) -> VideoCall | None:
    """The call that a link's ticket is for; None where it opens none any more."""
    text = vault.text_of(_PURPOSE, ticket, now)
    return None if text is None else msgspec.json.decode(text, type=VideoCall)


async def open_call(config: Config, call: VideoCall) -> None:
    """Let the BigBlueButton server open the call, if it is not open yet. NotFetched."""
    asked = {"meetingID": call.id, "name": call.name}
    if call.voice_only:
        asked["lockSettingsDisableCam"] = "true"
    parts = urlsplit(config.bigbluebutton_url)
    port = parts.port or _PORTS.get(parts.scheme, 443)
    # The operator says where that server is, so it may be anywhere.
    web = Web(config.mail_site, may_ask=lambda _: True, ports={port})
    try:
        url = _address(config, "create", asked)
        async with web.opened(url, accept="text/xml, */*", seconds=_SECONDS) as answer:
            content = await answer.content(_MAX_ANSWER)
    finally:
        await web.close()
    if b"<returncode>SUCCESS</returncode>" not in content:
        raise NotFetched("it opens no call")


def address_for(config: Config, call: VideoCall, user: User) -> str:
    """Where the user's browser joins the call."""
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


class GifService(NamedTuple):
    """A service, as browsers are let to ask it."""

    name: str
    """As the setting of its key begins, and the field that clients are told it in."""
    asked: str
    """Where it answers."""
    pictures: tuple[str, ...]
    """Where its pictures are."""

    def key(self, config: Config) -> str:
        """The operator's; empty where there is none."""
        key: str = getattr(config, f"{self.name}_api_key")
        return key


SERVICES: Final = (
    GifService(
        "giphy",
        "https://api.giphy.com",
        ("https://i.giphy.com", *(f"https://media{n}.giphy.com" for n in ("", *range(5)))),
    ),
    GifService("klipy", "https://api.klipy.com", ("https://static.klipy.com",)),
)


def gif_services(config: Config) -> tuple[GifService, ...]:
    """Those for which the operator has a key."""
    return tuple(service for service in SERVICES if service.key(config))
