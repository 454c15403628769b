"""Calls at the providers that the operator configured."""

import logging
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

import msgspec

from tertulia.domain.accounts import call_accounts
from tertulia.model import changes
from tertulia.model.errors import Refused, ZoomNotConnected
from tertulia.outbound.http_responses import NotFetched
from tertulia.service.calls import bigbluebutton, hosted, nextcloud, zoom
from tertulia.service.calls.zoom import ZoomRefused, ZoomTokens
from tertulia.service.credentials import VaultError
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_owner
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import Doc
from tertulia.wire.http.routing import ApiResponse, Call

logger = logging.getLogger("tertulia.calls")


class CallLinkResponse(ApiResponse, kw_only=True):
    """The link that people join the call with."""

    url: str


def call_name(text: str) -> str:
    """Return the text as a call's name."""
    return "".join(filter(str.isprintable, text)).strip()[:100] or "Call"


async def create_bigbluebutton_call(
    call: Call,
    meeting_name: Annotated[str, Doc("The call's name in BigBlueButton.")],
    voice_only: bool = False,
) -> CallLinkResponse:
    """Create a link to a new call on the configured BigBlueButton server."""
    node = call.node
    if not bigbluebutton.is_offered(node.config):
        raise Refused("BigBlueButton isn't set up on this server.")
    name = call_name(meeting_name)
    link = bigbluebutton.link_to_new(node.vault, call.user, name, call.now, voice_only=voice_only)
    return CallLinkResponse(url=f"{call.url}{link}")


async def create_hosted_call(call: Call, voice_only: bool = False) -> CallLinkResponse:
    """Create a link to a new call on the organization's own server. This endpoint is a Tertulia
    extension."""
    node = call.node
    if not hosted.is_offered(node.config):
        raise Refused("No call server is set up on this server.")
    link = hosted.link_to_new(node.vault, call.user, call.now, voice_only=voice_only)
    return CallLinkResponse(url=f"{call.url}{link}")


async def create_nextcloud_call(
    call: Call, room_name: Annotated[str, Doc("The conversation's name in Nextcloud Talk.")]
) -> CallLinkResponse:
    """Create a conversation in Nextcloud Talk. Anyone with its link can join."""
    node = call.node
    if not nextcloud.is_offered(node.config):
        raise Refused("Nextcloud Talk isn't set up on this server.")
    _require_often_enough(call)
    name = call_name(room_name)
    url = await _answer("Nextcloud", nextcloud.create(node.operator_web, node.config, name))
    return CallLinkResponse(url=url)


async def create_zoom_call(
    call: Call,
    is_video_call: Annotated[bool, Doc("Whether cameras are on at first.")] = True,
) -> CallLinkResponse:
    """Create a meeting in Zoom.

    If people use their own accounts there and yours isn't connected, the error is
    INVALID_ZOOM_TOKEN. Open `/calls/zoom/register` in the browser to connect it.
    """
    web, config = call.node.operator_web, call.node.config
    for_all = zoom.is_offered_for_all(config)
    if not (for_all or zoom.is_offered(config)):
        raise Refused("Zoom isn't set up on this server.")
    _require_often_enough(call)
    try:
        if for_all:
            tokens = await _answer("Zoom", zoom.tokens_for_all(web, config, call.now))
        else:
            tokens = await _own_tokens(call)
        url = await _answer(
            "Zoom", zoom.create(web, config, tokens, call.user, is_video=is_video_call)
        )
    except ZoomRefused:
        if for_all:
            logger.warning("Zoom refuses zoom_client_id, zoom_client_secret, and zoom_account_id")
            raise Refused(
                "Zoom rejected this server's credentials. Ask its operator to check the setup."
            ) from None
        await call.submit(call_accounts.disconnect)
        raise ZoomNotConnected from None
    return CallLinkResponse(url=url)


async def _own_tokens(call: Call) -> ZoomTokens:
    """Return the caller's tokens, renewed if necessary. Raises ZoomNotConnected, ZoomRefused."""
    account = call.state.call_accounts.get(call.user.id)
    if account is None:
        raise ZoomNotConnected
    vault = call.node.vault
    try:
        tokens = msgspec.json.decode(vault.unsealed(account.sealed), type=ZoomTokens)
    except (VaultError, msgspec.DecodeError):
        raise ZoomRefused from None
    if not tokens.is_fresh(call.now):
        web, config = call.node.operator_web, call.node.config
        tokens = await _answer("Zoom", zoom.renewed(web, config, tokens, call.now))
        await call.submit(call_accounts.connect, sealed_tokens(call.node.vault.sealed, tokens))
    return tokens


def sealed_tokens(sealed: Callable[[str], str], tokens: ZoomTokens) -> str:
    """Return the tokens as they're stored."""
    return sealed(msgspec.json.encode(tokens).decode())


CALLS: Final = 20
CALLS_SECONDS: Final = 300.0


def _require_often_enough(call: Call) -> None:
    """Raise TooOften for people who create too many calls on other servers."""
    limiter = call.node.limits.limiters.limiter("calls", CALLS, CALLS_SECONDS)
    limiter.require(call.user.id)


async def _answer(name: str, answer: Coroutine[Any, Any, Any]) -> Any:
    """Return the response of another server. Raise Refused if it doesn't respond or reports an
    error."""
    try:
        return await answer
    except NotFetched as error:
        logger.warning("could not create a call: %s: %s", name, error)
        raise Refused(f"{name} isn't responding as expected. Try again later.") from None


class HasZoomTokenEvent(Event, kw_only=True, tag="has_zoom_token"):
    """Whether your Zoom account is connected."""

    value: bool


SECTIONS: Final[Sections] = {
    ("video_calls",): lambda context: {
        "has_zoom_token": context.viewer_id in context.state.call_accounts,
        "has_webex_token": False,
    }
}

PROJECTIONS: Final[Projections] = (
    to_owner(
        changes.CallAccountConnected,
        lambda _, change: HasZoomTokenEvent(value=True),
        only_if=lambda _, change, __: not change.renewed,
    ),
    to_owner(changes.CallAccountDisconnected, lambda *_: HasZoomTokenEvent(value=False)),
)
