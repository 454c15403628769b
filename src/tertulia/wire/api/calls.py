"""Video calls."""

from typing import Annotated

from tertulia.model.errors import Refused
from tertulia.service import video_calls
from tertulia.wire.http.parameters import Doc
from tertulia.wire.http.routing import ApiResponse, Call


class CallLinkResponse(ApiResponse, kw_only=True):
    """The link that people in this organization join the call with."""

    url: str


async def create_bigbluebutton_call(
    call: Call,
    meeting_name: Annotated[str, Doc("The call's name in BigBlueButton.")],
    voice_only: bool = False,
) -> CallLinkResponse:
    """Create a link to a new call on the configured BigBlueButton server."""
    node = call.node
    if not video_calls.is_offered(node.config):
        raise Refused("BigBlueButton isn't set up on this server.")
    name = "".join(filter(str.isprintable, meeting_name)).strip()[:100] or "Call"
    link = video_calls.link_to_new(node.vault, call.user, name, call.now, voice_only=voice_only)
    return CallLinkResponse(url=f"{call.url}{link}")
