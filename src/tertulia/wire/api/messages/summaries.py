"""Summaries of conversations."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Final

import msgspec

from tertulia.domain import permissions
from tertulia.domain.accounts.users import require_person
from tertulia.domain.messages.narrow import NarrowTerm
from tertulia.model.errors import Refused, Unavailable
from tertulia.model.messages import Message
from tertulia.outbound.http_responses import NotFetched
from tertulia.service import summaries
from tertulia.service.messages.history import MessageQuery, find_messages
from tertulia.wire.api import narrow as wire_narrow
from tertulia.wire.http.parameters import Doc, Reads
from tertulia.wire.http.routing import EVENT_STREAM, ApiResponse, Call, EventStream

logger = logging.getLogger("tertulia.summaries")

DAY: Final = 86_400.0
_LOOK_SECONDS: Final = 1.0
"""How often to check whether the client has disconnected while the model is silent."""
_PAUSE_SECONDS: Final = 0.15
_UNAVAILABLE: Final = "The summary isn't available right now. Try again later."


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
) -> SummaryResponse | EventStream:
    """Summarize the newest 100 messages that match a narrow, with the operator's language model.

    With `Accept: text/event-stream` (a Tertulia extension), the summary is streamed while it's
    written: events `summary` with `{"summary": …}`, the whole HTML so far, and at the end an event
    `done`, or `error` with `{"msg": …}`.

    The server sends the messages' content and the names of their senders to `llm_url`. Requires
    `can_summarize_topics_group`. The number of summaries per person and day is limited.
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
    matches = await find_messages(call.node, call.user, query, extras=False)
    messages = matches.page.messages
    if not messages:
        raise Refused("No messages match.")
    budget = call.node.limits.limiters.limiter("summaries", config.llm_summaries_per_day, DAY)
    budget.require(call.user.id)
    if EVENT_STREAM in call.request.headers.get("accept", ""):
        return EventStream(events=_events(call, messages))
    try:
        html = await summaries.summarize(call.node.llm_web, config, call.state, call.user, messages)
    except NotFetched as error:
        logger.warning("could not get a summary: %s", error)
        raise Refused(_UNAVAILABLE) from None
    return SummaryResponse(summary=html)


async def _events(call: Call, messages: Sequence[Message]) -> AsyncIterator[str]:
    """Yield the events of a summary. If the client disconnects, the model is stopped."""
    newest = shown = ""
    changed = asyncio.Event()

    async def read() -> None:
        nonlocal newest
        parts = summaries.summary_parts(
            call.node.llm_web, call.node.config, call.state, call.user, messages
        )
        async with contextlib.aclosing(parts):
            async for part in parts:
                newest = part
                changed.set()

    task = asyncio.create_task(read())
    task.add_done_callback(lambda _: changed.set())
    try:
        while newest != shown or not task.done():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), _LOOK_SECONDS)
            changed.clear()
            if await call.request.is_disconnected():
                return
            if newest != shown:
                shown = newest
                yield _event("summary", {"summary": shown})
                await asyncio.sleep(_PAUSE_SECONDS)  # A model writes many words per second.
        await task
        yield _event("done", {})
    except (NotFetched, Unavailable) as error:
        logger.warning("could not get a summary: %s", error)
        yield _event("error", {"msg": _UNAVAILABLE})
    finally:
        task.cancel()
        await asyncio.wait({task})


def _event(kind: str, data: dict[str, str]) -> str:
    return f"event: {kind}\ndata: {msgspec.json.encode(data).decode()}\n\n"
