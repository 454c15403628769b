"""Summaries of conversations, which this server does not make."""

from tertulia.model.errors import Refused
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Params
from tertulia.wire.http.routing import Answer


class GetSummary(Params, kw_only=True, frozen=True):
    """The conversation to summarize."""

    narrow: str


async def get_summary(call: Call, params: GetSummary) -> Answer:
    """Refused: `server_can_summarize_topics` is false."""
    raise Refused("This server doesn't offer topic summaries.")
