"""Video calls at other servers."""

from typing import Annotated

from msgspec import Meta

from tertulia.model.errors import Refused
from tertulia.service import video_calls
from tertulia.wire.http.parameters import Params
from tertulia.wire.http.routing import ApiResponse, Call


class NewCall(Params, kw_only=True, frozen=True):
    """A call."""

    meeting_name: Annotated[str, Meta(description="As it is called there.")]
    voice_only: bool = False


class NewCallLink(ApiResponse, kw_only=True):
    """Where people of this organization join it."""

    url: str


async def create_bigbluebutton_call(call: Call, params: NewCall) -> NewCallLink:
    """A link to a new call at the BigBlueButton server that the operator has set."""
    node = call.node
    if not video_calls.is_offered(node.config):
        raise Refused("BigBlueButton isn't set up on this server.")
    name = "".join(filter(str.isprintable, params.meeting_name)).strip()[:100] or "Call"
    link = video_calls.link_to_new(
        node.vault, call.user, name, call.now, voice_only=params.voice_only
    )
    return NewCallLink(url=f"{call.url}{link}")
