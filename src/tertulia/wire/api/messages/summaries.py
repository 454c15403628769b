"""Summaries of conversations."""

import logging
from typing import Annotated, Final

from tertulia.domain import permissions
from tertulia.domain.accounts.users import require_person
from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.model.errors import Refused
from tertulia.outbound.http_responses import NotFetched
from tertulia.service import summaries
from tertulia.service.messages.history import MessageQuery, find_messages
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.http.parameters import Doc, Reads
from tertulia.wire.http.routing import ApiResponse, Call

logger = logging.getLogger("tertulia.summaries")

DAY: Final = 86_400.0


class SummaryResponse(ApiResponse, kw_only=True):
    """The summary."""

    summary: Annotated[
        str, Doc("HTML: paragraphs and lists, with links to the messages it's based on.")
    ]


async def get_summary(
    call: Call,
    narrow: Annotated[
        tuple[NarrowTerm, ...],
        Reads(wire_narrow.read, wire_narrow.SCHEMA),
        Doc("Terms that messages have to match, such as a channel, a topic, and `is:unread`."),
    ],
) -> SummaryResponse:
    """Summarize the newest 100 messages that match a narrow, with the operator's language model.

    The server sends their content and the names of their senders to `llm_url`. Requires
    `can_summarize_topics_group`. A person can get a number of summaries per day.
    """
    config, state = call.node.config, call.state
    if not summaries.is_offered(config):
        raise Refused("This server doesn't offer topic summaries.")
    require_person(call.user)
    permissions.require(
        permissions.holds(state, call.user, state.realm.can_summarize_topics_group),
        "You don't have permission to summarize conversations.",
    )
    query = MessageQuery(
        narrow=narrow, anchor="newest", before=summaries.MAX_MESSAGES, after=0, include_anchor=True
    )
    found = await find_messages(call.node, call.user, query, extras=False)
    messages = found.page.messages
    if not messages:
        raise Refused("No messages match.")
    budget = call.node.limits.limiters.limiter("summaries", config.llm_summaries_per_day, DAY)
    budget.require(call.user.id)
    try:
        html = await summaries.summarize(call.node.llm_web, config, call.state, call.user, messages)
    except NotFetched as error:
        logger.warning("could not get a summary: %s", error)
        raise Refused("The summary isn't available right now. Try again later.") from None
    return SummaryResponse(summary=html)
